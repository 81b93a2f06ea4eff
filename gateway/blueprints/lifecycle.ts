/** Protection and deletion of blueprints, and the queries about bindings, drift and export. */
import { driftOf } from '../../protocol/blueprints/compare.ts'
import type { PlannedChange } from '../../protocol/blueprints/plan.ts'
import { placeOf } from '../../protocol/blueprints/references.ts'
import { isPublished } from '../../protocol/blueprints/resources.ts'
import type { DeleteResult, DriftItem } from '../../protocol/blueprints/schema.ts'
import { type Identity, identityOf, type StoredBinding } from '../../protocol/blueprints/stored.ts'
import { resourceFacts } from '../../protocol/blueprints/types.ts'
import type { Origin } from '../../protocol/entry.ts'
import { isRefusal, type Refusal, refuse } from '../../protocol/errors.ts'
import { type Call, type Edge, scopeId } from '../call.ts'
import { answer, type LocalContext, type LocalQuery } from '../listing.ts'
import type { Prepare } from '../prepare.ts'
import { announce, apply, includedIn, shownBindings } from './apply.ts'
import { execute } from './execute.ts'
import { exported } from './export.ts'
import { takeHold } from './hold.ts'
import { bindingsOf, boundResources } from './present.ts'

const identityOfCall = ({ slots, query }: Pick<Call, 'slots' | 'query'>): Identity =>
  identityOf({
    ...(typeof query['namespace'] === 'string' && { namespace: query['namespace'] }),
    ...(slots['blueprint_key'] !== undefined && { blueprint_key: slots['blueprint_key'] }),
  })
const change = (
  binding: StoredBinding,
  row: PlannedChange['steps'][number]['row'],
  more: Partial<StoredBinding> = {},
): PlannedChange => {
  const { resource_id, ...rest } = binding
  return {
    resource_type: binding.resource_type,
    key: binding.key,
    resource_id,
    action: 'updated',
    fields: [],
    drift: [],
    field: 'body',
    steps: [{ row, body: {} }],
    binding: { ...rest, ...more },
  }
}

/** Performs one command for each binding of a blueprint, and returns what its actor records. */
async function forAll(
  edge: Edge,
  call: Call,
  origin: Origin,
  changesOf: (
    bindings: readonly StoredBinding[],
  ) => Promise<readonly PlannedChange[] | Refusal> | readonly PlannedChange[] | Refusal,
  input: (before: readonly StoredBinding[], after: readonly StoredBinding[]) => object,
) {
  const project = scopeId(edge, call)
  const identity = identityOfCall(call)
  const hold = await takeHold(edge, project, identity, origin)
  if (isRefusal(hold)) return hold
  const outcome = await (async () => {
    const bindings = await bindingsOf(edge, project, identity)
    if (isRefusal(bindings)) return bindings
    const changes = await changesOf(bindings)
    if (isRefusal(changes)) return changes
    const ids = Object.fromEntries(
      bindings.map(({ resource_type, key, resource_id }) => [
        placeOf(resource_type, key),
        resource_id,
      ]),
    )
    const refused = await execute({ edge, call, origin, ids }, changes, true)
    await announce(edge, project)
    if (refused) return refused
    const after = await bindingsOf(edge, project, identity)
    return isRefusal(after) ? after : input(bindings, after)
  })().catch(async (error: unknown) => {
    await hold.release()
    throw error
  })
  if (isRefusal(outcome as Refusal)) {
    await hold.release()
    return outcome as Refusal
  }
  hold.stop()
  return { id: hold.id, input: { holder: hold.holder, ...identity, ...outcome } }
}

const protect: Prepare = (edge, call, _, origin) => {
  const isProtected = call.body['protected'] === true
  return forAll(
    edge,
    call,
    origin,
    (bindings) =>
      bindings.length === 0
        ? refuse('not_found', undefined, 'There is no such blueprint in this project.')
        : bindings
            .filter((binding) => binding.protected !== isProtected)
            .map((binding) => change(binding, 'blueprint.bind', { protected: isProtected })),
    (_, after) => ({ items: shownBindings(after, includedIn(call).has('further_types')) }),
  )
}

function resultOfDeletion(
  call: Call,
  before: readonly StoredBinding[],
  isDeleted: (binding: StoredBinding) => boolean,
): DeleteResult {
  const further = includedIn(call).has('further_types')
  const { namespace } = identityOfCall(call)
  const retained = before.filter((binding) => !isDeleted(binding))
  return {
    status: 'deleted',
    ...(namespace !== undefined && { namespace }),
    blueprint_key: call.slots['blueprint_key'] ?? '',
    deleted: shownBindings(before.filter(isDeleted), further),
    retained: shownBindings(retained, further),
  }
}

const remove: Prepare = async (edge, call, _, origin) => {
  const project = scopeId(edge, call)
  const present = await bindingsOf(edge, project, identityOfCall(call))
  if (isRefusal(present)) return present
  // Clients repeat a deletion whose answer was lost, so a deleted blueprint is no error.
  if (present.length === 0) return { done: resultOfDeletion(call, [], () => true) }
  const all = call.query['delete_retained'] === true
  const isDeleted = ({ delete_on_destroy }: StoredBinding): boolean => all || delete_on_destroy
  return forAll(
    edge,
    call,
    origin,
    async (bindings) => {
      const known = await boundResources(edge, project, bindings)
      if (isRefusal(known)) return known
      return bindings.map((binding) => {
        const { rows } = resourceFacts[binding.resource_type]
        const found = known.find(({ id }) => id === binding.resource_id)
        return {
          ...change(binding, isDeleted(binding) && rows ? rows.remove : 'blueprint.unbind'),
          ...(found && { known: found }),
        }
      })
    },
    (before) => ({ result: resultOfDeletion(call, before, isDeleted) }),
  )
}

/** Preparations of the command rows, by row name. */
export const blueprintPreparations: Readonly<Record<string, Prepare>> = {
  'blueprint.apply': apply,
  'blueprint.protect': protect,
  'blueprint.delete': remove,
}

const namesFurther = (include: readonly string[] | undefined): boolean =>
  include?.includes('further_types') === true
/** The drift of all bound resources of a blueprint. */
async function driftItems(
  { world, directory, project = '' }: LocalContext,
  identity: Identity,
): Promise<DriftItem[] | Refusal> {
  const reading = { world, directory }
  const bindings = await bindingsOf(reading, project, identity)
  if (isRefusal(bindings)) return bindings
  const resources = await boundResources(reading, project, bindings)
  if (isRefusal(resources)) return resources
  const known = new Map(resources.map((one) => [one.id, one]))
  return bindings.map(({ resource_type, key, resource_id }) => {
    const one = known.get(resource_id)
    const fields = one ? driftOf(one, (text) => world.hash(text).slice(0, 16)) : []
    return {
      resource_type,
      key,
      resource_id,
      state: !one ? 'deleted' : fields.length > 0 ? 'changed' : 'unchanged',
      fields,
    }
  })
}

/** Handlers of the query rows, by row name. */
export const blueprintQueries: Readonly<Record<string, LocalQuery>> = {
  'blueprint.bindings': answer<'blueprint.bindings'>(
    async ({ world, project = '' }, { namespace, blueprint_key, include }) => {
      const found = await bindingsOf({ world }, project)
      if (isRefusal(found)) return found
      return {
        items: shownBindings(
          found.filter(
            (binding) =>
              (namespace === undefined || (binding.namespace ?? '') === namespace) &&
              (blueprint_key === undefined || binding.blueprint_key === blueprint_key),
          ),
          namesFurther(include),
        ),
      }
    },
  ),
  'blueprint.drift': answer<'blueprint.drift'>(
    async (context, { blueprint_key, namespace, include }) => {
      const items = await driftItems(
        context,
        identityOf({ blueprint_key, ...(namespace !== undefined && { namespace }) }),
      )
      if (isRefusal(items)) return items
      const further = namesFurther(include)
      return {
        items: items.filter(({ resource_type }) => further || isPublished(resource_type)),
      }
    },
  ),
  'blueprint.export': answer<'blueprint.export'>((context, input) => exported(context, input)),
}
