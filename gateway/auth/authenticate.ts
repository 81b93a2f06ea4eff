/**
 * Authentication: finds the caller that a credential belongs to, and the caller's permissions.
 * `authorize.ts` decides what the permissions allow. A project key has the permissions of its
 * principal's roles, capped by its scope role. A personal token has the permissions of its person's
 * roles. An organization key has the permissions of its role in all projects. The worker of an
 * environment has no permissions, and may call only rows that explicitly allow it.
 *
 * Invariants:
 * A1. The permissions of a key follow from the directories at the time of the request. A cached
 *     caller is reused only while the directories that it was derived from are still cached. So a
 *     change to keys or roles takes effect as soon as the changed directory is dropped. The key's
 *     expiry is checked on every request.
 * A2. `unauthorized` is returned only when the credential is certainly invalid: malformed, unknown,
 *     expired, or of an inactive principal. Clients do not retry after it. When a directory cannot
 *     be read, the answer is `service_unavailable`.
 */

import {
  expiryOf,
  hasExpired,
  type OrganizationDirectory,
  type ProjectDirectory,
  principalOf,
} from '../../protocol/access/directory.ts'
import { grantedBy } from '../../protocol/access/roles.ts'
import type { ApiKey, PrincipalRecord } from '../../protocol/access/rows.ts'
import { type SystemRole, systemRoles } from '../../protocol/access/schema.ts'
import { isPersonal } from '../../protocol/access/user-rows.ts'
import type { Credential, Principal } from '../../protocol/entry.ts'
import { parseEnvironmentCredential } from '../../protocol/environments/credential.ts'
import { isRefusal, type Refusal, refuse } from '../../protocol/errors.ts'
import { getOwn } from '../../protocol/lookup.ts'
import type { Directory } from '../directory.ts'
import { andThen, type MaybePromise } from '../maybe-promise.ts'
import type { World } from '../ports.ts'
import { openEnvironmentWorkers } from './environment-workers.ts'
import type { Touches } from './key-last-used.ts'
import { createReader, keyHash, type Presented, tagIn, tagOf } from './keys.ts'

/** An authenticated caller and its permissions. */
export interface Caller {
  readonly principal: Principal
  readonly credential: Credential
  readonly scope:
    | { readonly kind: 'organization'; readonly role: SystemRole }
    | { readonly kind: 'project'; readonly project_id: string }
  /** Unbranded ids of permissions. They apply in every project that `scope` includes. */
  readonly permissions: ReadonlySet<string>
  /**
   * Only for the worker of an environment: the id of the environment, and the worker's generation.
   */
  readonly environment?: { readonly id: string; readonly generation: number }
  /**
   * The parts of the presented credential that authenticate the caller again: the key's hash, the
   * project tag and, if they were given, the project handle and the environment.
   */
  readonly proof: {
    readonly hash: string
    readonly tag: string
    readonly handle?: string
    readonly environment_id?: string
  }
}

export interface Authentication {
  /** Authenticates the credential of an Authorization header, and records the use of its key. */
  authenticate(header: string | undefined): MaybePromise<Caller | Refusal>
  /** Authenticates a credential that was not sent as a header, and records the use of its key. */
  signIn(presented: Presented | undefined): MaybePromise<Caller | Refusal>
  /**
   * Authenticates a caller again, for a connection that stays open or a request that took time.
   * Returns the same object while nothing has changed.
   */
  again(caller: Caller): MaybePromise<Caller | Refusal>
  /** Returns the expiry of a caller's key in Unix milliseconds, or undefined if it never expires. */
  expiryOf(caller: Caller): number | undefined
}
/** A cached caller, with the directories and the key that it was derived from. */
interface Found {
  readonly caller: Caller
  readonly key: ApiKey
  readonly organization: OrganizationDirectory
  readonly project?: ProjectDirectory
}

const organizationPermissions = new Map<string, ReadonlySet<string>>(
  Object.entries(systemRoles).map(([role, granted]) => [role, new Set<string>(granted)]),
)
const credentialOf = ({ id, name }: ApiKey): Credential => ({
  type: isPersonal({ id }) ? 'cli_token' : 'api_key',
  id,
  name,
})

const proofOf = (world: World, { text, handle }: Presented): Caller['proof'] => {
  const worker = parseEnvironmentCredential(world.settings.key_prefix, text)
  return {
    hash: keyHash(world, text),
    tag: tagIn(text),
    ...(handle !== undefined && { handle }),
    ...(worker && { environment_id: worker.environment_id }),
  }
}

/**
 * Creates the authentication of a gateway.
 * @param touches records the uses of keys; without it, they are not recorded.
 */
export function openAuthentication(
  world: World,
  directory: Directory,
  touches?: Touches,
): Authentication {
  const marks = new WeakMap<OrganizationDirectory, Map<string, string[]>>()
  const projectsMarked = (known: OrganizationDirectory, tag: string): readonly string[] => {
    let index = marks.get(known)
    if (!index) {
      index = new Map()
      for (const id of Object.keys(known.projects))
        index.set(tagOf(id), [...(index.get(tagOf(id)) ?? []), id])
      marks.set(known, index)
    }
    return index.get(tag) ?? []
  }
  const granted = new WeakMap<ProjectDirectory, Map<string, ReadonlySet<string>>>()
  const permissionsOf = (
    project: ProjectDirectory,
    { role_ids = [] }: PrincipalRecord,
    key: ApiKey,
  ): ReadonlySet<string> => {
    let known = granted.get(project)
    if (!known) granted.set(project, (known = new Map()))
    let permissions = known.get(key.id)
    if (!permissions)
      known.set(key.id, (permissions = grantedBy(project.roles, role_ids, key.scope_role_id)))
    return permissions
  }
  const expired = (key: ApiKey): boolean => hasExpired(key, world.now())

  const workerOf = openEnvironmentWorkers(world, projectsMarked)
  const found = new WeakMap<Caller['proof'], Found>()
  const still = ({ key, organization, project }: Found, known: OrganizationDirectory): boolean =>
    organization === known &&
    !expired(key) &&
    (project === undefined || directory.project(project.id) === project)

  function find(proof: Caller['proof']): MaybePromise<Caller | Refusal> {
    return andThen(directory.organization(), (known) => {
      if (isRefusal(known)) return known
      if (proof.environment_id !== undefined) return workerOf(known, proof, proof.environment_id)
      const before = found.get(proof)
      return before && still(before, known) ? before.caller : search(known, proof)
    })
  }
  function search(
    known: OrganizationDirectory,
    proof: Caller['proof'],
  ): MaybePromise<Caller | Refusal> {
    const key = getOwn(known.keys, proof.hash)
    if (!key) return searchProjects(known, proof)
    if (expired(key)) return refuse('unauthorized')
    const role = key.org_role ?? 'Viewer'
    const caller: Caller = {
      principal: { type: 'service_account', id: key.principal_id, name: key.name },
      credential: credentialOf(key),
      proof,
      scope: { kind: 'organization', role },
      permissions: organizationPermissions.get(role) ?? new Set(),
    }
    found.set(proof, { caller, key, organization: known })
    return caller
  }
  async function searchProjects(
    known: OrganizationDirectory,
    proof: Caller['proof'],
  ): Promise<Caller | Refusal> {
    for (const id of projectsMarked(known, proof.tag)) {
      const project = await directory.project(id)
      if (isRefusal(project)) return project
      const mine = getOwn(project.keys, proof.hash)
      if (!mine) continue
      const principal = getOwn(project.principals, mine.principal_id)
      if (expired(mine) || principal?.state !== 'active') return refuse('unauthorized')
      const caller: Caller = {
        principal: principalOf(principal),
        credential: credentialOf(mine),
        proof,
        scope: { kind: 'project', project_id: id },
        permissions: permissionsOf(project, principal, mine),
      }
      found.set(proof, { caller, key: mine, organization: known, project })
      return caller
    }
    return refuse('unauthorized')
  }
  function noted(caller: Caller | Refusal): Caller | Refusal {
    if (!isRefusal(caller) && !caller.environment) touches?.note(caller)
    return caller
  }
  const read = createReader((presented) => proofOf(world, presented))
  const admitted = (proof: Caller['proof'] | undefined): MaybePromise<Caller | Refusal> =>
    proof ? andThen(find(proof), noted) : refuse('unauthorized')
  return {
    signIn: (presented) => admitted(presented && proofOf(world, presented)),
    authenticate: (header) => admitted(read(header)),
    again: ({ proof }) => find(proof),
    expiryOf: ({ proof }) => {
      const known = found.get(proof)
      return known && expiryOf(known.key)
    },
  }
}
