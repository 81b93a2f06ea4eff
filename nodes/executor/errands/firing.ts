/**
 * Fires a trigger for an event of a private session or a private artifact, if the loop's last
 * editor may read the event.
 */

import { sendNew } from '../../../gateway/http/send.ts'
import { mayReadEvent } from '../../../gateway/sessions/reader.ts'
import { isRefusal } from '../../../protocol/errors.ts'
import type { Firing } from '../../../protocol/events/sources.ts'
import { systemOrigin } from '../system-origin.ts'
import type { Runs } from './errands.ts'

/**
 * Fires the trigger. A repeated errand does not fire it again, because the loop identifies a firing
 * by its trigger and event.
 */
export const fireTrigger: Runs<'firing'> = async (asking, project, errand) => {
  const { world } = asking
  const { loop_id, trigger_id, editor, source } = errand
  const allowed = await mayReadEvent(asking, project, source, editor)
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
  const to = { project, kind: 'loop', id: loop_id } as const
  const origin = systemOrigin(world, world.node)
  const outcome = await sendNew(world, to, 'trigger.fire', input, origin)
  return isRefusal(outcome) ? outcome : {}
}
