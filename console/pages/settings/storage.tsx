/** The storage that artifacts use, and its limit. */
import { useQuery } from '../../api/query.ts'
import { Show } from '../../design/states.tsx'
import { Time } from '../../design/time.tsx'
import { formatBytes, formatNumber } from '../../text/format.ts'
import { settingsText as text } from './text.ts'

/** Shows the used storage, the limit if there is one, and the number of artifacts. */
export function Storage({ project }: { readonly project: string }) {
  const { state, reload } = useQuery('artifact.quota', { project }, { kinds: ['artifact'] })
  return (
    <Show of={state.value} retry={reload}>
      {({ used_bytes, limit_bytes, artifact_count, pending_count, generated_at }) => {
        const isLimited = limit_bytes < Number.MAX_SAFE_INTEGER
        return (
          <div class="stack narrow">
            <p class="soft">{text.storageHint}</p>
            <div class="stack close">
              <strong>
                {isLimited
                  ? text.usedOf(formatBytes(used_bytes), formatBytes(limit_bytes))
                  : text.usedAll(formatBytes(used_bytes))}
              </strong>
              {isLimited && (
                <progress aria-label={text.storage} value={used_bytes} max={limit_bytes} />
              )}
            </div>
            <dl class="facts">
              <dt>{text.artifacts}</dt>
              <dd>
                {formatNumber(artifact_count)}{' '}
                <a href={`/p/${encodeURIComponent(project)}/artifacts`}>{text.toArtifacts}</a>
              </dd>
              <dt>{text.pending}</dt>
              <dd>{formatNumber(pending_count)}</dd>
              <dt>{text.at}</dt>
              <dd>
                <Time at={generated_at} />
              </dd>
            </dl>
          </div>
        )
      }}
    </Show>
  )
}
