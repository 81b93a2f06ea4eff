/**
 * The query for the triggers of a loop, with the faults of their conditions. The triggers are read
 * from the loop's actor, and the faults from the project's `events` actor.
 */
import { isRefusal, refuse } from '../../protocol/errors.ts'
import { getOwn } from '../../protocol/lookup.ts'
import { loopNamed } from '../commands/loops.ts'
import { answer, type LocalQuery } from '../listing.ts'

/** Handlers of the query rows, by row name. */
export const loopQueries: Readonly<Record<string, LocalQuery>> = {
  'loop.triggers': answer<'loop.triggers'>(async ({ world, project = '' }, { id: name }) => {
    const loop_id = await loopNamed(world, project, name)
    if (isRefusal(loop_id)) return loop_id
    const [triggers, faults] = await Promise.all([
      world.ask({ project, kind: 'loop', id: loop_id }, 'triggers', {}),
      world.ask({ project, kind: 'events', id: project }, 'faults', { loop_id }),
    ])
    if (isRefusal(triggers)) return triggers
    if (isRefusal(faults)) return faults
    if (!triggers)
      return refuse('not_found', { resource: 'loop' }, 'There is no such loop in this project.')
    return {
      items: triggers.map((trigger) => {
        const found = getOwn(faults, trigger.id)
        return found
          ? { ...trigger, condition_faults: found.count, last_condition_fault: { ...found.last } }
          : trigger
      }),
    }
  }),
}
