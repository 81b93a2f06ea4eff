/**
 * Handles registrations, which turn connections into worker sessions. The `worker` actor of the
 * instance decides whether to accept a registration. The environment of the registration decides
 * whether the worker may serve it (`environments/`). The gateway sends the commands to these
 * actors, answers with `worker.registered` before any other frame except errors, and counts the
 * leases of a resumed session.
 */
import { isRefusal, type Refusal } from '../../protocol/errors.ts'
import { prefixes } from '../../protocol/ids.ts'
import { LOG_FRAME } from '../../protocol/jobs/logs.ts'
import type { WorkerCommands } from '../../protocol/workers/commands.ts'
import { closeCodes, type Register } from '../../protocol/workers/socket.ts'
import { hexOf } from '../http/hex.ts'
import type { Connection } from './connection.ts'
import { sendCommand, type WorkerEdge } from './edge.ts'
import {
  confirmEnvironment,
  enterEnvironment,
  placeOf,
  type RegistrationFault,
} from './environments/registration.ts'
import { countLeases } from './jobs/leases.ts'
import { updateSubscriptions } from './jobs/offers.ts'
import { endSession, scheduleBeat } from './presence.ts'
import { Session } from './session.ts'

/** The capability of workers that can open terminals. */
const TERMINALS = 'terminal'

type Entered = WorkerCommands['worker.register']['reply']

/** Handles a `worker.register` frame. Resolves when the registration has been answered. */
export async function handleRegister(
  edge: WorkerEdge,
  connection: Connection,
  frame: Register,
): Promise<void> {
  const { message_id } = frame
  if (connection.session || connection.registering)
    return connection.fail('bad_frame', 'this connection is already registered', message_id)
  connection.registering = true
  const { world } = edge
  const { project, handle, principal } = connection.grant
  const instance = frame.worker_instance_id
  const fresh = `${prefixes.session}_${hexOf(world.random(24))}`
  const given = frame.worker_session_token || undefined
  const worker = world.id('worker', `${project}/${instance}`)
  const place = { id: placeOf(connection.grant, frame), instance }
  const barred = await enterEnvironment(edge, connection.grant, place, frame)
  if (barred) return expelled(connection, barred, message_id)
  const {
    name,
    version,
    capabilities = [],
    queues = [],
    action_names = [],
    models = [],
    concurrency_limit = 1,
  } = frame
  const input: WorkerCommands['worker.register']['input'] = {
    instance,
    session: world.id('session'),
    token_hash: world.hash(fresh),
    gateway: world.node,
    principal_id: principal.id,
    concurrency_limit,
    ...(name !== undefined && { name }),
    ...(version !== undefined && { version }),
    ...(place.id !== undefined && { environment_id: place.id }),
    capabilities,
    queues,
    action_names,
    models,
    ...(given !== undefined && { given_token_hash: world.hash(given) }),
  }
  const outcome = await sendCommand(
    edge,
    connection.grant,
    { project, kind: 'worker', id: worker },
    'worker.register',
    input,
  )
  if (isRefusal(outcome)) {
    connection.registering = false
    return refused(
      connection,
      outcome,
      `instance ${instance} is already connected to project ${handle}`,
      message_id,
    )
  }
  const entered = outcome.reply
  const late = await confirmEnvironment(edge, connection.grant, place, entered.registration.session)
  connection.registering = false
  if (late) {
    // The session is closed in the registry. Otherwise, the registry would consider it alive for a
    // while, and refuse another registration of the instance.
    const { session, generation } = entered.registration
    const to = { project, kind: 'worker', id: worker } as const
    await sendCommand(edge, connection.grant, to, 'worker.closed', {
      session,
      generation,
      leases: 0,
    })
    return expelled(connection, late, message_id)
  }
  const session = sessionOf(edge, connection, worker, entered)
  connection.onEnd = () => endSession(edge, session)
  if (connection.isClosed) return endSession(edge, session)
  if (edge.stopping) return connection.close(closeCodes.restart, 'the gateway restarts')
  const present = edge.sessions.get(session.id)
  if (present && present.generation > session.generation)
    return connection.close(closeCodes.superseded, 'superseded by a newer connection')
  enter(edge, session, entered)
  world.log.info(
    {
      event: 'worker_registered',
      project,
      instance,
      session: session.id,
      generation: session.generation,
      resumed: entered.resumed,
    },
    'worker registered',
  )
  const { lease, cadence } = world.settings.timing
  connection.send({
    type: 'worker.registered',
    ...(message_id !== undefined && { message_id }),
    worker_session_token: entered.resumed && given !== undefined ? given : fresh,
    lease: { lease_duration_seconds: lease, heartbeat_cadence_seconds: cadence },
    ...(frame.frames && { frames: accepted(edge, frame.frames) }),
  })
  if (session.draining) connection.send({ type: 'worker.drain' })
  void countLeases(edge, session, entered, frame.leases)
}

/**
 * Returns the optional frame types that the worker requests and this gateway accepts. A worker that
 * lists none receives no list, because it may reject unknown members.
 */
const accepted = ({ logs }: WorkerEdge, wanted: readonly string[]): string[] =>
  logs.available && wanted.includes(LOG_FRAME) ? [LOG_FRAME] : []

function expelled(
  connection: Connection,
  { code, message }: RegistrationFault,
  message_id: string | undefined,
): void {
  connection.registering = false
  connection.fail(code, message, message_id)
  connection.close(closeCodes.internal, 'registration failed')
}

function refused(
  connection: Connection,
  { refused, message = refused }: Refusal,
  conflict: string,
  message_id: string | undefined,
): void {
  if (refused === 'conflict') {
    connection.fail('worker_instance_conflict', conflict, message_id)
    connection.close(closeCodes.instance_conflict, 'worker instance conflict')
  } else {
    connection.fail(
      refused === 'service_unavailable' ? 'temporarily_unavailable' : 'register_failed',
      message,
      message_id,
    )
    connection.close(closeCodes.internal, 'registration failed')
  }
}

function sessionOf(
  edge: WorkerEdge,
  connection: Connection,
  worker: string,
  { registration, resumed, draining }: Entered,
): Session {
  const { queues, action_names, models, environment_id } = registration
  return new Session({
    id: registration.session,
    generation: registration.generation,
    instance: registration.instance,
    worker,
    connection,
    concurrency: registration.concurrency_limit,
    wants: edge.prepareFilters({
      queues,
      action_names,
      models,
      ...(environment_id !== undefined && { environment_id }),
      ...(connection.grant.environment && { pinned_only: true as const }),
    }),
    counted: !resumed,
    draining,
    hasTerminals: registration.capabilities.includes(TERMINALS),
  })
}

/** Adds the session to this gateway, and closes older connections of the same worker. */
function enter(edge: WorkerEdge, session: Session, { replaced }: Entered): void {
  const older = [edge.sessions.get(session.id), replaced && edge.sessions.get(replaced.session)]
  edge.sessions.set(session.id, session)
  session.connection.enter(session)
  for (const other of older)
    if (other && other !== session)
      other.connection.close(closeCodes.superseded, 'superseded by a newer connection')
  scheduleBeat(edge, session)
  updateSubscriptions(edge, session)
  edge.terminals.serve(session)
}
