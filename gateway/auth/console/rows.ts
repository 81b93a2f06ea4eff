/**
 * The rows for console sessions and sign-in links. The sessions of a caller are those that act as
 * its principal or, if the caller itself is a session, as any of the principals of that session.
 */
import { type ConsoleSessionState, consoleEnd } from '../../../protocol/access/console-rows.ts'
import { timestamp } from '../../../protocol/common.ts'
import { isRefusal, refuse } from '../../../protocol/errors.ts'
import { type LocalQuery, localQuery, newestPage } from '../../listing.ts'
import type { World } from '../../ports.ts'
import type { Prepare } from '../../prepare.ts'
import type { Caller } from '../authenticate.ts'

/** The page of the console that reads the code of a link. */
export const SIGN_IN_PAGE = '/sign-in'

const principalsOf = ({ session, principal }: Caller): readonly string[] =>
  session?.principals ?? [principal.id]

/**
 * Returns a console session as the API shows it.
 * @param current id of the session of the request, if any.
 */
export const shownSession = (session: ConsoleSessionState, current: string | undefined) => {
  const { id, method, created_at, seen_at, expires_at, address, client } = session
  return {
    id,
    method,
    current: current === id,
    created_at: timestamp(created_at),
    last_used_at: timestamp(seen_at),
    idle_expires_at: timestamp(consoleEnd(session)),
    expires_at: timestamp(expires_at),
    ...(address !== undefined && { address }),
    ...(client !== undefined && { client }),
  }
}

/** Creates the code of a link, and the hash under which the organization stores it. */
export function newSignInCode(world: Pick<World, 'random' | 'hash'>): {
  readonly code: string
  readonly hash: string
} {
  const code = Buffer.from(world.random(24)).toString('base64url')
  return { code, hash: codeHash(world, code) }
}
/** Returns the hash under which the code of a link is stored. */
export const codeHash = (world: Pick<World, 'hash'>, code: string): string =>
  world.hash(`sign-in link\n${code}`)
/**
 * Returns the address of a link. The code is in the fragment, which browsers do not send, so it
 * does not appear in proxy logs. If the gateway listens on all addresses, the host in the link is
 * `localhost`.
 */
export function linkUrl(base: string, code: string): string {
  const reached = base.replace(/^http:\/\/(0\.0\.0\.0|\[::\])(?=:|$)/, 'http://localhost')
  return `${reached}${SIGN_IN_PAGE}#code=${code}`
}

const ofCaller: Prepare = (_, { caller }) => ({ input: { principals: principalsOf(caller) } })
export const consolePreparations: Readonly<Record<string, Prepare>> = {
  'console_session.revoke': ofCaller,
  'console_session.revoke_all': ofCaller,
  'sign_in_link.create': ({ world }, { caller }) => {
    if (caller.scope.kind !== 'organization')
      return refuse('forbidden', undefined, 'Only an organization key can create a sign-in link.')
    const { code, hash } = newSignInCode(world)
    const { console: settings, public_url } = world.settings
    return { input: { hash }, reply: { url: linkUrl(settings?.origin ?? public_url ?? '', code) } }
  },
}
export const consoleQueries: Readonly<Record<string, LocalQuery>> = {
  'console_session.list': localQuery<'console_session.list'>(async (context) => {
    const { world, caller } = context
    const id = world.organization()
    const sessions = await world.ask(
      { project: id, kind: 'organization', id },
      'console_sessions',
      { principals: principalsOf(caller) },
    )
    if (isRefusal(sessions)) return sessions
    return newestPage(
      context,
      'console_session.list',
      sessions
        .filter((session) => consoleEnd(session) > world.now())
        .map((session) => shownSession(session, caller.session?.id)),
    )
  }),
}
