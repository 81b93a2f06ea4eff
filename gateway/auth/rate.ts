/**
 * Rate limits: one bucket per caller and one for the organization. Each gateway counts separately.
 * A caller is an API key, a person with all of their tokens and console sessions, an answer link,
 * an HTTP trigger, an integration, or a device that signs in. For a request without a valid
 * credential, the caller is the IP address. The code that handles a request chooses the buckets.
 */
import { RateLimiterMemory, type RateLimiterRes } from 'rate-limiter-flexible'
import { limitedAddress } from '../../protocol/access/limited-address.ts'
import { isServiceFault, type Refusal, refuse } from '../../protocol/errors.ts'
import type { World } from '../ports.ts'
import type { Caller } from './authenticate.ts'

/**
 * The rate-limit headers, which describe the bucket with the smallest remaining share, and the
 * refusal when a bucket is empty.
 */
interface Admission {
  readonly headers: Readonly<Record<string, string>>
  readonly refused?: Refusal
}
export interface Limits {
  /**
   * Counts one request in the bucket of `caller`, and in the bucket of `organization` when it is
   * given.
   */
  (caller: string, organization?: string): Promise<Admission>
  /**
   * Returns `rate_limit_exceeded` if the bucket of `caller` is empty, and otherwise undefined. No
   * request is counted.
   */
  peek(caller: string): Promise<Refusal | undefined>
}

/**
 * Returns the id under which the rate limit counts a caller's requests. All tokens and console
 * sessions of a person share one limit. Every other key has its own limit.
 */
export const callerLimitId = ({
  principal,
  credential,
}: Pick<Caller, 'principal' | 'credential'>) =>
  credential.type === 'cli_token' || credential.type === 'console_session'
    ? principal.id
    : credential.id

/**
 * Returns the id under which the rate limit counts the requests of an IP address. All IPv6 addresses
 * of a /64 network share one limit.
 */
export const addressLimitId = (address: string): string => `address:${limitedAddress(address)}`

/**
 * Counts a refused request against the rate limit of its IP address. Returns `rate_limit_exceeded`
 * once that limit is exceeded, otherwise `refusal`. Requests with a valid credential are not
 * counted by address, because many clients may share one address. Failures of the service (5xx) are
 * not counted either, because the client did not cause them.
 */
export async function countRefusal(
  limits: Limits | undefined,
  address: string,
  refusal: Refusal,
): Promise<Refusal> {
  return countFor(limits, addressLimitId(address), refusal)
}

/**
 * Returns `rate_limit_exceeded` while the rate limit of an IP address is exceeded. Call it before
 * the lookup of a code that can be guessed. Otherwise, a client that continues after its limit
 * would recognize the right guess by its response.
 */
export const refuseExceeded = async (
  limits: Limits | undefined,
  address: string,
): Promise<Refusal | undefined> => limits?.peek(addressLimitId(address))

/**
 * Counts a refused upgrade of a WebSocket. Without a valid credential, it counts against the rate
 * limit of its IP address, otherwise against that of its caller. Accepted upgrades are not counted.
 * Returns `rate_limit_exceeded` once the limit is exceeded, otherwise `refusal`.
 */
export const countRefusedUpgrade = (
  limits: Limits | undefined,
  address: string,
  caller: Caller | undefined,
  refusal: Refusal,
): Promise<Refusal> | Refusal => {
  if (caller) return countFor(limits, callerLimitId(caller), refusal)
  return refusal.refused === 'unauthorized' ? countRefusal(limits, address, refusal) : refusal
}

async function countFor(
  limits: Limits | undefined,
  counted: string,
  refusal: Refusal,
): Promise<Refusal> {
  if (isServiceFault(refusal)) return refusal
  return (await limits?.(counted))?.refused ?? refusal
}

type Scope = 'key' | 'org'

/**
 * Creates the configured rate limits. A value of 0 disables a limit. Returns undefined when all
 * limits are disabled.
 */
export function createLimits(world: World): Limits | undefined {
  const { key, organization, window_seconds } = world.settings.rate
  const bucket = (scope: Scope, points: number) =>
    points > 0
      ? {
          scope,
          points,
          limiter: new RateLimiterMemory({ keyPrefix: scope, points, duration: window_seconds }),
        }
      : undefined
  const buckets = [bucket('key', key), bucket('org', organization)].filter(
    (one) => one !== undefined,
  )
  if (buckets.length === 0) return undefined

  function refuseEmpty({ scope, points }: (typeof buckets)[number], left: RateLimiterRes): Refusal {
    world.count.inc('rate_limited')
    return refuse('rate_limit_exceeded', {
      scope,
      limit: points,
      window_seconds,
      retry_after_seconds: Math.max(1, Math.ceil(left.msBeforeNext / 1000)),
    })
  }
  async function peek(caller: string): Promise<Refusal | undefined> {
    const own = buckets.find(({ scope }) => scope === 'key')
    const left = await own?.limiter.get(caller)
    return own && left && left.remainingPoints <= 0 ? refuseEmpty(own, left) : undefined
  }
  async function count(caller: string, organizationId?: string): Promise<Admission> {
    const states = []
    for (const own of buckets) {
      const counted = own.scope === 'key' ? caller : organizationId
      if (counted === undefined) continue
      const state = await own.limiter.consume(counted).then(
        (left) => ({ left, empty: false }),
        (left: RateLimiterRes) => ({ left, empty: true }),
      )
      states.push({ own, ...state })
      // A request over its caller's limit is not counted in the organization's bucket.
      if (state.empty) break
    }
    const tightest = states.sort(
      (a, b) =>
        Number(b.empty) - Number(a.empty) ||
        a.left.remainingPoints / a.own.points - b.left.remainingPoints / b.own.points,
    )[0]
    if (!tightest) return { headers: {} }
    const { own, left, empty } = tightest
    const headers = {
      'X-RateLimit-Limit': String(own.points),
      'X-RateLimit-Remaining': String(Math.max(0, left.remainingPoints)),
      'X-RateLimit-Reset': String(Math.ceil((world.now() + left.msBeforeNext) / 1000)),
      'X-RateLimit-Scope': own.scope,
      'X-RateLimit-Policy': `${own.points};w=${window_seconds}`,
    }
    return { headers, ...(empty && { refused: refuseEmpty(own, left) }) }
  }
  return Object.assign(count, { peek })
}
