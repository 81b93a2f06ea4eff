/**
 * `work.available`: the server's hint that a worker should claim. Many workers claim only when a
 * job ends or when they get this hint. It therefore follows every answer that left slots free, and
 * is repeated while work waits for a worker without an open claim.
 */
import { type Edge, limits } from '../edge.ts'
import { idle, type Session } from '../session.ts'

/** Sends the hint now, if the worker could claim. */
export function hint(edge: Edge, session: Session): void {
  if (edge.stopping || !idle(session)) return
  session.hinted = edge.world.now()
  session.connection.send({ type: 'work.available' })
}

/**
 * Sends the hint because work is waiting that this worker could claim: at most once per second, and
 * again every 5 s until it claims.
 */
export function remind(edge: Edge, session: Session): void {
  if (session.reminder) return
  const repeat = () => {
    session.reminder = undefined
    if (edge.stopping || !idle(session)) return
    hint(edge, session)
    session.reminder = edge.world.later(limits.remind, repeat)
  }
  const wait = session.hinted + limits.hint - edge.world.now()
  if (wait > 0) session.reminder = edge.world.later(wait, repeat)
  else repeat()
}

/** Stops the reminders, because the worker claimed, drains or disconnected. */
export function calm(session: Session): void {
  session.reminder?.()
  session.reminder = undefined
}
