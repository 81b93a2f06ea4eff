/**
 * Checks that a definition starts only runs of existing loops of the project. The check is made
 * when the definition is saved. A loop can be deleted later, and the step that starts its run fails
 * then.
 */
import { isRefusal, type Refusal, refuseFields } from '../../../protocol/errors.ts'
import { below } from '../../../protocol/rules/workflow-check/path.ts'
import { placesIn } from '../../../protocol/rules/workflow-check/places.ts'
import type { Step } from '../../../protocol/workflows/spec.ts'
import type { Edge } from '../../call.ts'

/**
 * Refuses a definition with a step that starts a run of a loop that the project does not have.
 * Returns undefined when all loops exist.
 * @param path path of the definition in the request, for the refusal.
 */
export async function refuseUnknownLoops(
  { world }: Pick<Edge, 'world'>,
  project: string,
  { steps = [] }: { readonly steps?: readonly Step[] },
  path = '',
): Promise<Refusal | undefined> {
  const places = placesIn(steps, below(path, 'steps'), ({ kind, config }, at) =>
    kind === 'loop' && config.loop_id !== undefined
      ? [{ field: below(at(), 'loop_id'), id: config.loop_id }]
      : [],
  )
  const known = new Set<string>()
  for (const { field, id } of places) {
    if (known.has(id)) continue
    const version = await world.ask({ project, kind: 'loop', id }, 'version', {})
    if (version && isRefusal(version)) return version
    if (!version)
      return refuseFields({ field, message: 'there is no such loop in this project', actual: id })
    known.add(id)
  }
  return undefined
}
