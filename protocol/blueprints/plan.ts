/**
 * Plans a blueprint: computes the outcome for each resource, and the commands that produce it. The
 * computation is pure. Previews and applies share it, so an apply does what its preview reported.
 *
 * Invariants:
 * P1. A resource is identified by its binding, otherwise by a unique name among resources without a
 *     binding (adoption). A resource without a match is created, except for a secret, which must
 *     exist already.
 * P2. Fields that the request does not contain are not changed.
 * P3. If neither fields nor bindings differ, no command is planned.
 */
import { isRefusal, type Refusal, refuse, refuseFields } from '../errors.ts'
import {
  canonicalJson,
  configuredFields,
  differencesOf,
  driftOf,
  type Hash,
  type KnownResource,
  omittedFields,
} from './compare.ts'
import { fixedField, type Requested, renamedToTaken } from './conflicts.ts'
import { type Found, identify, refuseDuplicates, requestedResources } from './identify.ts'
import { hasSymbol, idOf, placeOf, type Referable } from './references.ts'
import type { Reference } from './resources.ts'
import type { ApplyRequest, Change } from './schema.ts'
import { type BindingContext, bindingAfter, type Step, stepsOf } from './steps.ts'
import { type Identity, type InternalBinding, identityOf, isSameIdentity } from './stored.ts'
import { resourceFacts } from './types.ts'

/** The current state on which a plan is based. */
export interface Present {
  /** All bindings of the project. */
  readonly bindings: readonly InternalBinding[]
  /**
   * The resources that are bound to the blueprint, and all resources with a name from the request.
   */
  readonly resources: readonly KnownResource[]
  readonly exists: Referable['exists']
  readonly hash: Hash
}
export interface PlannedChange extends Omit<Change, 'fields' | 'drift' | 'omitted'> {
  readonly fields: NonNullable<Change['fields']>
  readonly drift: NonNullable<Change['drift']>
  readonly omitted: NonNullable<Change['omitted']>
  readonly known?: KnownResource
  readonly steps: readonly Step[]
  /** The binding after the change, without the id of the resource. */
  readonly binding?: Omit<InternalBinding, 'resource_id'>
  /**
   * The values, by field, of the reference fields that refer to resources to be created. These
   * values contain symbolic references.
   */
  readonly symbolic?: Readonly<Record<string, unknown>>
  /** The path of the part of the request that the change concerns. */
  readonly field: string
}
export interface Plan {
  readonly identity: Identity
  /** The outcome for each resource of the request. */
  readonly changes: readonly PlannedChange[]
  /** With `prune`: the deletions and releases of resources that the request does not contain. */
  readonly pruned: readonly PlannedChange[]
  /** Without `prune`: the orphans whose protection changes. */
  readonly rebound: readonly PlannedChange[]
  readonly orphans: readonly InternalBinding[]
  /** A hash of the plan and of the record versions on which it is based. */
  readonly plan_id: string
}

/** What the plans of all resources of a request share. */
interface PlanContext extends BindingContext {
  readonly referable: Referable
  /** The ids of the resources that the request deletes. */
  readonly pruned: ReadonlySet<string>
}

/**
 * Returns the settings of a resource, with ids in place of references. Ids of resources that do not
 * exist yet are symbolic.
 */
function withIds(
  { type, input, field }: Requested,
  { referable, pruned }: PlanContext,
): Readonly<Record<string, unknown>> | Refusal {
  const { fields } = resourceFacts[type]
  const wanted: Record<string, unknown> = { ...configuredFields(type, input) }
  for (const [name, value] of Object.entries(wanted)) {
    const { refers } = fields[name] ?? {}
    if (!refers) continue
    const paths = refers.list
      ? (value as readonly Reference[]).map((one, index) => [one, `${field}.${name}[${index}]`])
      : [[value, `${field}.${name}`]]
    const ids: string[] = []
    for (const [reference, path] of paths as [Reference, string][]) {
      const id = idOf(reference, refers.type, path, referable)
      if (isRefusal(id)) return id
      if (pruned.has(id))
        return refuse(
          'conflict',
          { resource_type: refers.type, resource_id: id, field: path },
          'The request prunes the resource to which it refers.',
        )
      if (refers.list && ids.includes(id))
        return refuseFields({ field: path, message: 'refers to the same resource again' })
      ids.push(id)
    }
    wanted[name] = refers.list ? ids : ids[0]
  }
  return wanted
}

function planOne(
  context: PlanContext,
  requested: Requested,
  { known, adopts }: Found,
): PlannedChange | Refusal {
  const { type, input, field } = requested
  const { hash } = context
  const wanted = withIds(requested, context)
  if (isRefusal(wanted)) return wanted
  const facts = resourceFacts[type]
  const differences = differencesOf(type, wanted, known, hash)
  const omitted = known ? omittedFields(known, wanted) : []
  const fixed = known && fixedField(type, wanted, known, differences)
  if (fixed !== undefined)
    return refuse('blueprint_immutable_field', {
      resource_type: type,
      key: input.key,
      resource_id: known?.id,
      field: fixed,
      path: `${field}.${fixed}`,
    })
  if (!facts.rows) {
    return known
      ? planned('unchanged', { known })
      : refuse(
          'not_found',
          { resource_type: type, key: input.key, name: input.name, field: `${field}.name` },
          `There is no ${type} of this name; create it first.`,
        )
  }
  const binding = bindingAfter(context, requested, wanted, known)
  const rebinds =
    known !== undefined &&
    canonicalJson({ ...binding, resource_id: known.id }) !== canonicalJson(known.binding)
  const steps = stepsOf(
    type,
    wanted,
    known,
    differences.map((one) => one.field),
    rebinds,
  )
  const symbolic = Object.fromEntries(
    Object.entries(wanted).filter(
      ([name, value]) => facts.fields[name]?.refers && hasSymbol(value),
    ),
  )
  return planned(
    !known ? 'created' : adopts ? 'adopted' : differences.length > 0 ? 'updated' : 'unchanged',
    { ...(known && { known }), steps, binding, symbolic },
  )

  function planned(
    action: Change['action'],
    more: Pick<PlannedChange, 'known' | 'binding' | 'symbolic'> & {
      readonly steps?: readonly Step[]
    },
  ): PlannedChange {
    return {
      resource_type: type,
      key: input.key,
      action,
      ...(known && { resource_id: known.id }),
      fields: differences,
      drift: known ? driftOf(known, hash) : [],
      omitted,
      field,
      steps: [],
      ...more,
    }
  }
}

/**
 * Returns a change that can be derived from the binding of a resource alone: a deletion, a release,
 * or a change to the binding.
 * @param more members of the binding that change.
 */
export function changeOfBound(
  { resource_id, ...binding }: InternalBinding,
  action: Change['action'],
  row: Step['row'],
  field: string,
  more: Partial<InternalBinding> = {},
): PlannedChange {
  return {
    resource_type: binding.resource_type,
    key: binding.key,
    resource_id,
    action,
    fields: [],
    drift: [],
    omitted: [],
    field,
    steps: [{ row, body: {} }],
    binding: { ...binding, ...more },
  }
}
/** Whether pruning deletes the resource of a binding. If not, pruning releases the resource. */
const isDeleted = ({ delete_on_destroy, resource_type }: InternalBinding): boolean =>
  delete_on_destroy && resourceFacts[resource_type].rows !== undefined
/**
 * Plans the deletion or release of a bound resource.
 * @param deletes whether to delete the resource, if its type has a row for deletion.
 */
export function planRemoval(
  binding: InternalBinding,
  deletes: boolean,
  resources: readonly KnownResource[],
  field: string,
): PlannedChange {
  const known = resources.find(({ id }) => id === binding.resource_id)
  const { rows } = resourceFacts[binding.resource_type]
  const change =
    deletes && rows
      ? changeOfBound(binding, 'deleted', rows.remove, field)
      : changeOfBound(binding, 'released', 'blueprint.unbind', field)
  return { ...change, ...(known && { known }) }
}

/** Returns the plan of a request, or a refusal with the first fault. */
export function planOf(request: ApplyRequest, present: Present): Plan | Refusal {
  const identity = identityOf(request)
  const requested = requestedResources(request)
  const twice = refuseDuplicates(requested)
  if (twice) return twice
  const keys = new Set(requested.map(({ type, input }) => placeOf(type, input.key)))
  const found: Found[] = []
  const ids = new Map<string, string | undefined>()
  const taken = new Map<string, string>()
  for (const one of requested) {
    const match = identify(one, identity, present, keys)
    if (isRefusal(match)) return match
    const place = placeOf(one.type, one.input.key)
    if (match.known) {
      const first = taken.get(match.known.id)
      if (first !== undefined)
        return refuse(
          'blueprint_ambiguous_name',
          {
            resource_type: one.type,
            key: one.input.key,
            resource_id: match.known.id,
            field: one.field,
          },
          `${first} refers to the same resource.`,
        )
      taken.set(match.known.id, one.field)
    }
    found.push(match)
    ids.set(place, match.known?.id)
  }
  const renamed = renamedToTaken(requested, found, present.resources)
  if (renamed) return renamed
  const referable: Referable = {
    identity,
    requested: ids,
    bindings: present.bindings,
    exists: present.exists,
  }
  const orphans = present.bindings.filter(
    (binding) => isSameIdentity(binding, identity) && !taken.has(binding.resource_id),
  )
  const gone = new Set(
    request.prune ? orphans.filter(isDeleted).map(({ resource_id }) => resource_id) : [],
  )
  const context: PlanContext = { request, identity, referable, pruned: gone, hash: present.hash }
  const changes: PlannedChange[] = []
  for (const [index, one] of requested.entries()) {
    const change = planOne(context, one, found[index] ?? {})
    if (isRefusal(change)) return change
    changes.push(change)
  }
  const pruned = request.prune
    ? [...orphans]
        .sort((a, b) => resourceFacts[b.resource_type].tier - resourceFacts[a.resource_type].tier)
        .map((binding) => planRemoval(binding, isDeleted(binding), present.resources, 'prune'))
    : []
  const isProtected = request.protect_resources
  const rebound =
    request.prune || isProtected === undefined
      ? []
      : orphans
          .filter((binding) => binding.protected !== isProtected)
          .map((binding) =>
            changeOfBound(binding, 'unchanged', 'blueprint.bind', 'protect_resources', {
              protected: isProtected,
            }),
          )
  return {
    identity,
    changes,
    pruned,
    rebound,
    orphans,
    plan_id: present.hash(
      canonicalJson([
        identity,
        request.blueprint_version,
        [...changes, ...pruned].map(
          ({ resource_type, key, action, steps, binding, known, resource_id }) => [
            resource_type,
            key,
            action,
            resource_id,
            steps,
            binding,
            known?.updated_at,
          ],
        ),
        orphans.map(({ resource_id }) => resource_id),
        rebound.map(({ resource_id, binding }) => [resource_id, binding?.protected]),
      ]),
    ),
  }
}
