/** Creates the origin of commands that a node sends on behalf of the service itself. */
import type { World } from '../../gateway/ports.ts'
import type { Origin } from '../../protocol/entry.ts'

/**
 * Returns the origin of a command that is sent now.
 * @param sender id of the internal credential: the node, or the mailbox of its executor.
 */
export const systemOrigin = (world: Pick<World, 'now'>, sender: string): Origin => ({
  at: world.now(),
  principal: { type: 'system', id: 'system' },
  credential: { type: 'internal', id: sender },
})
