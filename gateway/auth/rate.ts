/**
 * Rate limits: one bucket per caller and one per organization, counted by this gateway alone. A
 * caller is an API key, a person (all of their tokens together), an HTTP trigger, or, for requests
 * without a valid credential, an IP address.
 */
import { RateLimiterMemory, type RateLimiterRes } from 'rate-limiter-flexible'
import { type Refusal, refuse } from '../../protocol/errors.ts'
import type { World } from '../ports.ts'

/**
 * The headers that every answer has about the tightest bucket, and the refusal when a bucket is
 * empty.
 */
interface Admission {
  readonly headers: Readonly<Record<string, string>>
  readonly refused?: Refusal
}
/** Counts one request of a caller, and also of the organization when `organization` is given. */
export type Limits = (caller: string, organization?: string) => Promise<Admission>

/**
 * Charges a refused request to its IP address: above a caller's limit it is refused with
 * `rate_limit_exceeded` instead. A valid credential is never refused for requests of other clients
 * at its address, because many clients share one.
 */
export async function charged(
  limits: Limits | undefined,
  address: string,
  refusal: Refusal,
): Promise<Refusal> {
  return (await limits?.(`address:${address}`))?.refused ?? refusal
}

type Scope = 'key' | 'org'

/**
 * Creates the configured limits; a limit of 0 disables it. Undefined when all limits are disabled.
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

  return async (caller, organizationId) => {
    const states = []
    for (const { scope, points, limiter } of buckets) {
      const counted = scope === 'key' ? caller : organizationId
      if (counted === undefined) continue
      const state = await limiter.consume(counted).then(
        (left) => ({ left, empty: false }),
        (left: RateLimiterRes) => ({ left, empty: true }),
      )
      states.push({ scope, points, ...state })
      // A request over its key's limit does not use up the organization's bucket.
      if (state.empty) break
    }
    const tightest = states.sort(
      (a, b) =>
        Number(b.empty) - Number(a.empty) ||
        a.left.remainingPoints / a.points - b.left.remainingPoints / b.points,
    )[0]
    if (!tightest) return { headers: {} }
    const { scope, points, left, empty } = tightest
    const seconds = Math.max(1, Math.ceil(left.msBeforeNext / 1000))
    const headers = {
      'X-RateLimit-Limit': String(points),
      'X-RateLimit-Remaining': String(Math.max(0, left.remainingPoints)),
      'X-RateLimit-Reset': String(Math.ceil((world.now() + left.msBeforeNext) / 1000)),
      'X-RateLimit-Scope': scope,
      'X-RateLimit-Policy': `${points};w=${window_seconds}`,
    }
    if (!empty) return { headers }
    world.count.inc('rate_limited')
    return {
      headers,
      refused: refuse('rate_limit_exceeded', {
        scope,
        limit: points,
        window_seconds,
        retry_after_seconds: seconds,
      }),
    }
  }
}
