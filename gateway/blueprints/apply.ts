/**
 * Applies blueprints. A preview only plans and checks. An apply also acquires the hold of the
 * blueprint, executes the plan, and records the result at the blueprint's actor, which releases the
 * hold.
 *
 * Invariants:
 * A1. A preview and an apply use the same planner (`protocol/blueprints`), so an apply with the
 *     `plan_id` of a preview does what the preview reported, or is refused.
 * A2. A failed apply keeps its completed changes. A retry finds the created resources by their
 *     bindings and completes the rest.
 * A3. When a resource changes between planning and execution, the request is planned again, unless
 *     it requires a specific plan (`plan_id`).
 */
import { type Plan, type PlannedChange, planOf } from '../../protocol/blueprints/plan.ts'
import { placeOf } from '../../protocol/blueprints/references.ts'
import { isPublished, type ResourceTypeName } from '../../protocol/blueprints/resources.ts'
import type {
  ApplyRequest,
  ApplyResult,
  Binding,
  Change,
  Included,
} from '../../protocol/blueprints/schema.ts'
import { identityOf, shownBinding } from '../../protocol/blueprints/stored.ts'
import { resourceFacts } from '../../protocol/blueprints/types.ts'
import type { Origin } from '../../protocol/entry.ts'
import { isRefusal, type Refusal, refuse, refuseFields } from '../../protocol/errors.ts'
import { type Prefix, slotOf } from '../../protocol/ids.ts'
import { type Call, type Edge, operationOf, scopeId } from '../call.ts'
import { resolveProvider } from '../commands/environments/providers.ts'
import type { Identity as CallIdentity } from '../http/idempotency.ts'
import type { Prepare, Prepared } from '../prepare.ts'
import { executeChanges, locateRefusal, refuseRows } from './execute.ts'
import { withoutHiddenDrift } from './hidden-drift.ts'
import { blueprintId, type Hold, prepareWhileHeld } from './hold.ts'
import { bindingsOf, presentOf } from './present.ts'
import { refusePlan } from './validate.ts'

/**
 * Refusals after which an apply is planned again. `already_exists` means that another request, or a
 * late command of an interrupted apply, took a name after planning.
 */
const isOutdated: ReadonlySet<string> = new Set(['blueprint_plan_outdated', 'already_exists'])
/** Maximum number of plans per apply when the project changes concurrently. */
const MAX_PLANS = 4
/**
 * Resource types whose ids the gateway generates, with the name of the type as the prefix. Channels
 * and environments get their ids from the actors that reserve their names.
 */
const generatedTypes = [
  'action',
  'toolkit',
  'skill',
  'agent',
  'role',
  'webhook',
  'workflow',
  'loop',
  'table',
] as const satisfies readonly (ResourceTypeName & Prefix)[]

/** Returns the values of the call's `include` parameter. */
export const requestedIncludes = ({ query }: Pick<Call, 'query'>): ReadonlySet<Included> =>
  new Set((query['include'] as Included[] | undefined) ?? [])
/**
 * Returns the bindings in the form of the API, ordered by tier, type and key. Bindings of resource
 * types that are not published are included only with `further`.
 */
export const shownBindings = <T extends Binding>(
  bindings: readonly T[],
  further: boolean,
): Binding[] =>
  bindings
    .filter(({ resource_type }) => further || isPublished(resource_type))
    .sort(inOrder)
    .map(shownBinding)
const inOrder = (a: Binding, b: Binding): number =>
  resourceFacts[a.resource_type].tier - resourceFacts[b.resource_type].tier ||
  (a.resource_type < b.resource_type ? -1 : a.resource_type > b.resource_type ? 1 : 0) ||
  (a.key < b.key ? -1 : 1)

/** Replaces the provider aliases of environments with the names of the providers. */
function withProviders({ world }: Edge, request: ApplyRequest): ApplyRequest | Refusal {
  const { environments } = request.resources
  if (!environments) return request
  const resolved = []
  for (const [index, one] of environments.entries()) {
    if (one.provider === undefined) {
      resolved.push(one)
      continue
    }
    const provider = resolveProvider(world.settings, one.provider)
    if (isRefusal(provider))
      return locateRefusal(
        {
          resource_type: 'environment',
          key: one.key,
          field: `resources.environments[${index}]`,
        },
        provider,
      )
    resolved.push({ ...one, provider })
  }
  return { ...request, resources: { ...request.resources, environments: resolved } }
}

const commandsOf = ({ changes, pruned, rebound }: Plan): PlannedChange[] => [
  ...changes,
  ...pruned,
  ...rebound,
]

async function planned(
  edge: Edge,
  call: Call,
  origin: Origin,
  request: ApplyRequest,
): Promise<Plan | Refusal> {
  const present = await presentOf(edge, scopeId(edge, call), request, call.caller)
  if (isRefusal(present)) return present
  const plan = planOf(request, present)
  if (isRefusal(plan)) return plan
  return (
    refuseRows(edge, call, commandsOf(plan)) ??
    (await refusePlan(edge, call, origin, [...plan.changes, ...plan.pruned])) ??
    (await withoutHiddenDrift(edge.world, scopeId(edge, call), call.caller, plan))
  )
}

const shownChange = (
  { resource_type, key, action, resource_id, fields, drift, omitted }: PlannedChange,
  ids: Readonly<Record<string, string>>,
  include: ReadonlySet<Included>,
): Change => {
  const id = resource_id ?? ids[placeOf(resource_type, key)]
  return {
    resource_type,
    key,
    action,
    ...(id !== undefined && id !== '' && { resource_id: id }),
    ...(include.has('plan') && { fields }),
    ...(include.has('drift') && { drift }),
    ...(include.has('plan') && omitted.length > 0 && { omitted }),
  }
}
function resultOf(
  call: Call,
  request: ApplyRequest,
  plan: Plan,
  bindings: readonly Binding[],
  ids: Readonly<Record<string, string>>,
): ApplyResult {
  const include = requestedIncludes(call)
  const further =
    include.has('further_types') ||
    plan.changes.some(({ resource_type }) => !isPublished(resource_type))
  return {
    status: request.mode === 'preview' ? 'previewed' : 'applied',
    ...plan.identity,
    ...(request.blueprint_version && { blueprint_version: request.blueprint_version }),
    changes: [...plan.changes, ...plan.pruned].map((change) => shownChange(change, ids, include)),
    bindings: shownBindings(bindings, further),
    ...(include.has('plan') && { plan_id: plan.plan_id }),
    ...(include.has('orphans') && { orphans: shownBindings(plan.orphans, true) }),
  }
}

/**
 * Binds the idempotency key of a request, if any, to the request. Returns
 * `idempotency_key_conflict` if a different request used the key, even if that request is still
 * running.
 */
async function bindKey(
  { world }: Edge,
  project: string,
  { command_id, fingerprint, seed }: CallIdentity,
  origin: Origin,
): Promise<Refusal | undefined> {
  if (seed === undefined || fingerprint === undefined) return undefined
  const bound = await world.command({
    project,
    kind: 'blueprint',
    id: world.id('blueprint', seed),
    command_id,
    fingerprint,
    origin,
    name: 'blueprint.key',
    input: {},
  })
  return isRefusal(bound) ? bound : undefined
}

/**
 * Returns the answer to the earlier request with the same idempotency key. Returns undefined if
 * this request does not repeat another one.
 */
async function firstAnswer(
  edge: Edge,
  call: Call,
  { command_id, fingerprint, seed }: CallIdentity,
  origin: Origin,
  id: string,
): Promise<Prepared | Refusal | undefined> {
  if (seed === undefined || fingerprint === undefined) return undefined
  const outcome = await edge.world.commandRow({
    project: scopeId(edge, call),
    kind: 'blueprint',
    id,
    command_id,
    fingerprint,
    name: operationOf(call),
    origin,
    // The empty holder is always refused, so the actor can only return a remembered answer.
    input: { holder: '' },
  })
  if (!isRefusal(outcome)) return { done: outcome.reply }
  return outcome.refused === 'blueprint_busy' ? undefined : outcome
}

/** Drops the cached project and organization directories on every gateway and executor. */
export const dropDirectories = async ({ world }: Edge, project: string): Promise<void> => {
  await Promise.all([world.forget(world.organization()), world.forget(project)])
}

/**
 * Generates ids for the resources that the plan creates, keyed by resource type and key
 * (`placeOf`).
 */
function newIds(edge: Edge, project: string, changes: readonly PlannedChange[]) {
  return Object.fromEntries(
    changes.flatMap(({ resource_type, key, action }) => {
      const prefix = generatedTypes.find((type) => type === resource_type)
      if (action !== 'created' || prefix === undefined) return []
      // The memory of an agent is an actor with the same id as the agent. An agent therefore gets a
      // random slot, which spreads the memories over the shards.
      const isNear = resourceFacts[resource_type].owner === 'project' && resource_type !== 'agent'
      const slot = isNear ? slotOf(project) : undefined
      return [[placeOf(resource_type, key), edge.world.id(prefix, undefined, slot)]]
    }),
  )
}

/**
 * Reserves a new id for a resource whose creation was refused because the reservation of an
 * interrupted apply cannot be used any more. Either the reserved id belongs to a resource that has
 * since been deleted or bound under another key, or the reservation of the workflow handle has
 * expired. Returns whether a new id was reserved.
 */
async function renewReservation(
  hold: Hold,
  { refused, details }: Refusal,
  wanted: Readonly<Record<string, string>>,
  reserved: Readonly<Record<string, string>>,
): Promise<boolean> {
  const { resource_type, key } = (details ?? {}) as Partial<PlannedChange>
  if (resource_type === undefined || key === undefined) return false
  const place = placeOf(resource_type, key)
  const id = wanted[place]
  if (id === undefined || reserved[place] === id) return false
  const isUsed = refused === 'conflict' || refused === 'blueprint_plan_outdated'
  // The organization releases a reserved handle when the workflow is not created in time.
  if (!isUsed && details?.['reservation'] !== 'expired') return false
  return !isRefusal(await hold.reserve({ [place]: id }, [place]))
}

/** Plans and executes the request once. Returns `outdated` when planning again may succeed. */
async function attempt(
  edge: Edge,
  call: Call,
  origin: Origin,
  request: ApplyRequest,
  hold: Hold,
): Promise<{ readonly result: ApplyResult } | { readonly outdated: Refusal } | Refusal> {
  const project = scopeId(edge, call)
  const plan = await planned(edge, call, origin, request)
  if (isRefusal(plan)) return plan
  if (request.plan_id !== undefined && request.plan_id !== plan.plan_id)
    return refuse('blueprint_plan_outdated', { plan_id: plan.plan_id })
  const wanted = newIds(edge, project, plan.changes)
  const reserved = Object.keys(wanted).length === 0 ? {} : await hold.reserve(wanted)
  if (isRefusal(reserved)) return reserved
  const ids: Record<string, string> = { ...reserved }
  for (const { resource_type, key, resource_id } of commandsOf(plan))
    if (resource_id !== undefined) ids[placeOf(resource_type, key)] = resource_id
  const execution = { edge, call, origin, ids, hold }
  const refused =
    (await executeChanges(execution, [...plan.changes, ...plan.rebound])) ??
    (await executeChanges(execution, plan.pruned, true))
  if (refused) {
    const isStale = await renewReservation(hold, refused, wanted, reserved)
    return request.plan_id === undefined && (isStale || isOutdated.has(refused.refused))
      ? { outdated: refused }
      : refused
  }
  const bindings = await bindingsOf(edge, project, plan.identity)
  return isRefusal(bindings) ? bindings : { result: resultOf(call, request, plan, bindings, ids) }
}

/** Prepares an apply. A preview is answered without a command. */
export const apply: Prepare = async (edge, call, identity, origin) => {
  const project = scopeId(edge, call)
  const request = withProviders(edge, call.body as ApplyRequest)
  if (isRefusal(request)) return request
  if (request.mode === 'preview') {
    const plan = await planned(edge, call, origin, request)
    if (isRefusal(plan)) return plan
    const bindings = await bindingsOf(edge, project, plan.identity)
    return isRefusal(bindings) ? bindings : { done: resultOf(call, request, plan, bindings, {}) }
  }
  if (request.prune && request.plan_id === undefined)
    return refuseFields({
      field: 'plan_id',
      message: 'is required with prune; take it from a preview with include=plan',
    })
  const blueprint = identityOf(request)
  const id = blueprintId(edge, project, blueprint)
  const first =
    (await bindKey(edge, project, identity, origin)) ??
    (await firstAnswer(edge, call, identity, origin, id))
  if (first) return first
  return prepareWhileHeld(edge, project, blueprint, origin, async (hold) => {
    // If this request is a repeat, the first one may have ended while this one waited for the hold.
    const late = await firstAnswer(edge, call, identity, origin, id)
    if (late) return late
    for (let plans = 1; ; plans++) {
      const outcome = await attempt(edge, call, origin, request, hold)
      // Announced even if nothing changed, because an interrupted apply may have left changes
      // unannounced.
      await dropDirectories(edge, project)
      if ('result' in outcome)
        return { id, omitsBody: true, input: { holder: hold.holder, result: outcome.result } }
      if (!('outdated' in outcome)) return outcome
      if (plans === MAX_PLANS) return outcome.outdated
    }
  })
}
