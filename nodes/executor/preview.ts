/**
 * Publishes chunks of answers to the followers of a session. Delivery is best effort: chunks are
 * neither stored nor repeated, and only the complete answer counts. Chunks in quick succession are
 * sent together.
 */
import type { Previews } from '../../gateway/sessions/transcript/previews.ts'
import type { ClaimedJob } from '../../protocol/workers/socket.ts'
import type { Delta } from './speech.ts'

interface Shown {
  show(delta: Delta): void
  end(): void
}
export type Previewing = (project: string, job: ClaimedJob) => Shown

/** Milliseconds for which chunks are collected before they are sent together. */
const BATCH_MS = 25
const NOTHING: Shown = { show: () => {}, end: () => {} }

/**
 * Returns a function that prepares the publication of the chunks of one attempt.
 * @param later calls a function after a number of milliseconds. The returned function cancels the
 *   call.
 */
export const previews =
  (
    publisher: Pick<Previews, 'publish' | 'end'>,
    later: (ms: number, run: () => void) => () => void,
  ): Previewing =>
  (project, job) => {
    const { id: job_id, session_id, lease_token: attempt, model } = job
    if (session_id === undefined) return NOTHING
    let sequence = 0
    let waiting: Delta | undefined
    let cancel: (() => void) | undefined
    const flush = () => {
      cancel?.()
      cancel = undefined
      if (waiting)
        publisher.publish({ project, session_id, job_id, attempt, model }, waiting, ++sequence)
      waiting = undefined
    }
    return {
      show: (delta) => {
        const joined = waiting && join(waiting, delta)
        if (waiting && !joined) flush()
        waiting = joined ?? delta
        // The first chunk is sent immediately, because people are waiting for it.
        if (sequence === 0) flush()
        else cancel ??= later(BATCH_MS, flush)
      },
      end: () => {
        flush()
        publisher.end(job_id, attempt)
      },
    }
  }
/** Merges two chunks of the same kind. Returns undefined when their kinds differ. */
function join(a: Delta, b: Delta): Delta | undefined {
  if ('text' in a) return 'text' in b ? { text: a.text + b.text } : undefined
  return 'text' in b ? undefined : { type: 'thinking', thinking: a.thinking + b.thinking }
}
