/**
 * Draining: the worker finishes the jobs it holds and gets no more. Its leases and its connection
 * stay.
 */

import { command, type Edge, registryOf } from './edge.ts'
import { dismiss } from './jobs/claim.ts'
import { giveBack } from './jobs/held-leases.ts'
import { calm } from './jobs/hint.ts'
import { settle, unreserve } from './jobs/offers.ts'
import type { Session } from './session.ts'

/**
 * Stops giving work to this session: open claims are answered without jobs, and reserved slots are
 * freed. Jobs that arrive later are refused.
 */
export function drain(edge: Edge, session: Session): void {
  session.draining = true
  calm(session)
  dismiss(edge, session)
  giveBack(edge, session)
  for (const job_id of [...session.reserved.keys()]) unreserve(edge, session, job_id)
  settle(edge, session)
}

/** Handles the worker's announcement that it drains, whether the server requested it or not. */
export function draining(edge: Edge, session: Session, message_id: string | undefined): void {
  drain(edge, session)
  session.connection.send({
    type: 'worker.draining.ack',
    ...(message_id !== undefined && { message_id }),
  })
  void command(edge, session.connection.grant, registryOf(session), 'worker.drained', {
    session: session.id,
  })
}
