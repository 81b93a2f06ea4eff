/** Shows the name of a principal, with the id on hover. */
import { useQuery } from '../api/query.ts'
import { usePeople } from './people.ts'
import { peopleText as text } from './text.ts'

/** Ids of services, such as the principal of an organization key, which no project lists. */
const SERVICE = /^svc_/
/** Ids of records. Other principals, such as `root`, have no record. */
const RECORD = /^[a-z]+_/
/** The project and id of each principal that the service did not find, so it is not asked again. */
const missing = new Set<string>()

/** Shows the name of a principal, an agent or a target of an interaction. */
export function Who({ project, id }: { readonly project: string; readonly id: string }) {
  const { nameOf, known } = usePeople(project)
  const name = nameOf(id)
  const place = `${project} ${id}`
  const isAsked = name === undefined && known && RECORD.test(id) && !missing.has(place)
  const { data, error } = useQuery('principal.get', isAsked ? { project, id } : undefined).state
    .value
  if (error?.code === 'not_found') missing.add(place)
  const shown =
    name ?? data?.name ?? (missing.has(place) && SERVICE.test(id) ? text.service : undefined)
  return (
    <span
      class={shown === undefined && RECORD.test(id) ? 'user-text mono' : 'user-text'}
      title={id}
    >
      {shown ?? id}
    </span>
  )
}
