/**
 * `work.available`: the server's wish that a worker claim. Workers claim only when a job ends or when told so, therefore
 * the hint follows every answer that left slots free, and is repeated while work waits for a worker that has not claimed.
 */
import { limits, type Edge } from '../edge.ts'
import { idle, type Session } from '../session.ts'

/** Tell the worker to claim, now, if it could. */
export function hint(edge: Edge, session: Session): void {
  if (edge.stopping || !idle(session)) return
  session.hinted = edge.world.now()
  session.connection.send({ type: 'work.available' })
}

/** Work waits that this worker could claim: tell it, at most once a second, and again every 5 s until it claims. */
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

/** The worker claimed, drains or is gone. */
export function calm(session: Session): void {
  session.reminder?.()
  session.reminder = undefined
}
