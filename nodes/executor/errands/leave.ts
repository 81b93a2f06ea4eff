/**
 * Removes inactive principals from channels. A disabled principal stays in direct messages. A
 * principal that has become active again in the meantime stays in all of its channels.
 */
import { isRefusal } from '../../../protocol/errors.ts'
import type { Runs } from './errands.ts'
import { expel, principalsNow } from './expel.ts'

/** Removes a principal from its channels, unless it is active. A repetition changes nothing. */
export const leaveChannels: Runs<'leave'> = async (asking, project, { principal_id }) => {
  const known = await principalsNow(asking, project)
  if (isRefusal(known)) return known
  if (known.isActive(principal_id)) return {}
  const answer = await asking.world.view(project, 'channels_of', { member_id: principal_id })
  if (isRefusal(answer)) return answer
  for (const id of answer.items) {
    const refused = await expel(asking, project, known.home, id, principal_id)
    if (refused) return refused
  }
  return {}
}

/** Removes new members from a channel if they are not active principals. */
export const confirmMembers: Runs<'confirm'> = async (
  asking,
  project,
  { channel_id, member_ids },
) => {
  const known = await principalsNow(asking, project)
  if (isRefusal(known)) return known
  for (const id of member_ids.filter((member) => !known.isActive(member))) {
    const refused = await expel(asking, project, known.home, channel_id, id)
    if (refused) return refused
  }
  return {}
}
