/**
 * Ids of principals in a request, looked up before its command is decided: whom a channel, an interaction or a record of
 * any other kind may refer to. What is found is as current as the last answered change of configuration.
 */
import { activePrincipal, type Party } from '../../protocol/access/directory.ts'
import { isRefusal, refuseFields, type FieldError, type Refusal } from '../../protocol/errors.ts'
import type { Directory } from '../directory.ts'

/**
 * The active principals of a project with these ids, in their order; refused with 400 and every id that names none.
 * @param field path of the list in the request; a single id stands at the path itself.
 * @param kinds what they may be; by default anything.
 * @param skip ids that are something else and stay out of it.
 */
export async function principalsNamed(
  directory: Directory,
  project: string,
  ids: readonly string[] | string,
  field: string,
  kinds?: readonly Party['kind'][],
  skip: (id: string) => boolean = () => false,
): Promise<readonly Party[] | Refusal> {
  const [home, organization] = await Promise.all([
    directory.project(project),
    directory.organization(),
  ])
  if (isRefusal(home)) return home
  if (isRefusal(organization)) return organization
  const faults: FieldError[] = []
  const parties: Party[] = []
  for (const [index, id] of (typeof ids === 'string' ? [ids] : ids).entries()) {
    if (skip(id)) continue
    const party = activePrincipal(home, organization, id)
    if (party && (kinds?.includes(party.kind) ?? true)) parties.push(party)
    else
      faults.push({
        field: typeof ids === 'string' ? field : `${field}[${index}]`,
        message: `there is no such active ${kinds?.join(' or ') ?? 'principal'} in this project`,
        actual: id,
      })
  }
  return faults.length > 0 ? refuseFields(...faults) : parties
}
