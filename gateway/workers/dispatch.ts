/** Dispatches inbound frames to their handlers, by frame type. Handles `worker.ready` itself. */
import { closeCodes, type Up } from '../../protocol/workers/socket.ts'
import type { Connection, Incoming } from './connection.ts'
import { draining } from './drain.ts'
import { type Edge, limits } from './edge.ts'
import { delta, heartbeat, log } from './heartbeat.ts'
import { claim } from './jobs/claim.ts'
import { claimFilters } from './jobs/eligible.ts'
import { remind } from './jobs/hint.ts'
import { settle } from './jobs/offers.ts'
import { tell } from './presence.ts'
import { register } from './register.ts'
import { report } from './report.ts'
import { idle, type Session } from './session.ts'

type Frame<T> = Extract<Up, { type: T }>
type Registered = Exclude<Up['type'], 'worker.register' | 'keepalive'>

/**
 * Handlers of the frames that require a registered session. Their results must be passed to
 * `guard`, which handles rejections.
 */
const arms: {
  readonly [T in Registered]: (
    edge: Edge,
    session: Session,
    frame: Frame<T>,
    bytes: number,
  ) => Promise<void> | void
} = {
  'worker.ready': ready,
  'jobs.claim': claim,
  'job.heartbeat': heartbeat,
  'job.report': report,
  'generation.delta': delta,
  'job.log': log,
  'worker.draining': (edge, session, { message_id }) => draining(edge, session, message_id),
  'terminal.output': (edge, session, frame) => edge.terminals.handle(session, frame),
  'terminal.ack': (edge, session, frame) => edge.terminals.handle(session, frame),
  'terminal.exit': (edge, session, frame) => edge.terminals.handle(session, frame),
}

/**
 * Handles a frame. A keepalive is never answered, because two peers that answer keepalives would
 * answer each other forever.
 */
export function dispatch(edge: Edge, connection: Connection, incoming: Incoming): void {
  const { frame, bytes } = incoming
  if (frame.type === 'keepalive') return
  if (frame.type === 'worker.register') {
    guard(
      edge,
      connection,
      register(edge, connection, frame).then(() => {
        // A second registration is refused while the first is in progress.
        if (connection.registering) return
        for (const waiting of connection.backlog.splice(0))
          if (connection.session) dispatch(edge, connection, waiting)
      }),
    )
  } else if (connection.session) {
    const arm = arms[frame.type] as (
      edge: Edge,
      session: Session,
      frame: Up,
      bytes: number,
    ) => Promise<void> | void
    guard(edge, connection, arm(edge, connection.session, frame, bytes))
  } else if (connection.registering && connection.backlog.length < limits.backlog)
    connection.backlog.push(incoming)
  else connection.fail('not_registered', 'send worker.register first', frame.message_id)
}

/**
 * Handles `worker.ready`: sets the session's number of slots, its filters, or both, until another
 * frame changes them.
 */
function ready(edge: Edge, session: Session, frame: Frame<'worker.ready'>): void {
  if (frame.queues || frame.action_names || frame.models) {
    session.wants = edge.wants(claimFilters(session.wants.filters, frame))
    void tell(edge, session)
  }
  if (frame.available_slots !== undefined)
    session.limit = Math.min(session.concurrency, session.busy + frame.available_slots)
  settle(edge, session)
  if (idle(session)) remind(edge, session)
}

/**
 * Logs the failure of a handler, which is a bug, and closes the connection so that the worker
 * reconnects.
 */
function guard(edge: Edge, connection: Connection, done: Promise<void> | void): void {
  done?.catch((error: unknown) => {
    edge.world.log.error(
      { event: 'worker_frame_failed', err: error },
      'worker frame handling failed',
    )
    connection.close(closeCodes.internal, 'internal error')
  })
}
