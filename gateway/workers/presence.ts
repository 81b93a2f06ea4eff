/**
 * Reports periodically to the registry of workers that a session on this gateway is alive, and ends
 * the session when its connection has ended.
 */
import { isRefusal } from '../../protocol/errors.ts'
import type { WorkerCommands } from '../../protocol/workers/commands.ts'
import { closeCodes } from '../../protocol/workers/socket.ts'
import { registryOf, sendCommand, type WorkerEdge } from './edge.ts'
import { giveBack, removeEndedLease, removeExpired, reportLapsed } from './jobs/held-leases.ts'
import { stopReminders } from './jobs/hint.ts'
import { unreserveAll, updateSubscriptions } from './jobs/offers.ts'
import type { Session } from './session.ts'
import type { Task } from './timer-wheel.ts'

type Input = WorkerCommands['worker.seen']['input']

/**
 * Schedules a beat of a session after one heartbeat interval. A beat removes expired leases,
 * reports those without a recent frame (`Lapsed`) to their queues, and schedules the next beat. If
 * anything was received from the worker since the last beat, the beat also reports to the registry
 * that the session is alive. The connection is closed if another connection has superseded it.
 */
export function scheduleBeat(edge: WorkerEdge, session: Session): void {
  session.beating ??= new Beat(edge, session)
  edge.timerWheel.add(edge.world.settings.timing.cadence * 1000, session.beating)
}

class Beat implements Task {
  round: Task['round']
  readonly #edge: WorkerEdge
  readonly #session: Session
  constructor(edge: WorkerEdge, session: Session) {
    this.#edge = edge
    this.#session = session
  }
  due(): void {
    const [edge, session] = [this.#edge, this.#session]
    const lapsed = removeExpired(edge, session)
    scheduleBeat(edge, session)
    // Leases are reported only if this connection is the current one. If it is not, another gateway
    // may be receiving the worker's heartbeats.
    if (lapsed.length > 0)
      isCurrent(edge, session).then(
        (current) => current && !session.closed && reportLapsed(edge, session, lapsed),
        (error: unknown) =>
          edge.world.log.debug(
            { event: 'worker_session_check_failed', err: error },
            'worker session check failed',
          ),
      )
    if (!session.connection.heard) return
    session.connection.heard = false
    const { storedFilters: told, wants } = session
    void (told === wants ? seen(edge, session) : sendFilters(edge, session))
  }
}

/**
 * Sends the session's new filters to the registry, one command at a time, so that the latest
 * filters win. After a failure, a later beat sends them again.
 */
export async function sendFilters(edge: WorkerEdge, session: Session): Promise<void> {
  if (session.notifying) return
  session.notifying = true
  while (session.storedFilters !== session.wants && !session.closed) {
    const { wants } = session
    const { queues = [], action_names = [], models = [] } = wants.filters
    if (!(await seen(edge, session, { queues, action_names, models }))) break
    session.storedFilters = wants
  }
  session.notifying = false
}

/**
 * Returns whether this is the session's current connection; false when the registry does not answer
 * in time.
 */
async function isCurrent({ world }: WorkerEdge, session: Session): Promise<boolean> {
  const { id, generation } = session
  return (await world.ask(registryOf(session), 'current', { session: id, generation })) === true
}

/**
 * Reports to the registry that the session is alive. Closes the connection if it was superseded.
 * @param takes the session's filters, if they have changed.
 * @returns false when the report was refused.
 */
async function seen(edge: WorkerEdge, session: Session, takes?: Input['takes']): Promise<boolean> {
  const { connection } = session
  const input: Input = {
    session: session.id,
    generation: session.generation,
    leases: session.leases,
    ...(takes && { takes }),
  }
  const outcome = await sendCommand(
    edge,
    connection.grant,
    registryOf(session),
    'worker.seen',
    input,
  )
  if (isRefusal(outcome)) return false
  if (!outcome.reply.current)
    connection.close(closeCodes.superseded, 'superseded by a newer connection')
  return true
}

/**
 * Ends a session on this gateway after its connection has ended. Undelivered jobs return to their
 * queues. All other leases remain, because the worker may reconnect.
 */
export function endSession(edge: WorkerEdge, session: Session): void {
  if (session.closed) return
  session.closed = true
  stopReminders(session)
  edge.terminals.leave(session)
  if (session.beating) edge.timerWheel.remove(session.beating)
  session.flushing?.()
  for (const claim of session.claims.splice(0)) edge.timerWheel.remove(claim)
  unreserveAll(edge, session)
  giveBack(edge, session)
  updateSubscriptions(edge, session)
  if (edge.sessions.get(session.id) === session) edge.sessions.delete(session.id)
  const { id, generation, leases, project, instance } = session
  edge.world.log.info(
    { event: 'worker_disconnected', project, instance, session: id, generation, leases },
    'worker disconnected',
  )
  reportClosed(edge, session)
}

/**
 * Removes a lease that has ended according to its queue. If it was the last lease of a session
 * whose connection has ended, reports this to the registry: another process may then take over the
 * instance at once.
 */
export function endLease(edge: WorkerEdge, session: Session, job_id: string, token: string): void {
  removeEndedLease(edge, session, job_id, token)
  if (session.closed && session.leases === 0) reportClosed(edge, session)
}

/** Reports to the registry that the connection has ended, and how many leases the session has. */
function reportClosed(edge: WorkerEdge, session: Session): void {
  const { id, generation, leases } = session
  const input = { session: id, generation, leases }
  void sendCommand(edge, session.connection.grant, registryOf(session), 'worker.closed', input)
}
