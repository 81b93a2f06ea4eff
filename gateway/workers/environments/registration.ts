/**
 * The environment of a registering worker. The environment decides before the registration whether
 * the worker may serve it, and is notified of the session after it, so that two live sessions never
 * serve one environment. Ids that are not those of environments of this service are labels that
 * workers choose, and need no decision.
 *
 * Invariant: no refusal here is one of the codes at which a worker process ends.
 */
import { isManagedEnvironment } from '../../../protocol/environments/commands.ts'
import { isRefusal, type Refusal } from '../../../protocol/errors.ts'
import type { FrameError, Register } from '../../../protocol/workers/socket.ts'
import { command, type Edge, type Grant } from '../edge.ts'

/** Why a worker may not serve the environment, as an error frame. */
export interface Barred {
  readonly code: FrameError
  readonly message: string
}
/** The environment of a registration, if it has one, and the worker instance. */
interface Place {
  readonly id: string | undefined
  readonly instance: string
}

/**
 * The environment that a worker serves: its own for the worker of an environment, otherwise the one
 * that it names.
 */
export const placeOf = ({ environment }: Grant, frame: Register): string | undefined =>
  environment?.id ?? (frame.environment_id || undefined)

const addressOf = (project: string, id: string) => ({ project, kind: 'environment', id }) as const
const generationOf = ({ environment }: Grant) =>
  environment && { generation: environment.generation }

function barredBy({ refused, message = refused }: Refusal): Barred {
  if (refused === 'service_unavailable' || refused === 'internal')
    return { code: 'temporarily_unavailable', message: 'the environment cannot be reached' }
  return refused === 'environment_worker_conflict'
    ? { code: 'environment_conflict', message: 'another live worker serves the environment' }
    : { code: 'environment_forbidden', message }
}

/** Asks the environment for the registering worker. Returns why the worker may not serve it. */
export async function enterEnvironment(
  edge: Edge,
  grant: Grant,
  { id, instance }: Place,
  frame: Register,
): Promise<Barred | undefined> {
  const own = grant.environment?.id
  if (own !== undefined && (frame.environment_id ?? own) !== own)
    return {
      code: 'environment_forbidden',
      message: `this credential belongs to environment ${own}`,
    }
  if (id === undefined || !isManagedEnvironment(id)) return undefined
  const outcome = await command(edge, grant, addressOf(grant.project, id), 'environment.connect', {
    instance,
    ...generationOf(grant),
  })
  return isRefusal(outcome) ? barredBy(outcome) : undefined
}

/** Notifies the environment of the registered session. Returns why this was not possible. */
export async function confirmEnvironment(
  edge: Edge,
  grant: Grant,
  { id, instance }: Place,
  session: string,
): Promise<Barred | undefined> {
  if (id === undefined || !isManagedEnvironment(id)) return undefined
  const outcome = await command(
    edge,
    grant,
    addressOf(grant.project, id),
    'environment.connected',
    { instance, session, ...generationOf(grant) },
  )
  return isRefusal(outcome) ? barredBy(outcome) : undefined
}
