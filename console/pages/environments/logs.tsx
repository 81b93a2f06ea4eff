/** The logs of an environment's worker. They are updated live unless the user stops following. */
import { useEffect, useMemo, useState } from 'preact/hooks'
import { Button, IconButton } from '../../design/button.tsx'
import { SelectField } from '../../design/field.tsx'
import { Empty, Notice, Show } from '../../design/states.tsx'
import { Lines } from '../../preview/lines.tsx'
import { currentUrl, setQuery } from '../../router/router.ts'
import { FollowedLog } from './followed-log.ts'
import { environmentsText as text } from './text.ts'

const NAMES = ['worker', 'stdout', 'stderr', 'bootstrap'] as const
const LINE_COUNTS = ['200', '1000', '5000']

export function LogsPart({ project, id }: { readonly project: string; readonly id: string }) {
  const { query } = currentUrl.value
  const log_name = NAMES.find((one) => one === query.get('log')) ?? 'worker'
  const tail = LINE_COUNTS.find((one) => one === query.get('lines')) ?? '200'
  const [follows, setFollows] = useState(true)
  const [attempt, setAttempt] = useState(0)
  const log = useMemo(
    () => new FollowedLog(project, id, log_name, Number(tail)),
    [project, id, log_name, tail, attempt],
  )
  useEffect(() => (follows ? log.follow() : undefined), [log, follows])
  const reload = (): void => {
    setAttempt(attempt + 1)
    setFollows(true)
  }
  return (
    <div class="stack close">
      <div class="row filters">
        <SelectField
          label={text.log}
          unlabelled
          value={log_name}
          choices={NAMES.map((value) => ({ value, label: value }))}
          onValue={(log) => setQuery({ log: log === 'worker' ? '' : log })}
        />
        <SelectField
          label={text.logLines}
          unlabelled
          value={tail}
          choices={LINE_COUNTS.map((value) => ({ value, label: `${value} ${text.logLines}` }))}
          onValue={(lines) => setQuery({ lines: lines === '200' ? '' : lines })}
        />
        <Button pressed={follows} onClick={() => setFollows(!follows)}>
          {text.follow}
        </Button>
        <IconButton icon="reload" label={text.reload} onClick={reload} />
      </div>
      <Show of={log.state.value} retry={reload}>
        {({ content, truncated }) =>
          content === '' ? (
            <section class="card">
              <Empty title={text.logEmpty} />
            </section>
          ) : (
            <>
              {truncated && <Notice>{text.logCut}</Notice>}
              <Lines value={content} label={text.wrap} end />
            </>
          )
        }
      </Show>
    </div>
  )
}
