/** Dispatches inbound frames to their handlers, by frame type. Handles `worker.ready` itself. */
import { closeCodes, type Up } from '../../protocol/workers/socket.ts'
import type { Connection, Incoming } from './connection.ts'
import { handleDraining } from './drain.ts'
import { limits, type WorkerEdge } from './edge.ts'
import { handleDelta, handleHeartbeat, handleLog } from './heartbeat.ts'
import { handleClaim } from './jobs/claim.ts'
import { claimFilters } from './jobs/eligible.ts'
import { scheduleHint } from './jobs/hint.ts'
import { updateSubscriptions } from './jobs/offers.ts'
import { sendFilters } from './presence.ts'
import { handleRegister } from './register.ts'
import { handleReport } from './report.ts'
import { needsHint, type Session } from './session.ts'

type Frame<T> = Extract<Up, { type: T }>
type Registered = Exclude<Up['type'], 'worker.register' | 'keepalive'>

/**
 * Handlers of the frames that require a registered session. Their results must be passed to
 * `guard`, which handles rejections.
 */
const arms: {
  readonly [T in Registered]: (
    edge: WorkerEdge,
    session: Session,
    frame: Frame<T>,
    bytes: number,
  ) => Promise<void> | void
} = {
  'worker.ready': ready,
  'jobs.claim': handleClaim,
  'job.heartbeat': handleHeartbeat,
  'job.report': handleReport,
  'generation.delta': handleDelta,
  'job.log': handleLog,
  'worker.draining': (edge, session, { message_id }) => handleDraining(edge, session, message_id),
  'terminal.output': (edge, session, frame) => edge.terminals.handle(session, frame),
  'terminal.ack': (edge, session, frame) => edge.terminals.handle(session, frame),
  'terminal.exit': (edge, session, frame) => edge.terminals.handle(session, frame),
}

/**
 * Handles a frame. A keepalive is never answered, because two peers that answer keepalives would
 * answer each other forever.
 */
export function handleFrame(edge: WorkerEdge, connection: Connection, incoming: Incoming): void {
  const { frame, bytes } = incoming
  if (frame.type === 'keepalive') return
  if (frame.type === 'worker.register') {
    guard(
      edge,
      connection,
      handleRegister(edge, connection, frame).then(() => {
        // A second registration is refused while the first is in progress.
        if (connection.registering) return
        for (const waiting of connection.backlog.splice(0))
          if (connection.session) handleFrame(edge, connection, waiting)
      }),
    )
  } else if (connection.session) {
    const arm = arms[frame.type] as (
      edge: WorkerEdge,
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
function ready(edge: WorkerEdge, session: Session, frame: Frame<'worker.ready'>): void {
  if (frame.queues || frame.action_names || frame.models) {
    session.wants = edge.prepareFilters(claimFilters(session.wants.filters, frame))
    void sendFilters(edge, session)
  }
  if (frame.available_slots !== undefined)
    session.limit = Math.min(session.concurrency, session.busy + frame.available_slots)
  updateSubscriptions(edge, session)
  if (needsHint(session)) scheduleHint(edge, session)
}

/**
 * Logs the failure of a handler, which is a bug, and closes the connection so that the worker
 * reconnects.
 */
function guard(edge: WorkerEdge, connection: Connection, done: Promise<void> | void): void {
  done?.catch((error: unknown) => {
    edge.world.log.error(
      { event: 'worker_frame_failed', err: error },
      'worker frame handling failed',
    )
    connection.close(closeCodes.internal, 'internal error')
  })
}
