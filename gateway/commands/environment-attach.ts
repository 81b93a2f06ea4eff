/**
 * Attaches the workspace of a connected worker as an environment. The actor that holds the name of
 * the environment decides the attachment, and makes the session the worker of the environment. Then
 * the worker's actor assigns the jobs of the environment to the session.
 */
import { isManagedEnvironment, scopeKey } from '../../protocol/environments/commands.ts'
import type {
  AttachEnvironment,
  CreateEnvironment,
  Environment,
} from '../../protocol/environments/schema.ts'
import { isRefusal, type Refusal, refuse, refuseFields } from '../../protocol/errors.ts'
import type { Registration } from '../../protocol/workers/socket.ts'
import { type Call, type Edge, scopeId } from '../call.ts'
import { originOf } from '../http/origin.ts'
import { sendNew } from '../http/send.ts'
import type { Prepare } from '../prepare.ts'
import { nameHolder, reservedFaults } from './environments/creation.ts'

/** Maximum number of a principal's workers that are searched for a session. */
const MAX_CANDIDATES = 200

const noWorker = refuse('not_found', { resource: 'worker' }, 'No such worker is connected.')

const workerAt = ({ world }: Edge, project: string, instance: string) => ({
  project,
  kind: 'worker' as const,
  id: world.id('worker', `${project}/${instance}`),
})

/** Returns the caller's connected workers, or only the worker with the given instance name. */
async function candidates(
  edge: Edge,
  call: Call,
  instance: string | undefined,
): Promise<readonly Registration[] | Refusal> {
  const project = scopeId(edge, call)
  const { id } = call.caller.principal
  let instances = instance === undefined ? undefined : [instance]
  if (!instances) {
    const listed = await edge.world.view(project, 'worker.list', {})
    if (isRefusal(listed)) return listed
    instances = listed.items
      .filter(({ principal_id }) => principal_id === id)
      .map(({ worker_instance_id }) => worker_instance_id)
      .slice(0, MAX_CANDIDATES)
  }
  const found: Registration[] = []
  for (const one of instances) {
    const registration = await edge.world.ask(workerAt(edge, project, one), 'registration', {})
    if (registration && isRefusal(registration)) return registration
    if (registration?.principal_id === id) found.push(registration)
  }
  return found
}

/** Returns the session that the request specifies. Refuses an ambiguous request. */
async function sessionOf(
  edge: Edge,
  call: Call,
  { worker_instance_id, worker_session_token }: AttachEnvironment,
): Promise<Registration | Refusal> {
  const all = await candidates(edge, call, worker_instance_id)
  if (isRefusal(all)) return all
  const token_hash =
    worker_session_token === undefined ? undefined : edge.world.hash(worker_session_token)
  const [one, ...others] = all.filter(
    (registration) => token_hash === undefined || registration.token_hash === token_hash,
  )
  if (!one) return noWorker
  return others.length === 0
    ? one
    : refuseFields({
        field: 'worker_instance_id',
        message: 'is required, because the caller has several connected workers',
      })
}

const creationOf = (
  { name, scope, owned_by, tags }: AttachEnvironment,
  { caller }: Call,
): CreateEnvironment & { readonly name: string; readonly provider: string } => ({
  name,
  provider: 'worker',
  owned_by: owned_by ?? caller.principal.id,
  mode: 'manual',
  ...(scope !== undefined && { scope }),
  ...(tags && { tags }),
})

/**
 * Returns the id of the destroyed environment that the worker still serves, which the attachment
 * replaces. Returns null if the worker serves no environment, or the requested one. Refuses a worker
 * that serves a different environment.
 */
async function replacedBy(
  { world }: Edge,
  project: string,
  creation: ReturnType<typeof creationOf>,
  { environment_id: id }: Registration,
): Promise<string | null | Refusal> {
  if (id === undefined) return null
  const other = refuse('conflict', { environment_id: id }, 'The worker serves another environment.')
  if (!isManagedEnvironment(id)) return other
  const record = await world.ask({ project, kind: 'environment', id }, 'get', {})
  if (record && isRefusal(record)) return record
  if (!record || record.status === 'destroyed') return id
  return record.name === creation.name && scopeKey(record) === scopeKey(creation) ? null : other
}

/**
 * Assigns the jobs of the environment to the session. `replaces`: the id of the destroyed
 * environment that the session still serves, or null. Returns `environment_worker_conflict` if
 * another live worker serves the environment.
 */
async function bind(
  edge: Edge,
  call: Call,
  environment_id: string,
  { session, instance }: Registration,
  replaces: string | null,
): Promise<Environment | Refusal> {
  const { world } = edge
  const project = scopeId(edge, call)
  const environment = { project, kind: 'environment', id: environment_id } as const
  const standing = await world.ask(environment, 'standing', {})
  if (!standing) return refuse('service_unavailable')
  if (isRefusal(standing)) return standing
  if (standing.worker.session !== session) return refuse('environment_worker_conflict')
  const origin = () => originOf(world, call.caller, call.incoming, call.request_id)
  const worker = workerAt(edge, project, instance)
  const input = { session, environment_id, ...(replaces !== null && { replaces }) }
  const bound = await sendNew(world, worker, 'worker.attach', input, origin())
  if (!isRefusal(bound)) return standing.environment
  // The session has ended or was attached elsewhere in the meantime. The worker's actor does not
  // report this to the environment, so it is reported here.
  if (bound.refused === 'not_found' || bound.refused === 'conflict')
    await sendNew(world, environment, 'environment.worker_gone', { session }, origin())
  return bound
}

/**
 * Prepares an attachment: finds the worker session of the request, and checks that its worker
 * serves no other environment. The call is answered after the jobs of the environment are assigned
 * to the session.
 */
export const prepareAttach: Prepare = async (edge, call) => {
  const body = call.body as AttachEnvironment
  const faults = reservedFaults(edge, body)
  if (faults.length > 0) return refuseFields(...faults)
  const worker = await sessionOf(edge, call, body)
  if (isRefusal(worker)) return worker
  const project = scopeId(edge, call)
  const creation = creationOf(body, call)
  const replaces = await replacedBy(edge, project, creation, worker)
  if (replaces !== null && isRefusal(replaces)) return replaces
  const { session, instance } = worker
  return {
    id: nameHolder(edge, project, body.name),
    input: { creation, worker: { session, instance } },
    answer: async (reply) => {
      const { id, status_code } = reply as Environment & { readonly status_code?: number }
      const record = await bind(edge, call, id, worker, replaces)
      return isRefusal(record)
        ? record
        : { ...record, ...(status_code !== undefined && { status_code }) }
    },
  }
}
