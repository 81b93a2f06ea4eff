/**
 * Looks up the principals that a request specifies as targets or reviewers, before its command is
 * decided. The result reflects every configuration change that was answered before the lookup.
 */
import { activePrincipal, type PrincipalSummary } from '../../protocol/access/directory.ts'
import { type FieldError, isRefusal, type Refusal, refuseFields } from '../../protocol/errors.ts'
import type { Directory } from '../directory.ts'

/**
 * Returns the active principals of a project with the given ids, in the order of the ids. If any id
 * does not belong to such a principal, the result is a `bad_request` refusal that lists these ids.
 * @param field path of the list in the request, or of the id when `ids` is a single id.
 * @param kinds the accepted kinds of principals; all by default.
 * @param skip returns whether to ignore an id, because it does not refer to a principal.
 */
export async function principalsNamed(
  directory: Directory,
  project: string,
  ids: readonly string[] | string,
  field: string,
  kinds?: readonly PrincipalSummary['kind'][],
  skip: (id: string) => boolean = () => false,
): Promise<readonly PrincipalSummary[] | Refusal> {
  const [home, organization] = await Promise.all([
    directory.project(project),
    directory.organization(),
  ])
  if (isRefusal(home)) return home
  if (isRefusal(organization)) return organization
  const faults: FieldError[] = []
  const parties: PrincipalSummary[] = []
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
