/**
 * Fires a trigger for an event of a private session, if the loop's last editor may read the
 * session.
 */
import { mayRead } from '../../../gateway/sessions/reader.ts'
import { isRefusal } from '../../../protocol/errors.ts'
import type { Firing } from '../../../protocol/events/sources.ts'
import { systemOrigin } from '../system-origin.ts'
import type { Runs } from './errands.ts'

/**
 * Fires the trigger. A repeat does not fire the trigger twice, because the loop identifies a firing
 * by its trigger and event.
 */
export const fireTrigger: Runs<'firing'> = async (asking, project, errand) => {
  const { world } = asking
  const { loop_id, trigger_id, editor, source } = errand
  const allowed = await mayRead(asking, project, source.private_session, editor)
  if (isRefusal(allowed)) return allowed
  if (!allowed) return {}
  const found = await world.view(project, 'event.get', { id: source.id })
  if (isRefusal(found)) return found
  const { event, meta } = found
  const input: Firing = {
    trigger_id,
    source: { ...source, event: { ...event }, meta },
    reader: editor,
  }
  const outcome = await world.command({
    project,
    kind: 'loop',
    id: loop_id,
    command_id: Buffer.from(world.random(16)).toString('hex'),
    name: 'trigger.fire',
    input,
    origin: systemOrigin(world, world.node),
  })
  return isRefusal(outcome) ? outcome : {}
}
