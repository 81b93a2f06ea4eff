/**
 * Prepares the commands of environments. A command that names an environment is decided by the
 * actor that holds the name, in the shard of the environments with this name. The environment of a
 * run, an agent or a loop (its owner) needs no name: without a name, its id is derived from the
 * owner's id. The first job of the owner derives the same id, so a command and a job never create
 * two environments for one owner.
 */

import type { Command, Origin } from '../../../protocol/entry.ts'
import {
  boundEnvironment,
  type EnvironmentFacts,
  scopeKey,
} from '../../../protocol/environments/commands.ts'
import type {
  Environment,
  UpdateEnvironment,
  WorkerStarted,
} from '../../../protocol/environments/schema.ts'
import {
  isRefusal,
  isServiceFault,
  type Refusal,
  refuse,
  refuseFields,
} from '../../../protocol/errors.ts'
import { isId } from '../../../protocol/ids.ts'
import { patch } from '../../../protocol/patch.ts'
import { type Call, type Edge, scopeId } from '../../call.ts'
import type { Identity } from '../../http/idempotency.ts'
import { sendNew } from '../../http/send.ts'
import type { Outcome } from '../../ports.ts'
import type { Prepare, Prepared } from '../../prepare.ts'
import { prepareAttach } from '../environment-attach.ts'
import { nameHolder, type ResolvedCreation, reservedFaults, resolveCreation } from './creation.ts'
import { acquire, acquireFound, release, withoutAdditions } from './leases.ts'

/** The members of a command that come from its request. */
type Sent = Pick<Command, 'command_id' | 'origin' | 'fingerprint'>
const sentBy = ({ command_id, fingerprint }: Identity, origin: Origin): Sent => ({
  command_id,
  origin,
  ...(fingerprint !== undefined && { fingerprint }),
})
const inputOf = ({ creation, fault }: EnvironmentFacts) => ({ creation, ...(fault && { fault }) })
/**
 * Resolves the creation of a call, and binds its idempotency key to the request. Without the
 * binding, a different request under the same key could reach the actor that holds a different
 * name, and would not be detected. Such a request is refused with `idempotency_key_conflict`.
 */
async function begin(
  edge: Edge,
  call: Call,
  identity: Identity,
  origin: Origin,
): Promise<ResolvedCreation | Refusal> {
  const resolved = await resolveCreation(edge, call, identity)
  if (isRefusal(resolved) || identity.seed === undefined) return resolved
  const bound = await edge.world.command({
    ...sentBy(identity, origin),
    project: scopeId(edge, call),
    kind: 'environment_name',
    id: edge.world.id('environment_name', identity.seed),
    name: 'environment_name.key',
    input: {},
  })
  return isRefusal(bound) ? bound : resolved
}
/** The environment of a run, an agent or a loop. */
interface OwnedEnvironment {
  readonly owner_id: string
  readonly facts: EnvironmentFacts
}
/**
 * Creates the environment of an owner, under the id that is derived from the owner's id. Returns
 * `already_exists` if the environment exists and is not destroyed.
 */
function bind(
  edge: Edge,
  call: Call,
  { owner_id, facts }: OwnedEnvironment,
  sent: Sent,
): Promise<Outcome<Environment>> {
  return edge.world.command({
    ...sent,
    project: scopeId(edge, call),
    kind: 'environment',
    id: boundEnvironment(owner_id),
    name: 'environment.bind',
    input: facts,
  })
}

const create: Prepare = async (edge, call, identity, origin) => {
  const resolved = await begin(edge, call, identity, origin)
  if (isRefusal(resolved)) return resolved
  const { facts, holder, binding, isNamed } = resolved
  if (!binding || isNamed) return { id: holder, input: inputOf(facts) }
  const owned = { owner_id: binding.owner_id, facts }
  const outcome = await bind(edge, call, owned, sentBy(identity, origin))
  return isRefusal(outcome) ? outcome : { done: outcome.reply }
}

/** Finds or creates the environment of a run, an agent or a loop, and acquires its lease. */
async function matchBound(
  edge: Edge,
  call: Call,
  owned: OwnedEnvironment,
  sent: Sent,
): Promise<Prepared | Refusal> {
  const made = await bind(edge, call, owned, sent)
  if (isRefusal(made) && made.refused !== 'already_exists') return made
  const id = boundEnvironment(owned.owner_id)
  const acquired = await acquireFound(edge, call, id, leaseCommand(sent))
  return isRefusal(acquired) ? acquired : { done: acquired }
}
const leaseCommand = (sent: Sent): Sent => ({ ...sent, command_id: `${sent.command_id}.lease` })
const match: Prepare = async (edge, call, identity, origin) => {
  const resolved = await begin(edge, call, identity, origin)
  if (isRefusal(resolved)) return resolved
  const { facts, holder, binding, isNamed } = resolved
  const sent = sentBy(identity, origin)
  if (binding && !isNamed)
    return matchBound(edge, call, { owner_id: binding.owner_id, facts }, sent)
  return {
    id: holder,
    input: inputOf(facts),
    answer: (reply) => acquireFound(edge, call, (reply as Environment).id, leaseCommand(sent)),
  }
}

const recordOf = ({ world }: Edge, project: string, id: string) =>
  isId(id, 'environment')
    ? world.ask({ project, kind: 'environment', id }, 'get', {})
    : refuse('not_found')
/** A name that was reserved for an environment under a further key. */
interface Taken {
  readonly holder: string
  readonly key: string
}
/**
 * Reserves the name in the new scope, if the request changes the scope. Returns the update time of
 * the record that was read. If the record has changed since, the environment refuses the update,
 * and `takeName` must be called again.
 */
async function takeName(
  edge: Edge,
  call: Call,
  origin: Origin,
  reservation: string,
): Promise<{ readonly as_of: string; readonly taken?: Taken } | Refusal> {
  const project = scopeId(edge, call)
  const id = call.slots['environment_id'] ?? ''
  const before = await recordOf(edge, project, id)
  if (isRefusal(before)) return before
  if (!before) return refuse('not_found')
  const { scope, owned_by } = call.body as UpdateEnvironment
  const after = patch(before, {
    ...(scope !== undefined && { scope }),
    ...(owned_by !== undefined && { owned_by }),
  })
  const key = scopeKey(after)
  if (key === scopeKey(before)) return { as_of: before.updated_at }
  const { name } = before
  const holder = nameHolder(edge, project, name)
  const to = { project, kind: 'environment_name', id: holder } as const
  const input = { name, key, environment_id: id, reservation }
  const taken = await sendNew(edge.world, to, 'environment_name.take', input, origin)
  return isRefusal(taken) ? taken : { as_of: before.updated_at, taken: { holder, key } }
}
const update: Prepare = async (edge, call, _, origin) => {
  const { scope, owned_by, tags } = call.body as UpdateEnvironment
  const faults = reservedFaults(edge, tags === undefined ? {} : { tags })
  if (faults.length > 0) return refuseFields(...faults)
  if (scope === undefined && owned_by === undefined) return {}
  const { world } = edge
  const until = world.monotonic() + world.settings.deadline
  const reservation = world.newCommandId()
  const first = await takeName(edge, call, origin, reservation)
  if (isRefusal(first)) return first
  const taken = first.taken ? [first.taken] : []
  return {
    input: { as_of: first.as_of },
    revise: async (outcome) => {
      if (!isRefusal(outcome) || outcome.details?.['record'] !== 'changed') return undefined
      if (world.monotonic() >= until) return refuse('service_unavailable', { retry_after: 1 })
      const next = await takeName(edge, call, origin, reservation)
      if (isRefusal(next)) return next
      if (next.taken) taken.push(next.taken)
      return { as_of: next.as_of }
    },
    after: async (outcome) => {
      // If the outcome is unknown, the environment may still use the name.
      if (!isRefusal(outcome) || isServiceFault(outcome)) return
      const environment_id = call.slots['environment_id'] ?? ''
      for (const { holder, key } of taken) {
        const to = { project: scopeId(edge, call), kind: 'environment_name', id: holder } as const
        const input = { key, environment_id, reservation }
        await sendNew(world, to, 'environment_name.release', input, origin)
      }
    },
  }
}

const startWorker: Prepare = () => ({
  answer: (reply) => {
    const { environment, ...rest } = reply as WorkerStarted
    return {
      ...rest,
      environment: withoutAdditions(environment),
      ...(!rest.started && { status_code: 200 }),
    }
  },
})

/** Preparations of the environment rows, by row name. */
export const environmentPreparations: Readonly<Record<string, Prepare>> = {
  'environment.create': create,
  'environment.acquire_matching': match,
  'environment.update': update,
  'environment.acquire': acquire,
  'environment.release': release,
  'environment.start_worker': startWorker,
  'environment.attach': prepareAttach,
}
