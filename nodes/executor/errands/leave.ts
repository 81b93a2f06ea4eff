/** Taking somebody who is no active principal any more out of all channels, but for the direct messages of who was disabled. Who came back meanwhile stays. */
import { activePrincipal } from '../../../protocol/directory.ts'
import { isRefusal, type Refusal } from '../../../protocol/errors.ts'
import type { ViewQuestions } from '../../../protocol/view-questions.ts'
import { own } from '../../../protocol/lookup.ts'
import type { Runs } from './errands.ts'

/** Done twice, it finds nothing left to do. */
export const leaveChannels: Runs<'leave'> = async (
  { world, directory },
  project,
  { principal_id: member_id },
) => {
  const [home, organization] = await Promise.all([
    directory.refreshProject(project),
    directory.organization(),
  ])
  if (isRefusal(home)) return home
  if (isRefusal(organization)) return organization
  if (activePrincipal(home, organization, member_id)) return {}
  const answer = (await world.view(project, 'channels_of', { member_id })) as
    | ViewQuestions['channels_of']['reply']
    | Refusal
  if (isRefusal(answer)) return answer
  for (const id of answer.items) {
    const outcome = await world.command({
      project,
      kind: 'channel',
      id,
      command_id: Buffer.from(world.random(16)).toString('hex'),
      name: 'channel.expel',
      input: { member_id, disabled: own(home.principals, member_id)?.state === 'disabled' },
      origin: {
        at: world.now(),
        principal: { type: 'system', id: 'system' },
        credential: { type: 'internal', id: world.node },
      },
    })
    if (isRefusal(outcome)) return outcome
  }
  return {}
}
