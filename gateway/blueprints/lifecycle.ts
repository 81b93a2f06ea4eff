/**
 * Protects and deletes blueprints, and exports the preparations of the blueprint rows.
 *
 * Invariant: a failed deletion can be repeated. Bindings that were not processed remain.
 */
import { changeOfBound, type PlannedChange, planRemoval } from '../../protocol/blueprints/plan.ts'
import { placeOf } from '../../protocol/blueprints/references.ts'
import type { DeleteResult } from '../../protocol/blueprints/schema.ts'
import {
  type Identity,
  type InternalBinding,
  identityOf,
} from '../../protocol/blueprints/stored.ts'
import type { Origin } from '../../protocol/entry.ts'
import { isRefusal, type Refusal, refuse } from '../../protocol/errors.ts'
import { type Call, type Edge, scopeId } from '../call.ts'
import type { Prepare, Prepared } from '../prepare.ts'
import { apply, dropDirectories, requestedIncludes, shownBindings } from './apply.ts'
import { executeChanges } from './execute.ts'
import { prepareWhileHeld } from './hold.ts'
import { bindingsOf, boundResources } from './present.ts'

const identityOfCall = ({ slots, query }: Pick<Call, 'slots' | 'query'>): Identity =>
  identityOf({
    ...(typeof query['namespace'] === 'string' && { namespace: query['namespace'] }),
    ...(slots['blueprint_key'] !== undefined && { blueprint_key: slots['blueprint_key'] }),
  })
/** A change to all bindings of a blueprint. */
interface Sweep {
  plan(
    bindings: readonly InternalBinding[],
  ): Promise<readonly PlannedChange[] | Refusal> | readonly PlannedChange[] | Refusal
  /** Returns the additional input of the command that ends the hold. */
  record(before: readonly InternalBinding[], after: readonly InternalBinding[]): object
}
/** Executes a sweep while the blueprint is held, higher tiers first. */
function forAll(
  edge: Edge,
  call: Call,
  origin: Origin,
  { plan, record }: Sweep,
): Promise<Prepared | Refusal> {
  const project = scopeId(edge, call)
  const identity = identityOfCall(call)
  return prepareWhileHeld(edge, project, identity, origin, async (hold) => {
    const bindings = await bindingsOf(edge, project, identity)
    if (isRefusal(bindings)) return bindings
    const changes = await plan(bindings)
    if (isRefusal(changes)) return changes
    const ids = Object.fromEntries(
      bindings.map(({ resource_type, key, resource_id }) => [
        placeOf(resource_type, key),
        resource_id,
      ]),
    )
    const refused = await executeChanges({ edge, call, origin, ids, hold }, changes, true)
    await dropDirectories(edge, project)
    if (refused) return refused
    const after = await bindingsOf(edge, project, identity)
    if (isRefusal(after)) return after
    return {
      id: hold.id,
      input: { holder: hold.holder, ...identity, ...record(bindings, after) },
    }
  })
}

const protect: Prepare = (edge, call, _, origin) => {
  const isProtected = call.body['protected'] === true
  return forAll(edge, call, origin, {
    plan: (bindings) =>
      bindings.length === 0
        ? refuse('not_found', undefined, 'There is no such blueprint in this project.')
        : bindings
            .filter((binding) => binding.protected !== isProtected)
            .map((binding) =>
              changeOfBound(binding, 'updated', 'blueprint.bind', 'body', {
                protected: isProtected,
              }),
            ),
    record: (_, after) => ({
      items: shownBindings(after, requestedIncludes(call).has('further_types')),
    }),
  })
}

function resultOfDeletion(
  call: Call,
  before: readonly InternalBinding[],
  isDeleted: (binding: InternalBinding) => boolean,
): DeleteResult {
  const further = requestedIncludes(call).has('further_types')
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
  // Deletion is idempotent, because a client may repeat it after losing the answer.
  if (present.length === 0) return { done: resultOfDeletion(call, [], () => true) }
  const all = call.query['delete_retained'] === true
  const isDeleted = ({ delete_on_destroy }: InternalBinding): boolean => all || delete_on_destroy
  return forAll(edge, call, origin, {
    plan: async (bindings) => {
      const known = await boundResources(edge, project, bindings)
      if (isRefusal(known)) return known
      return bindings.map((binding) => planRemoval(binding, isDeleted(binding), known, 'body'))
    },
    record: (before) => ({ result: resultOfDeletion(call, before, isDeleted) }),
  })
}

/** Preparations of the command rows, by row name. */
export const blueprintPreparations: Readonly<Record<string, Prepare>> = {
  'blueprint.apply': apply,
  'blueprint.protect': protect,
  'blueprint.delete': remove,
}
