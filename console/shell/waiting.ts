/** The number of questions that wait for the person, beside the inbox in the navigation. */
import { useEffect } from 'preact/hooks'
import { useQuery } from '../api/query.ts'
import { overviewInput } from '../pages/home/first.ts'
import { setBadge } from './badges.ts'
import { may, project } from './session.ts'

/** Updates the number beside the inbox of the current project. */
export function useWaitingQuestions(): void {
  const current = project.value
  const wanted = current !== '' && may('project.view')
  const { state } = useQuery(
    'overview.get',
    // The input is the same as on the home page, so that both share the request.
    wanted ? overviewInput(current) : undefined,
    { kinds: ['interaction'] },
  )
  const count = state.value.data?.interactions.for_me ?? 0
  useEffect(() => setBadge('/p/:project/inbox', count), [count])
}
