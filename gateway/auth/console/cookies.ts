/**
 * The cookies of the console, and the rules under which a request may use them.
 *
 * Invariants:
 * K1. A cookie authenticates only requests of the service's own origin. This origin is the
 *     configured public origin. Without a configured origin, it is `http://` followed by the `Host`
 *     header, if the header contains a loopback name. State-changing requests and WebSocket
 *     upgrades must carry this origin in `Origin`. Read requests from another origin or site are
 *     treated as unauthenticated.
 * K2. Cookies are HttpOnly and SameSite=Lax. With https they are Secure and have the prefix
 *     `__Host-`. Over plain HTTP, on loopback only, their names end with the port, because browsers
 *     share the cookies of a host among its ports.
 */
import { type Refusal, refuse } from '../../../protocol/errors.ts'
import { openToken, type Sealer, sealToken } from '../../http/sealed-token.ts'
import type { GatewaySettings, World } from '../../ports.ts'

type Settings = Pick<GatewaySettings, 'brand' | 'console'>
/**
 * The method of a request and the headers that the cookie rules read. An absent header is empty or
 * undefined.
 */
export interface CookieHeaders {
  readonly method: string
  header(name: 'cookie' | 'host' | 'origin' | 'sec-fetch-site'): string | undefined
}
/** `session`: a signed-in browser. `sign_in`: a sign-in with OpenID Connect that is in progress. */
export type CookieUse = 'session' | 'sign_in'

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d{1,5})?$/i
const READING: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])
const PURPOSE = 'console session'
/** Maximum length of a `Cookie` header in characters. Longer headers are ignored. */
const MAX_HEADER_LENGTH = 16_384

/**
 * Returns the service's own origin for a request with the given `Host` header. Returns undefined if
 * cookies may not be used at this origin.
 */
export function ownOrigin({ console: settings }: Settings, host = ''): string | undefined {
  if (settings?.origin !== undefined) {
    const { protocol, host: named } = new URL(settings.origin)
    return protocol === 'https:' || LOOPBACK.test(named) ? settings.origin : undefined
  }
  return LOOPBACK.test(host) ? new URL(`http://${host}`).origin : undefined
}
const isSecure = (origin: string): boolean => origin.startsWith('https:')
/** Returns the name of a cookie at an origin. */
export function cookieName({ brand }: Settings, origin: string, use: CookieUse): string {
  const name = `${brand.toLowerCase()}_${use}`
  return isSecure(origin) ? `__Host-${name}` : `${name}_${new URL(origin).port || '80'}`
}
/**
 * Returns the `Set-Cookie` header that stores a cookie.
 * @param seconds time after which the browser deletes the cookie; 0 deletes it now.
 */
export const setCookie = (
  settings: Settings,
  origin: string,
  use: CookieUse,
  value: string,
  seconds: number,
): Readonly<Record<'Set-Cookie', string>> => ({
  'Set-Cookie':
    `${cookieName(settings, origin, use)}=${value}; Path=/; Max-Age=${Math.floor(seconds)}; ` +
    `HttpOnly; SameSite=Lax${isSecure(origin) ? '; Secure' : ''}`,
})
/**
 * Returns the value of the first cookie with the given name. Returns undefined if no cookie has
 * this name, or if the header is longer than `MAX_HEADER_LENGTH` characters.
 */
export function cookieIn(header: string | undefined, name: string): string | undefined {
  if (header === undefined || header.length > MAX_HEADER_LENGTH) return undefined
  for (const pair of header.split(';')) {
    const at = pair.indexOf('=')
    if (at > 0 && pair.slice(0, at).trim() === name) return pair.slice(at + 1).trim()
  }
  return undefined
}

/** Returns the cookie of a new session, and the hash under which the session is stored. */
export function newSessionCookie(world: Pick<World, 'random' | 'seal' | 'hash'>): {
  readonly value: string
  readonly hash: string
} {
  const value = sealToken(world, PURPOSE, [Buffer.from(world.random(24)).toString('base64url')])
  return { value, hash: world.hash(value) }
}
/**
 * Returns the hash of a session cookie, or undefined when this installation did not issue it.
 * Forged cookies therefore cause no lookups.
 */
const hashOf = (world: Sealer & Pick<World, 'hash'>, value: string): string | undefined =>
  openToken(world, PURPOSE, value) && world.hash(value)

const WRONG_ORIGIN = 'A request with a console session must come from a page of this service.'

/**
 * Returns `forbidden` for a request whose `Origin` header is not the service's own origin.
 * @param origin the service's own origin.
 */
export const refuseForeignOrigin = (
  request: Pick<CookieHeaders, 'header'>,
  origin: string,
): Refusal | undefined => {
  const given = request.header('origin')
  return given === origin
    ? undefined
    : refuse('forbidden', { origin: given ?? null, expected_origin: origin }, WRONG_ORIGIN)
}

/**
 * Returns the hash of the session cookie of a request, without checking the origin of the request.
 * The caller must have made sure in another way that the browser of the person sent the request.
 */
export function sessionCookieHash(
  world: Pick<World, 'seal' | 'hash' | 'settings'>,
  request: Pick<CookieHeaders, 'header'>,
): string | undefined {
  const origin = ownOrigin(world.settings, request.header('host'))
  const value =
    origin && cookieIn(request.header('cookie'), cookieName(world.settings, origin, 'session'))
  return value ? hashOf(world, value) : undefined
}

/**
 * Returns the hash of the session cookie of a request, or undefined if it has no usable session
 * cookie. Returns `forbidden` for a state-changing request or an upgrade with the cookie but
 * without the service's origin.
 * @param upgrade whether the request opens a WebSocket, which always needs the origin.
 */
export function sessionCookieOf(
  world: Pick<World, 'seal' | 'hash' | 'settings'>,
  request: CookieHeaders,
  upgrade = false,
): string | undefined | Refusal {
  const cookies = request.header('cookie')
  if (cookies === undefined) return undefined
  const { settings } = world
  const origin = ownOrigin(settings, request.header('host'))
  if (!origin || !cookieIn(cookies, cookieName(settings, origin, 'session'))) return undefined
  if (upgrade || !READING.has(request.method)) {
    const refused = refuseForeignOrigin(request, origin)
    if (refused) return refused
  } else {
    const from = request.header('origin')
    const crosses = request.header('sec-fetch-site')?.toLowerCase() === 'cross-site'
    if (crosses || (from !== undefined && from !== origin)) return undefined
  }
  return sessionCookieHash(world, request)
}
