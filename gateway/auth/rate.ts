/**
 * Rate limits: one bucket per caller and one per organization, counted by this gateway alone. A caller is an API key, a person
 * over all their tokens, an HTTP trigger, or, for requests without a valid credential, an address.
 */
import { RateLimiterMemory, type RateLimiterRes } from 'rate-limiter-flexible'
import { refuse, type Refusal } from '../../protocol/errors.ts'
import type { World } from '../ports.ts'

/** What every answer says about the tightest bucket, and the refusal when one is empty. */
interface Admission {
  readonly headers: Readonly<Record<string, string>>
  readonly refused?: Refusal
}
/** Count one request of a caller, and of the organization when it is the caller's. */
export type Limits = (caller: string, organization?: string) => Promise<Admission>

/**
 * Charge a refused request to its address: beyond the limit of a caller it is refused for that. A valid credential is never
 * refused for what others do from its address, because many share one.
 */
export async function charged(
  limits: Limits | undefined,
  address: string,
  refusal: Refusal,
): Promise<Refusal> {
  return (await limits?.(`address:${address}`))?.refused ?? refusal
}

type Scope = 'key' | 'org'

/** Limits as configured; a limit of 0 is none. Undefined when there are none at all. */
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
      // What one key has too much takes nothing from the others.
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
