/**
 * Channels and principals that are not active any more. One that was disabled stays in direct messages; one that is active
 * again stays everywhere.
 */
import { isRefusal, type Refusal } from '../../../protocol/errors.ts'
import type { ViewQuestions } from '../../../protocol/view-questions.ts'
import type { Runs } from './errands.ts'
import { expel, principalsNow } from './expel.ts'

/** A principal leaves all channels. Done twice, it finds nothing left to do. */
export const leaveChannels: Runs<'leave'> = async (asking, project, { principal_id }) => {
  const known = await principalsNow(asking, project)
  if (isRefusal(known)) return known
  if (known.isActive(principal_id)) return {}
  const answer = (await asking.world.view(project, 'channels_of', { member_id: principal_id })) as
    | ViewQuestions['channels_of']['reply']
    | Refusal
  if (isRefusal(answer)) return answer
  for (const id of answer.items) {
    const refused = await expel(asking, project, known.home, id, principal_id)
    if (refused) return refused
  }
  return {}
}

/** New members of a channel that are not active leave it. */
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
