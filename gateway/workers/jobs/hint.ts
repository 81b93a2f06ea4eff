/**
 * Sends `work.available`, the hint that a worker should claim. Many workers claim only when a job
 * ends or when they receive this hint. After an answer that leaves slots free or jobs undelivered,
 * the hint is therefore sent if the worker has no open claim. When a job is waiting, the hint is
 * repeated until the worker claims.
 */
import { limits, type WorkerEdge } from '../edge.ts'
import { needsHint, type Session } from '../session.ts'

/** Sends the hint immediately, if the worker has no open claim and could accept a job. */
export function sendHint(edge: WorkerEdge, session: Session): void {
  if (edge.stopping || !needsHint(session)) return
  session.hinted = edge.world.monotonic()
  session.connection.send({ type: 'work.available' })
}

/**
 * Sends the hint, because the worker could claim a waiting job. It is sent no earlier than
 * `limits.hint` after the previous hint, and then every `limits.remind` until the worker claims.
 */
export function scheduleHint(edge: WorkerEdge, session: Session): void {
  if (session.reminder) return
  const repeat = () => {
    session.reminder = undefined
    if (edge.stopping || !needsHint(session)) return
    sendHint(edge, session)
    session.reminder = edge.world.later(limits.remind, repeat)
  }
  const wait = session.hinted + limits.hint - edge.world.monotonic()
  if (wait > 0) session.reminder = edge.world.later(wait, repeat)
  else repeat()
}

/** Stops the reminders, because the worker has claimed, is draining, or has disconnected. */
export function stopReminders(session: Session): void {
  session.reminder?.()
  session.reminder = undefined
}
