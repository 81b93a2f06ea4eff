/** Handles the blueprint queries: bindings, drift and export. */
import { driftOf } from '../../protocol/blueprints/compare.ts'
import { isPublished } from '../../protocol/blueprints/resources.ts'
import type { DriftItem } from '../../protocol/blueprints/schema.ts'
import { type Identity, identityOf } from '../../protocol/blueprints/stored.ts'
import { isRefusal, type Refusal } from '../../protocol/errors.ts'
import { type LocalContext, type LocalQuery, localQuery } from '../listing.ts'
import { shownBindings } from './apply.ts'
import { exportResources } from './export.ts'
import { bindingsOf, boundResources, hashIn } from './present.ts'

const namesFurther = (include: readonly string[] | undefined): boolean =>
  include?.includes('further_types') === true
/** Returns the drift of all resources of a blueprint. */
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
