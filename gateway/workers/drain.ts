/**
 * Draining of a worker session: the worker finishes the jobs that it holds and receives no more.
 * Its leases and its connection remain.
 */

import { registryOf, sendCommand, type WorkerEdge } from './edge.ts'
import { dismissClaims } from './jobs/claim.ts'
import { giveBack } from './jobs/held-leases.ts'
import { stopReminders } from './jobs/hint.ts'
import { unreserveAll, updateSubscriptions } from './jobs/offers.ts'
import type { Session } from './session.ts'

/**
 * Stops the assignment of jobs to a session. Open claims are answered without jobs, undelivered
 * jobs return to their queues, and reserved slots are freed. Jobs that are assigned later are
 * refused.
 */
export function drainSession(edge: WorkerEdge, session: Session): void {
  session.draining = true
  stopReminders(session)
  dismissClaims(edge, session)
  giveBack(edge, session)
  unreserveAll(edge, session)
  updateSubscriptions(edge, session)
}

/**
 * Handles `worker.draining`, with which a worker announces that it is draining. The server may have
 * requested it with `worker.drain`.
 */
export function handleDraining(
  edge: WorkerEdge,
  session: Session,
  message_id: string | undefined,
): void {
  drainSession(edge, session)
  session.connection.send({
    type: 'worker.draining.ack',
    ...(message_id !== undefined && { message_id }),
  })
  void sendCommand(edge, session.connection.grant, registryOf(session), 'worker.drained', {
    session: session.id,
  })
}
