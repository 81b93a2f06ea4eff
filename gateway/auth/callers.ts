/**
 * Derives callers from the records of directories: from an organization key, from a key or token of
 * a project, and from a user who signed in without one. `authenticate.ts` and `console/sessions.ts`
 * find the records.
 */
import { type ProjectDirectory, principalOf } from '../../protocol/access/directory.ts'
import { grantedBy } from '../../protocol/access/roles.ts'
import type { ApiKey, PrincipalRecord } from '../../protocol/access/rows.ts'
import { systemRoles } from '../../protocol/access/schema.ts'
import { isPersonal } from '../../protocol/access/user-rows.ts'
import type { Credential } from '../../protocol/entry.ts'
import type { Caller } from './authenticate.ts'

const organizationPermissions = new Map<string, ReadonlySet<string>>(
  Object.entries(systemRoles).map(([role, granted]) => [role, new Set<string>(granted)]),
)
const credentialOf = ({ id, name }: ApiKey): Credential => ({
  type: isPersonal({ id }) ? 'cli_token' : 'api_key',
  id,
  name,
})

/**
 * Returns the caller of an organization key, with the permissions of the key's role (`Viewer` by
 * default).
 */
export function organizationCaller(key: ApiKey, proof: Caller['proof']): Caller {
  const role = key.org_role ?? 'Viewer'
  return {
    principal: { type: 'service_account', id: key.principal_id, name: key.name },
    credential: credentialOf(key),
    proof,
    scope: { kind: 'organization', role },
    permissions: organizationPermissions.get(role) ?? new Set(),
  }
}

const granted = new WeakMap<ProjectDirectory, Map<string, ReadonlySet<string>>>()
/** Returns the permissions of a principal, capped by the scope role of its key, if any. */
function permissionsOf(
  project: ProjectDirectory,
  { id, role_ids = [] }: PrincipalRecord,
  key: ApiKey | undefined,
): ReadonlySet<string> {
  let known = granted.get(project)
  if (!known) granted.set(project, (known = new Map()))
  const of = key?.id ?? id
  let permissions = known.get(of)
  if (!permissions)
    known.set(of, (permissions = grantedBy(project.roles, role_ids, key?.scope_role_id)))
  return permissions
}
/**
 * Returns the caller of a key or token of a project, or of a user with another credential.
 * @param principal the active principal of the key, or the user.
 */
export function projectCaller(
  project: ProjectDirectory,
  principal: PrincipalRecord,
  by: { readonly key: ApiKey } | { readonly credential: Credential },
  proof: Caller['proof'],
): Caller {
  const key = 'key' in by ? by.key : undefined
  return {
    principal: principalOf(principal),
    credential: 'key' in by ? credentialOf(by.key) : by.credential,
    proof,
    scope: {
      kind: 'project',
      project_id: project.id,
      ...(key?.scope_role_id !== undefined && { scope_role_id: key.scope_role_id }),
    },
    permissions: permissionsOf(project, principal, key),
  }
}
