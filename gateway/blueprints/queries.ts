/** Handles the blueprint queries: bindings, drift and export. */
import { driftOf } from '../../protocol/blueprints/compare.ts'
import { isPublished } from '../../protocol/blueprints/resources.ts'
import type { DriftItem } from '../../protocol/blueprints/schema.ts'
import {
  type Identity,
  type InternalBinding,
  identityOf,
} from '../../protocol/blueprints/stored.ts'
import { isRefusal, type Refusal } from '../../protocol/errors.ts'
import { type LocalContext, type LocalQuery, localQuery } from '../listing.ts'
import { shownBindings } from './apply.ts'
import { exportResources } from './export.ts'
import { hiddenChannels } from './hidden-channels.ts'
import { bindingsOf, boundResources, hashIn } from './present.ts'

const namesFurther = (include: readonly string[] | undefined): boolean =>
  include?.includes('further_types') === true
/** Returns the bindings without those of private channels that the caller may not see. */
async function visibleBindings(
  { world, caller, project = '' }: LocalContext,
  bindings: readonly InternalBinding[],
): Promise<InternalBinding[] | Refusal> {
  const ids = bindings.flatMap(({ resource_type, resource_id }) =>
    resource_type === 'channel' ? [resource_id] : [],
  )
  const hidden = await hiddenChannels(world, project, caller, ids)
  return isRefusal(hidden) ? hidden : bindings.filter(({ resource_id }) => !hidden.has(resource_id))
}
/** Returns the drift of all resources of a blueprint. */
async function driftItems(
  context: LocalContext,
  identity: Identity,
): Promise<DriftItem[] | Refusal> {
  const { world, directory, project = '' } = context
  const reading = { world, directory }
  const all = await bindingsOf(reading, project, identity)
  if (isRefusal(all)) return all
  const bindings = await visibleBindings(context, all)
  if (isRefusal(bindings)) return bindings
  const resources = await boundResources(reading, project, bindings)
  if (isRefusal(resources)) return resources
  const known = new Map(resources.map((one) => [one.id, one]))
  return bindings.map(({ resource_type, key, resource_id }) => {
    const one = known.get(resource_id)
    const fields = one ? driftOf(one, hashIn(reading)) : []
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
  'blueprint.bindings': localQuery<'blueprint.bindings'>(
    async (context, { namespace, blueprint_key, include }) => {
      const all = await bindingsOf(context, context.project ?? '')
      if (isRefusal(all)) return all
      const found = await visibleBindings(context, all)
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
  'blueprint.drift': localQuery<'blueprint.drift'>(
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
  'blueprint.export': localQuery<'blueprint.export'>((context, input) =>
    exportResources(context, input),
  ),
}
