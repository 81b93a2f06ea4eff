/**
 * Checks the environment of a registering worker. Before the registration, the environment decides
 * whether the worker may serve it. It refuses a worker while another one is connected, so two live
 * sessions never serve one environment. After the registration, the environment is notified of the
 * session. An id that is not the id of a managed environment is a label that the worker chose, and
 * needs no decision.
 *
 * Invariant: no refusal in this file uses a code that makes worker processes exit.
 */
import { isManagedEnvironment } from '../../../protocol/environments/commands.ts'
import { isRefusal, type Refusal } from '../../../protocol/errors.ts'
import type { FrameError, Register } from '../../../protocol/workers/socket.ts'
import { type Grant, sendCommand, type WorkerEdge } from '../edge.ts'

/** The reason why a worker may not serve the environment, for an error frame. */
export interface RegistrationFault {
  readonly code: FrameError
  readonly message: string
}
/** The environment of a registration, if it has one, and the worker instance. */
interface EnvironmentWorker {
  readonly id: string | undefined
  readonly instance: string
}

/**
 * Returns the id of the environment that a worker serves: the environment of its credential, or
 * else the environment that the frame specifies. Returns undefined when there is neither.
 */
export const placeOf = ({ environment }: Grant, frame: Register): string | undefined =>
  environment?.id ?? (frame.environment_id || undefined)

const addressOf = (project: string, id: string) => ({ project, kind: 'environment', id }) as const
const generationOf = ({ environment }: Grant) =>
  environment && { generation: environment.generation }

function barredBy({ refused, message = refused }: Refusal): RegistrationFault {
  if (refused === 'service_unavailable' || refused === 'internal')
    return { code: 'temporarily_unavailable', message: 'the environment cannot be reached' }
  return refused === 'environment_worker_conflict'
    ? { code: 'environment_conflict', message: 'another live worker serves the environment' }
    : { code: 'environment_forbidden', message }
}

/**
 * Asks the environment whether the registering worker may serve it. Returns the reason if the
 * worker may not.
 */
export async function enterEnvironment(
  edge: WorkerEdge,
  grant: Grant,
  { id, instance }: EnvironmentWorker,
  frame: Register,
): Promise<RegistrationFault | undefined> {
  const own = grant.environment?.id
  if (own !== undefined && (frame.environment_id ?? own) !== own)
    return {
      code: 'environment_forbidden',
      message: `this credential belongs to environment ${own}`,
    }
  if (id === undefined || !isManagedEnvironment(id)) return undefined
  const outcome = await sendCommand(
    edge,
    grant,
    addressOf(grant.project, id),
    'environment.connect',
    {
      instance,
      ...generationOf(grant),
    },
  )
  return isRefusal(outcome) ? barredBy(outcome) : undefined
}

/** Notifies the environment of the registered session. Returns the reason if this fails. */
export async function confirmEnvironment(
  edge: WorkerEdge,
  grant: Grant,
  { id, instance }: EnvironmentWorker,
  session: string,
): Promise<RegistrationFault | undefined> {
  if (id === undefined || !isManagedEnvironment(id)) return undefined
  const outcome = await sendCommand(
    edge,
    grant,
    addressOf(grant.project, id),
    'environment.connected',
    { instance, session, ...generationOf(grant) },
  )
  return isRefusal(outcome) ? barredBy(outcome) : undefined
}
