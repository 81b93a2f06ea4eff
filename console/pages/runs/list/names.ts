/** The names of workflows and principals of a project, for lists that contain only their ids. */
import { useMemo } from 'preact/hooks'
import { useAll } from '../../../api/all.ts'

/** Loads the names of all workflows and principals. The keys of the map are their ids. */
export function useNames(project: string): ReadonlyMap<string, string> {
  const workflows = useAll('workflow.list', { project }, { kinds: ['workflow'] }).state.value.list
  const principals = useAll(
    'principal.list',
    { project, include_disabled: true },
    { kinds: ['principal'] },
  ).state.value.list
  return useMemo(
    () => new Map([...workflows.all, ...principals.all].map(({ id, name }) => [id, name] as const)),
    [workflows, principals],
  )
}
