/**
 * Authenticates console sessions. The organization's actor finds the session of a cookie. The
 * gateway caches the answer for as long as it caches the same directory of the organization, so the
 * end of a session, like the revocation of a key, takes effect on every gateway before the request
 * that ends the session is answered.
 *
 * Invariants:
 * S1. Every request checks that the session has not expired, and that the key or the user whose
 *     rights it uses is still valid.
 * S2. In a project for which a session has its own right, it acts as the principal of that
 *     right. It uses an organization key only in other projects.
 */
import {
  type ConsoleGrant,
  consoleEnd,
  type FoundConsoleSession,
} from '../../../protocol/access/console-rows.ts'
import {
  expiryOf,
  hasExpired,
  type OrganizationDirectory,
  type ProjectDirectory,
} from '../../../protocol/access/directory.ts'
import type { ApiKey } from '../../../protocol/access/rows.ts'
import { isRefusal, type Refusal, refuse } from '../../../protocol/errors.ts'
import { getOwn } from '../../../protocol/lookup.ts'
import type { Directory } from '../../directory.ts'
import type { World } from '../../ports.ts'
import type { Caller } from '../authenticate.ts'
import { organizationCaller, projectCaller } from '../callers.ts'

/** One right of a session: a grant, or a user of its account. */
type Right = Omit<ConsoleGrant, 'key'> & Partial<Pick<ConsoleGrant, 'key'>>
/**
 * Selects one of the rights of a session. The right in `project` (an id or handle) is preferred. If
 * there is no such right, an organization key is preferred. If `people` is set, any right in a
 * project is preferred to an organization key, because such a right belongs to a person.
 */
export interface Preference {
  readonly project?: string
  readonly people?: true
}

interface Derived {
  readonly caller: Caller
  readonly key?: ApiKey
  readonly project?: ProjectDirectory
}
interface Known {
  readonly organization: OrganizationDirectory
  readonly found: FoundConsoleSession
  /** Time of the session's last request at this gateway, in Unix milliseconds. */
  used: number
  readonly callers: Map<string, Derived>
}

export interface ConsoleSessions {
  /** Authenticates the session whose cookie has this hash. */
  find(hash: string, preference: Preference): Promise<Caller | Refusal>
  /**
   * Authenticates a caller of a session again. Returns the same object while nothing has changed.
   */
  again(proof: Caller['proof']): Promise<Caller | Refusal>
  /**
   * Returns the session with the users of its account, or `unauthorized` if the session does not
   * exist or has ended. Refusals of the lookup are passed on.
   */
  session(hash: string): Promise<FoundConsoleSession | Refusal>
  /** Records that the session of a caller was used now. */
  used(caller: Caller): void
  /**
   * Returns the time in Unix milliseconds at which the key of a caller expires or, for a caller
   * without a key, the session. Returns undefined if the key never expires or the session is not
   * cached.
   */
  expiryOf(caller: Caller): number | undefined
  /**
   * Returns the time in Unix milliseconds at which a caller loses access unless it makes another
   * request. Returns undefined if the session is not cached.
   */
  endOf(caller: Caller): number | undefined
}

/** Maximum number of cached sessions. Beyond it, a new session replaces the oldest one. */
const REMEMBERED = 10_000
const nameOf = ({ project = '', people }: Preference): string =>
  `${people ? 'people' : ''} ${project}`

/** Returns all rights of a session, with the rights of its account last. */
export const rightsOf = ({ session, users }: FoundConsoleSession): readonly Right[] => [
  ...session.grants,
  ...Object.entries(users).flatMap(([project_id, principal_id]) =>
    // The id is empty until the user of the project has been created.
    principal_id === '' ? [] : [{ project_id, principal_id }],
  ),
]

/** Creates the authentication of console sessions for a gateway. */
export function openConsoleSessions(
  world: Pick<World, 'ask' | 'now' | 'organization'>,
  directory: Directory,
): ConsoleSessions {
  const cache = new Map<string, Known>()
  const endOf = ({ found: { session }, used }: Known): number =>
    consoleEnd({ ...session, seen_at: Math.max(session.seen_at, used) })
  const ended = (entry: Known): boolean => endOf(entry) <= world.now()

  async function known(hash: string): Promise<Known | Refusal> {
    const organization = await directory.organization()
    if (isRefusal(organization)) return organization
    const before = cache.get(hash)
    if (before?.organization === organization && !ended(before)) return before
    const id = world.organization()
    const found = await world.ask({ project: id, kind: 'organization', id }, 'console_session', {
      hash,
    })
    if (found && isRefusal(found)) return found
    cache.delete(hash)
    if (!found) return refuse('unauthorized')
    const next: Known = {
      organization,
      found,
      used: before?.used ?? 0,
      callers: before?.organization === organization ? before.callers : new Map(),
    }
    if (ended(next)) return refuse('unauthorized')
    if (cache.size >= REMEMBERED) cache.delete(cache.keys().next().value ?? '')
    cache.set(hash, next)
    return next
  }

  const valid = ({ key, project }: Derived): boolean =>
    !(key && hasExpired(key, world.now())) &&
    (project === undefined || directory.project(project.id) === project)

  /** Returns the caller of one right, or undefined when the right is no longer valid. */
  async function callerOf(
    { organization, found: { session } }: Known,
    { project_id, principal_id, key: of }: Right,
    proof: Caller['proof'],
  ): Promise<Derived | undefined | Refusal> {
    if (project_id === undefined) {
      const key = of && getOwn(organization.keys, of.hash)
      return key && !hasExpired(key, world.now())
        ? { caller: organizationCaller(key, proof), key }
        : undefined
    }
    const record = getOwn(organization.projects, project_id)
    if (!record || record.deleted) return undefined
    const project = await directory.project(project_id)
    if (isRefusal(project)) return project
    const principal = getOwn(project.principals, principal_id)
    if (principal?.state !== 'active') return undefined
    if (!of) {
      const credential = { type: 'console_session', id: session.id, name: 'console' } as const
      return { caller: projectCaller(project, principal, { credential }, proof), project }
    }
    const key = getOwn(project.keys, of.hash)
    return key && key.principal_id === principal_id && !hasExpired(key, world.now())
      ? { caller: projectCaller(project, principal, { key }, proof), key, project }
      : undefined
  }

  async function derive(hash: string, preference: Preference): Promise<Caller | Refusal> {
    const now = await known(hash)
    if (isRefusal(now)) return now
    const { organization, found, callers } = now
    const { project, people } = preference
    const id = project && (getOwn(organization.handles, project) ?? project)
    const wish: Preference = { ...(id && { project: id }), ...(people && { people }) }
    const name = nameOf(wish)
    const before = callers.get(name)
    if (before && valid(before)) return before.caller
    const { session } = found
    const proof: Caller['proof'] = { hash, tag: '', session: wish }
    const rank = ({ project_id }: Right): number =>
      id !== undefined && project_id === id ? 0 : (project_id === undefined) === !people ? 1 : 2
    for (const right of [...rightsOf(found)].sort((a, b) => rank(a) - rank(b))) {
      const derived = await callerOf(now, right, proof)
      if (!derived) continue
      if (isRefusal(derived)) return derived
      const caller: Caller = {
        ...derived.caller,
        session: {
          id: session.id,
          idle: session.idle,
          principals: rightsOf(found).map(({ principal_id }) => principal_id),
        },
      }
      callers.set(name, { ...derived, caller })
      return caller
    }
    return refuse('unauthorized')
  }

  return {
    find: derive,
    again: ({ hash, session }) => derive(hash, session ?? {}),
    session: async (hash) => {
      const now = await known(hash)
      return isRefusal(now) ? now : now.found
    },
    used({ proof }) {
      const entry = cache.get(proof.hash)
      if (entry) entry.used = world.now()
    },
    expiryOf({ proof: { hash, session } }) {
      const entry = cache.get(hash)
      const derived = entry?.callers.get(nameOf(session ?? {}))
      return derived?.key ? expiryOf(derived.key) : entry?.found.session.expires_at
    },
    endOf({ proof: { hash, session } }) {
      const entry = cache.get(hash)
      if (!entry) return undefined
      const key = entry.callers.get(nameOf(session ?? {}))?.key
      return Math.min(endOf(entry), (key && expiryOf(key)) ?? Infinity)
    },
  }
}
