/** Removes members that are not active principals from channels. */

import { expel as sendExpulsion } from '../../../gateway/commands/channels.ts'
import type { CapabilityReader } from '../../../gateway/queries/agent-capabilities.ts'
import { activePrincipal, type ProjectDirectory } from '../../../protocol/access/directory.ts'
import { isRefusal, type Refusal } from '../../../protocol/errors.ts'
import { systemOrigin } from '../system-origin.ts'

/**
 * Returns the directory of the project, with every change that was acknowledged before the call,
 * and a predicate that determines whether a principal is active.
 */
export async function principalsNow({ directory }: CapabilityReader, project: string) {
  const [home, organization] = await Promise.all([
    directory.refreshProject(project),
    directory.organization(),
  ])
  if (isRefusal(home)) return home
  if (isRefusal(organization)) return organization
  return { home, isActive: (id: string) => activePrincipal(home, organization, id) !== undefined }
}

/** Expels a member. A disabled member stays in direct messages. A repeat changes nothing. */
export async function expel(
  { world }: CapabilityReader,
  project: string,
  home: ProjectDirectory,
  channel_id: string,
  member_id: string,
): Promise<Refusal | undefined> {
  const origin = systemOrigin(world, world.node)
  const outcome = await sendExpulsion(world, project, home, channel_id, member_id, origin)
  return isRefusal(outcome) ? outcome : undefined
}
