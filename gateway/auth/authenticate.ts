/**
 * Authentication: finds the caller that a credential belongs to, and the caller's permissions.
 * `authorize.ts` decides what the permissions allow. A project key has the permissions of its
 * principal's roles, capped by its scope role. A personal token has the permissions of its person's
 * roles. An organization key has the permissions of its role in all projects. The worker of an
 * environment has no permissions, and may call only rows that explicitly allow it. A console
 * session acts as the keys and users that it was made from (`console/sessions.ts`).
 *
 * Invariants:
 * A1. The permissions of a key are derived from the directories at the time of the request. A
 *     cached caller is reused only while the directories that it was derived from are still cached,
 *     so a change to keys or roles takes effect as soon as the changed directory is dropped from
 *     the cache. The key's expiry is checked on every request.
 * A2. `unauthorized` is returned only when the credential is certainly invalid: malformed, unknown,
 *     expired, or of an inactive principal. Clients do not retry after it. When a directory cannot
 *     be read, the response is `service_unavailable`.
 */

import {
  expiryOf,
  hasExpired,
  type OrganizationDirectory,
  type ProjectDirectory,
} from '../../protocol/access/directory.ts'
import type { ApiKey } from '../../protocol/access/rows.ts'
import type { SystemRole } from '../../protocol/access/schema.ts'
import type { Credential, Principal } from '../../protocol/entry.ts'
import { parseEnvironmentCredential } from '../../protocol/environments/credential.ts'
import { isRefusal, type Refusal, refuse } from '../../protocol/errors.ts'
import { getOwn } from '../../protocol/lookup.ts'
import type { Directory } from '../directory.ts'
import { andThen, type MaybePromise } from '../maybe-promise.ts'
import type { World } from '../ports.ts'
import { organizationCaller, projectCaller } from './callers.ts'
import { type ConsoleSessions, openConsoleSessions, type Preference } from './console/sessions.ts'
import { openEnvironmentWorkers } from './environment-workers.ts'
import type { Touches } from './key-last-used.ts'
import { createReader, keyHash, type Presented, tagIn, tagOf } from './keys.ts'

/** An authenticated caller and its permissions. */
export interface Caller {
  readonly principal: Principal
  readonly credential: Credential
  readonly scope:
    | { readonly kind: 'organization'; readonly role: SystemRole }
    | {
        readonly kind: 'project'
        readonly project_id: string
        /** The role that caps the permissions of the caller's key, if any. */
        readonly scope_role_id?: string
      }
  /** Unbranded ids of permissions. They apply in every project that `scope` includes. */
  readonly permissions: ReadonlySet<string>
  /**
   * Only for the worker of an environment: the id of the environment, and the worker's generation.
   */
  readonly environment?: { readonly id: string; readonly generation: number }
  /**
   * Only for a console session: its id, its idle time in milliseconds, and the ids of all principals
   * that it may act as.
   */
  readonly session?: {
    readonly id: string
    readonly idle: number
    readonly principals: readonly string[]
  }
  /**
   * The parts of the presented credential with which the caller is authenticated again: the key's
   * hash, the project tag and, if they were given, the project handle and the environment. For a
   * console session, they are the hash of its cookie and the preferred rights.
   */
  readonly proof: {
    readonly hash: string
    readonly tag: string
    readonly handle?: string
    readonly environment_id?: string
    readonly session?: Preference
  }
}

export interface Authentication {
  /** Authenticates the credential of an Authorization header, and records the use of its key. */
  authenticate(header: string | undefined): MaybePromise<Caller | Refusal>
  /** Authenticates a credential that was not sent as a header, and records the use of its key. */
  signIn(presented: Presented | undefined): MaybePromise<Caller | Refusal>
  /** Console sessions by the hash of their cookie. */
  readonly console: ConsoleSessions
  /** Records the use of the caller's credential and of its console session. */
  note(caller: Caller): void
  /**
   * Authenticates a caller again, for a connection that stays open or a request that took a long
   * time. Returns the same object while nothing has changed.
   */
  again(caller: Caller): MaybePromise<Caller | Refusal>
  /**
   * Returns the expiry of a caller's key in Unix milliseconds, or undefined if the key never
   * expires. For a caller of a console session without a key, returns the expiry of the session.
   */
  expiryOf(caller: Caller): number | undefined
  /**
   * Returns the time in Unix milliseconds at which the caller loses access unless it makes another
   * request. Returns undefined if the caller keeps access.
   */
  endOf(caller: Caller): number | undefined
}
/** A cached caller, with the directories and the key that it was derived from. */
interface Found {
  readonly caller: Caller
  readonly key: ApiKey
  readonly organization: OrganizationDirectory
  readonly project?: ProjectDirectory
}

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
 * @param touches records the uses of keys. Without it, they are not recorded.
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
  const expired = (key: ApiKey): boolean => hasExpired(key, world.now())

  const workerOf = openEnvironmentWorkers(world, projectsMarked)
  const console = openConsoleSessions(world, directory)
  const found = new WeakMap<Caller['proof'], Found>()
  const still = ({ key, organization, project }: Found, known: OrganizationDirectory): boolean =>
    organization === known &&
    !expired(key) &&
    (project === undefined || directory.project(project.id) === project)

  function find(proof: Caller['proof']): MaybePromise<Caller | Refusal> {
    if (proof.session) return console.again(proof)
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
    const caller = organizationCaller(key, proof)
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
      const caller = projectCaller(project, principal, { key: mine }, proof)
      found.set(proof, { caller, key: mine, organization: known, project })
      return caller
    }
    return refuse('unauthorized')
  }
  function note(caller: Caller): void {
    if (caller.session) console.used(caller)
    if (!caller.environment) touches?.note(caller)
  }
  function noted(caller: Caller | Refusal): Caller | Refusal {
    if (!isRefusal(caller)) note(caller)
    return caller
  }
  const keyExpiry = ({ proof }: Caller): number | undefined => {
    const known = found.get(proof)
    return known && expiryOf(known.key)
  }
  const read = createReader((presented) => proofOf(world, presented))
  const admitted = (proof: Caller['proof'] | undefined): MaybePromise<Caller | Refusal> =>
    proof ? andThen(find(proof), noted) : refuse('unauthorized')
  return {
    signIn: (presented) => admitted(presented && proofOf(world, presented)),
    authenticate: (header) => admitted(read(header)),
    console,
    note,
    again: ({ proof }) => find(proof),
    expiryOf: (caller) => (caller.session ? console.expiryOf(caller) : keyExpiry(caller)),
    endOf: (caller) => (caller.session ? console.endOf(caller) : keyExpiry(caller)),
  }
}
