/** Who is asked and who answers: people of interactions looked up in this gateway's directories. */
import { systemRoleById, systemRoleId } from '../protocol/access.ts'
import { policyOf, runOf, targetsOf, type CallerRoles, type CreateInteraction } from '../protocol/api/interactions.ts'
import type { WorkflowRun } from '../protocol/api/runs.ts'
import { isRefusal, refuse, refuseFields, type FieldError, type Refusal } from '../protocol/errors.ts'
import { roleOf } from '../protocol/interaction/check.ts'
import { terminal } from '../protocol/api/runs.ts'
import { own } from '../protocol/lookup.ts'
import type { Caller } from './authenticate.ts'
import type { Edge } from './call.ts'

/** Whether each id is one of a principal of the project, or of the organization's keys. */
async function strangersOf({ directory }: Edge, project: string, ids: readonly string[], field: string): Promise<FieldError[] | Refusal> {
  const [organization, home] = await Promise.all([directory.organization(), directory.project(project)])
  if (isRefusal(organization)) return organization
  if (isRefusal(home)) return home
  const ofKeys = new Set(Object.values(organization.keys).map(({ principal_id }) => principal_id))
  return ids.flatMap((id, index) => {
    const role = roleOf(id)
    if (role !== undefined) return roleNamed(role) ? [] : [{ field: `${field}[${index}]`, message: 'there is no such role', actual: id }]
    const known = ofKeys.has(id) || (own(home.principals, id)?.state ?? 'deleted') !== 'deleted'
    return known ? [] : [{ field: `${field}[${index}]`, message: 'there is no such principal', actual: id }]
  })
}
const roleNamed = (name: string): boolean => systemRoleById(name) !== undefined || systemRoleById(`role_${name.toLowerCase()}`) !== undefined

/** Refuses an interaction whose people or whose run do not exist. */
export async function checkPeople(edge: Edge, project: string, body: CreateInteraction): Promise<Refusal | undefined> {
  const reviewers = policyOf(body).review?.reviewer_user_ids ?? []
  const found = await Promise.all([strangersOf(edge, project, targetsOf(body), 'target_user_ids'), strangersOf(edge, project, reviewers, 'resolution_policy.review.reviewer_user_ids')])
  for (const faults of found) if (isRefusal(faults)) return faults
  const faults = (found as FieldError[][]).flat()
  if (faults.length > 0) return refuseFields(...faults)
  const run = runOf(body)
  if (!run) return undefined
  const record = (await edge.world.ask({ project, kind: 'run', id: run.run_id }, 'get')) as WorkflowRun | null | Refusal
  if (isRefusal(record)) return record
  if (!record) return refuse('not_found', { run_id: run.run_id }, 'There is no such run.')
  return terminal.has(record.status) ? refuseFields({ field: 'run_id', message: `the run is ${record.status}; nothing waits for an answer`, actual: run.run_id }) : undefined
}

/** The roles that a caller holds now, by id and by name. */
export async function rolesOf({ directory }: Pick<Edge, 'directory'>, project: string, { scope, principal }: Pick<Caller, 'scope' | 'principal'>): Promise<CallerRoles | Refusal> {
  if (scope.kind === 'organization') return { roles: [scope.role, systemRoleId(scope.role)] }
  const home = await directory.project(project)
  if (isRefusal(home)) return home
  return { roles: (own(home.principals, principal.id)?.role_ids ?? []).flatMap((id) => [id, systemRoleById(id) ?? id]) }
}
