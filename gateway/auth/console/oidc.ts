/**
 * Signing in with OpenID Connect: the page that sends the browser to the provider, and the callback
 * to which the provider sends the browser back. The protocol itself is implemented outside of the
 * gateway, behind the port `SignInProvider`.
 *
 * Invariants:
 * O1. The callback is accepted only from the browser that began the sign-in, which holds the sealed
 *     cookie with the state. The nonce and the code verifier are derived from the state with the
 *     secret of the installation, so they are not stored, and the code verifier never reaches a
 *     browser. A callback deletes the cookie, unless sign-in is not available or the rate limit is
 *     exceeded.
 * O2. A browser is sent only to the provider, or to a path of this service.
 * O3. Logs contain neither codes nor tokens.
 */
import { isRefusal, type Refusal } from '../../../protocol/errors.ts'
import type { Edge } from '../../call.ts'
import { originOf } from '../../http/origin.ts'
import type { Incoming } from '../../http/request.ts'
import type { Answer } from '../../http/respond.ts'
import { openToken, sealToken } from '../../http/sealed-token.ts'
import type { World } from '../../ports.ts'
import type { Handler } from '../../serve.ts'
import { addressLimitId } from '../rate.ts'
import { cookieIn, cookieName, ownOrigin, setCookie } from './cookies.ts'
import { alignPerson, isOfDomain, ROLE_ALIGNER } from './people.ts'
import type { SignInFailure, SignInProvider, SignInSecrets } from './provider.ts'
import { SIGN_IN_PAGE } from './rows.ts'
import { openSession } from './sign-in.ts'

export const OIDC_CALLBACK = '/auth/oidc/callback'
const PURPOSE = 'oidc sign-in'
/** Seconds within which a person must finish signing in at the provider. */
const SIGN_IN_TIMEOUT_S = 600
/** Maximum length in characters of the path to which a sign-in returns. */
const MAX_RETURN_LENGTH = 1024

/**
 * The reason why a sign-in failed, as the sign-in page shows it. `expired`: the callback came from
 * another browser, was repeated, or was too late. `no_access`: no group of the person grants a
 * role.
 */
type Failure =
  | SignInFailure
  | 'not_configured'
  | 'not_here'
  | 'expired'
  | 'wrong_domain'
  | 'no_access'
  | 'busy'
  | 'error'

const redirect = (location: string, headers: Answer['headers'] = {}): Answer => ({
  status: 303,
  headers: {
    Location: location,
    'Cache-Control': 'no-store',
    'Referrer-Policy': 'no-referrer',
    ...headers,
  },
})
/**
 * Returns the redirect to the sign-in page after a failure.
 * @param back path to which the next sign-in returns.
 */
const failed = (failure: Failure, back = '/'): Answer =>
  redirect(
    `${SIGN_IN_PAGE}?error=${failure}${back === '/' ? '' : `&return=${encodeURIComponent(back)}`}`,
  )
const failureOf = ({ refused }: Refusal): Failure =>
  refused === 'rate_limit_exceeded' || refused === 'service_unavailable' ? 'busy' : 'error'

/** Returns the text if it is a path of this service, with its query and fragment; otherwise `/`. */
export function returnPath(text: string | null, origin: string): string {
  if (text === null || text.length > MAX_RETURN_LENGTH || !/^\/(?![/\\])[\x21-\x7e]*$/.test(text))
    return '/'
  const url = URL.canParse(text, origin) ? new URL(text, origin) : undefined
  if (url?.origin !== origin || url.pathname.startsWith('//')) return '/'
  return `${url.pathname}${url.search}${url.hash}`
}

function secretsOf(world: Pick<World, 'seal'>, state: string): SignInSecrets {
  const derived = (use: string): string =>
    Buffer.from(world.seal(`oidc ${use}\n${state}`)).toString('base64url')
  return { state, nonce: derived('nonce'), verifier: derived('verifier') }
}

/**
 * Returns the service's origin and the provider for a request, or a redirect to the sign-in page
 * with the reason why the person cannot sign in. Requests count towards the limit of their IP
 * address.
 */
async function placeOf(
  { world, limits }: Edge,
  incoming: Incoming,
): Promise<{ readonly origin: string; readonly provider: SignInProvider } | Answer> {
  const { provider, settings } = world
  if (!provider) return failed('not_configured')
  const origin = ownOrigin(settings, incoming.header('host'))
  if (origin === undefined) return failed('not_here')
  const limited = await limits?.(addressLimitId(incoming.ip))
  return limited?.refused ? failed('busy') : { origin, provider }
}

/** Handles the start of a sign-in: sends the browser to the provider. */
export const startOidc =
  (edge: Edge): Handler =>
  async (incoming) => {
    const place = await placeOf(edge, incoming)
    if ('status' in place) return place
    const { world } = edge
    const { origin, provider } = place
    const back = returnPath(new URLSearchParams(incoming.query).get('return'), origin)
    const state = Buffer.from(world.random(24)).toString('base64url')
    const target = await provider.begin(`${origin}${OIDC_CALLBACK}`, secretsOf(world, state))
    if (typeof target === 'string') return failed(target, back)
    const until = world.now() + SIGN_IN_TIMEOUT_S * 1000
    const cookie = sealToken(world, PURPOSE, [state, back, until])
    return redirect(
      target.href,
      setCookie(world.settings, origin, 'sign_in', cookie, SIGN_IN_TIMEOUT_S),
    )
  }

/**
 * Returns the content of the sign-in cookie of a request, or undefined if the cookie is missing,
 * invalid or expired.
 */
function begunIn(
  world: World,
  incoming: Incoming,
  origin: string,
): { readonly state: string; readonly back: string } | undefined {
  const name = cookieName(world.settings, origin, 'sign_in')
  const cookie = cookieIn(incoming.header('cookie'), name)
  const [state, back, until] = (cookie && openToken(world, PURPOSE, cookie)) || []
  return typeof state === 'string' &&
    typeof back === 'string' &&
    typeof until === 'number' &&
    until > world.now()
    ? { state, back }
    : undefined
}

/**
 * Handles the callback: signs the person in, and sends the browser to the page from which the
 * sign-in began.
 */
export const finishOidc =
  (edge: Edge): Handler =>
  async (incoming, exchange) => {
    const place = await placeOf(edge, incoming)
    if ('status' in place) return place
    const { world } = edge
    const { origin, provider } = place
    exchange.add(setCookie(world.settings, origin, 'sign_in', '', 0))
    const begun = begunIn(world, incoming, origin)
    const query = new URLSearchParams(incoming.query)
    if (!begun) return failed('expired')
    const { state, back } = begun
    if (query.get('state') !== state) return failed('expired', back)
    const callback = new URL(`${OIDC_CALLBACK}?${incoming.query}`, origin)
    const person = await provider.finish(callback, secretsOf(world, state))
    if (typeof person === 'string') return failed(person, back)
    if (!isOfDomain(provider, person)) return failed('wrong_domain', back)
    if (!(await edge.becomesFresh())) return failed('busy', back)
    const aligned = await alignPerson(
      edge,
      provider,
      person,
      originOf(world, ROLE_ALIGNER, incoming),
    )
    if (!aligned) return failed('no_access', back)
    if (isRefusal(aligned)) return failed(failureOf(aligned), back)
    // Gateways cache a session together with the users of its account, so they must look up the
    // other sessions of this account again.
    if (aligned.changed) await world.forget(world.organization())
    const opened = await openSession(
      edge,
      incoming,
      origin,
      { account: aligned.account },
      ROLE_ALIGNER,
    )
    return isRefusal(opened) ? failed(failureOf(opened), back) : redirect(back, opened.headers)
  }
