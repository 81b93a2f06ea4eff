/**
 * Updates the users of a person who signs in with OpenID Connect, so that their roles match the
 * person's groups. A person is one account, identified by issuer and subject, and has one user in
 * each project in which a group grants a role, or granted one at an earlier sign-in.
 *
 * Invariant: the account contains a project before the person's user in the project is created, so
 * a later sign-in finds every project from which roles may have to be removed, even if this sign-in
 * is interrupted.
 */
import type { AccountUsers } from '../../../protocol/access/console-rows.ts'
import type { OrganizationDirectory } from '../../../protocol/access/directory.ts'
import { SIGN_IN_PRINCIPAL } from '../../../protocol/access/identity.ts'
import type { Origin } from '../../../protocol/entry.ts'
import { isRefusal, isServiceFault, type Refusal } from '../../../protocol/errors.ts'
import { getOwn } from '../../../protocol/lookup.ts'
import type { Edge } from '../../call.ts'
import { sendNew } from '../../http/send.ts'
import type { World } from '../../ports.ts'
import { concurrently } from '../../timing.ts'
import type { SignedInPerson, SignInProvider } from './provider.ts'

/** Maximum number of projects that are updated concurrently. */
const MAX_CONCURRENT = 8
/** Wildcard in the mapping. As a group, it means every person, and as a project every project. */
const ALL = '*'

/** Derives the id of a person's account from issuer and subject. */
const accountId = (world: Pick<World, 'hash'>, { issuer, subject }: SignedInPerson): string =>
  world.hash(JSON.stringify(['account', issuer, subject])).slice(0, 40)

/** Returns the roles that a person's groups grant, by project id. */
export function rolesByProject(
  mapping: SignInProvider['groups'],
  groups: readonly string[],
  { projects }: Pick<OrganizationDirectory, 'projects'>,
): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, string[]>()
  const live = Object.values(projects).filter(({ deleted }) => !deleted)
  for (const group of new Set([ALL, ...groups]))
    for (const [name, roles] of Object.entries(getOwn(mapping, group) ?? {}))
      for (const { id, handle } of live)
        if (name === ALL || name === id || name === handle)
          found.set(id, [...(found.get(id) ?? []), ...roles])
  return found
}

/** The account of a person who may enter at least one project. */
interface SignedIn {
  /** The id of the account. */
  readonly account: string
  /** Whether the sign-in changed the users of the account. */
  readonly changed: boolean
}

/**
 * Creates and updates the users of a person. Returns the account, or a refusal. Returns undefined
 * if no active user of the person has a role. A project that accepts no new users does not prevent
 * the person from signing in to other projects.
 */
export async function alignPerson(
  { world, directory }: Edge,
  provider: SignInProvider,
  person: SignedInPerson,
  origin: Origin,
): Promise<SignedIn | undefined | Refusal> {
  const known = await directory.organization()
  if (isRefusal(known)) return known
  const account = accountId(world, person)
  const home = { project: known.id, kind: 'organization', id: known.id } as const
  const before = await world.ask(home, 'console_account', { id: account })
  if (isRefusal(before)) return before
  const { issuer, subject, name, email, groups } = person
  const wish = rolesByProject(provider.groups, groups, known)
  const put = (users: AccountUsers) =>
    sendNew(world, home, 'console_account.put', { id: account, issuer, subject, users }, origin)
  // An empty id marks a project in which the user has not been created yet.
  const announced = await put(
    Object.fromEntries([...wish.keys()].filter((id) => !getOwn(before, id)).map((id) => [id, ''])),
  )
  if (isRefusal(announced)) return announced
  const projects = [...new Set([...wish.keys(), ...Object.keys(before)])].filter((id) => {
    const project = getOwn(known.projects, id)
    return project && !project.deleted
  })
  const outcomes = await concurrently(MAX_CONCURRENT, projects, async (project) => {
    const outcome = await sendNew(
      world,
      { project, kind: 'project', id: project },
      'person.sign_in',
      {
        identity: { issuer, subject },
        name,
        ...(email !== undefined && { email }),
        roles: wish.get(project) ?? [],
      },
      origin,
    )
    if (isRefusal(outcome)) {
      // Roles of an existing user may have to be removed, so the sign-in fails.
      if (getOwn(before, project) || isServiceFault(outcome)) return outcome
      world.log.warn(
        { event: 'sign_in_user_refused', project, code: outcome.refused, reason: outcome.message },
        'a project refused a new user who signs in',
      )
      return { project, none: outcome }
    }
    const { user, changed, unknown } = outcome.reply
    if (changed) await world.forget(project)
    if (unknown.length > 0)
      world.log.warn(
        { event: 'sign_in_role_unknown', project, roles: unknown },
        'the mapping of groups names roles that a project does not have',
      )
    return { project, user }
  })
  const failed = outcomes.find(isRefusal)
  if (failed) return failed
  const decided = outcomes.flatMap((one) => (isRefusal(one) ? [] : [one]))
  const users = decided.flatMap((one) => (one.user ? [one] : []))
  const saved = await put(
    Object.fromEntries(users.map(({ project, user }) => [project, user?.id ?? ''])),
  )
  if (isRefusal(saved)) return saved
  const changed = announced.reply.changed || saved.reply.changed
  const enters = users.some(({ user }) => user?.active && user.roles > 0)
  if (enters) return { account, changed }
  return decided.find((one) => one.none)?.none
}

/** The principal that assigns roles at sign-in. */
export const ROLE_ALIGNER = {
  principal: { type: 'system', id: SIGN_IN_PRINCIPAL, name: 'OpenID Connect' },
  credential: { type: 'internal', id: SIGN_IN_PRINCIPAL },
} as const

/**
 * Returns whether the domain of a person's verified address is allowed. If no domains are
 * configured, every person is allowed.
 */
export const isOfDomain = (
  { domains }: Pick<SignInProvider, 'domains'>,
  { email }: Pick<SignedInPerson, 'email'>,
): boolean =>
  domains.length === 0 ||
  domains.includes(email?.slice(email.lastIndexOf('@') + 1).toLowerCase() ?? '')
