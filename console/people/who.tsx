/** Shows the name of a principal, with the id on hover. */
import { useQuery } from '../api/query.ts'
import { usePeople } from './people.ts'

/** Shows the name of a principal, an agent or a target of an interaction. */
export function Who({ project, id }: { readonly project: string; readonly id: string }) {
  const { nameOf, known } = usePeople(project)
  const name = nameOf(id)
  const other = useQuery('principal.get', name === undefined && known ? { project, id } : undefined)
    .state.value.data
  const shown = name ?? other?.name
  return (
    <span class={shown === undefined ? 'user-text mono' : 'user-text'} title={id}>
      {shown ?? id}
    </span>
  )
}
