/** The dialog of an action on many runs: preview, progress and result. */
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { Run } from '../../../../protocol/runs/schema.ts'
import { ApiError, type CallReply, call } from '../../../api/client.ts'
import { Button } from '../../../design/button.tsx'
import { TextField } from '../../../design/field.tsx'
import { Dialog } from '../../../design/overlay.tsx'
import { Failure, Notice, Skeleton } from '../../../design/states.tsx'
import { designText } from '../../../design/text.ts'
import { guardUnload } from '../../../router/router.ts'
import { formatNumber } from '../../../text/format.ts'
import { StatusBadge } from '../status.tsx'
import { actOn, applicableStatuses, type BulkAction, type BulkObject } from './bulk.ts'
import type { BulkProgress } from './bulk-progress.ts'
import { listText as text } from './text.ts'

/** Maximum number of runs that the preview shows. */
const MAX_SHOWN = 5

const titles = { cancel: text.cancelRuns, retry: text.retryRuns, resume: text.resumeRuns }
const hints = { cancel: text.cancelHint, retry: text.retryHint, resume: text.resumeHint }

/**
 * The number of runs on which an action will act, with some of them. `skipped`: the number of
 * selected runs to which the action does not apply.
 */
interface Preview {
  readonly count: number
  readonly more: boolean
  readonly skipped: number
  readonly runs: readonly (Pick<Run, 'id' | 'status'> & { readonly name?: string | undefined })[]
}

/**
 * Asks for confirmation of an action on many runs, and performs it.
 * @param props.object the selected runs, or the filter.
 */
export function BulkDialog({
  project,
  action,
  object,
  onClose,
  onDone,
}: {
  readonly project: string
  readonly action: BulkAction
  readonly object: { readonly runs: Preview['runs'] } | Extract<BulkObject, { filter: unknown }>
  readonly onClose: () => void
  readonly onDone: () => void
}) {
  const [preview, setPreview] = useState<Preview>()
  const [error, setError] = useState<ApiError>()
  const [reason, setReason] = useState('')
  const [progress, setProgress] = useState<BulkProgress>()
  const [state, setState] = useState<'asking' | 'acting' | 'ended' | 'stopped'>('asking')
  const abort = useRef(new AbortController())
  // A reload would stop the action before it has reached the remaining runs.
  useLayoutEffect(() => guardUnload(() => state === 'acting'), [state])
  useEffect(() => {
    if ('runs' in object) {
      const fitting = object.runs.filter(({ status }) =>
        applicableStatuses[action].includes(status),
      )
      const skipped = object.runs.length - fitting.length
      setPreview({ count: fitting.length, more: false, skipped, runs: fitting })
      return undefined
    }
    let current = true
    call('run.bulk', { project, action, filter: object.filter as never, preview: true }).then(
      ({ preview: found }: CallReply<'run.bulk'>) => {
        if (current && found) setPreview({ ...found, skipped: 0 })
      },
      (failure: unknown) => {
        if (!(failure instanceof ApiError)) throw failure
        if (current) setError(failure)
      },
    )
    return () => {
      current = false
    }
  }, [])
  const act = async (): Promise<void> => {
    setState('acting')
    const on: BulkObject =
      'runs' in object ? { ids: preview?.runs.map(({ id }) => id) ?? [] } : object
    try {
      await actOn(on, {
        project,
        action,
        reason,
        onProgress: setProgress,
        signal: abort.current.signal,
      })
      setState(abort.current.signal.aborted ? 'stopped' : 'ended')
    } catch (failure) {
      if (!(failure instanceof ApiError)) throw failure
      setError(failure)
      setState('stopped')
    }
    onDone()
  }
  const close = (): void => {
    abort.current.abort()
    onClose()
  }
  const all = preview?.count ?? 0
  const shownAll = `${formatNumber(all)}${preview?.more ? '+' : ''}`
  return (
    <Dialog title={titles[action]} onClose={close}>
      <p class="soft">{hints[action]}</p>
      {error && <Failure error={error} />}
      {state === 'asking' && !error && (
        <>
          {preview ? <PreviewOf preview={preview} /> : <Skeleton lines={3} />}
          {all > 0 && (
            <TextField
              label={text.reason}
              hint={text.reasonHint}
              maxLength={1024}
              value={reason}
              onValue={setReason}
            />
          )}
        </>
      )}
      {progress && (
        <div class="stack close" role="status">
          <progress
            max={Math.max(all, progress.done)}
            value={progress.done}
            aria-label={titles[action]}
          />
          <p>{text.progress(progress.done, shownAll)}</p>
          {state !== 'acting' && (
            <Notice tone={progress.refused.size > 0 ? 'warn' : 'good'}>
              <p>{text.result(progress.ok)}</p>
              {[...progress.refused].map(([message, count]) => (
                <p key={message} class="user-text">
                  {text.refused(count, message)}
                </p>
              ))}
              {state === 'stopped' && <p>{text.stopped}</p>}
            </Notice>
          )}
        </div>
      )}
      <div class="actions">
        {state === 'acting' ? (
          <Button onClick={() => abort.current.abort()}>{text.stop}</Button>
        ) : (
          <Button onClick={close}>{designText.close}</Button>
        )}
        {state === 'asking' && (
          <Button kind="primary" danger={action === 'cancel'} disabled={all === 0} onClick={act}>
            {titles[action]}
          </Button>
        )}
      </div>
    </Dialog>
  )
}

const PreviewOf = ({ preview: { count, more, skipped, runs } }: { readonly preview: Preview }) => (
  <div class="stack close">
    <p>
      <strong>{count === 0 ? text.previewNone : text.preview(count, more)}</strong>
    </p>
    {skipped > 0 && <p class="soft">{text.previewSkipped(skipped)}</p>}
    <ul class="stack close small">
      {runs.slice(0, MAX_SHOWN).map(({ id, name, status }) => (
        <li key={id} class="row">
          <StatusBadge status={status} />
          <span class="grow clip user-text">{name || id}</span>
        </li>
      ))}
      {count > MAX_SHOWN && runs.length > 0 && (
        <li class="soft">{text.andMore(count - Math.min(MAX_SHOWN, runs.length))}</li>
      )}
    </ul>
  </div>
)
