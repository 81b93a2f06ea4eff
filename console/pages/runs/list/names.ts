/** The names of workflows and principals of a project, for lists that contain only their ids. */
import { useMemo } from 'preact/hooks'
import { useList, useQuery } from '../../../api/query.ts'

/** Loads the names of up to 200 workflows and 200 principals. The keys of the map are their ids. */
export function useNames(project: string): ReadonlyMap<string, string> {
  const workflows = useList('workflow.list', { project, limit: 200 }, { kinds: ['workflow'] }).state
    .value.items
  const principals = useQuery('principal.list', { project, limit: 200 }, { kinds: ['principal'] })
    .state.value.data
  return useMemo(
    () =>
      new Map(
        [...workflows, ...(principals?.items ?? [])].map(({ id, name }) => [id, name] as const),
      ),
    [workflows, principals],
  )
}
