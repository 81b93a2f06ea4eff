/**
 * Rate limits: one bucket per credential and one per organization, counted by this gateway alone. A bucket's window begins with
 * the first request in it.
 */
import { refuse, type Refusal } from '../protocol/errors.ts'
import type { World } from './ports.ts'
import { headerLine } from './respond.ts'

/** What every answer says about the tightest bucket, as lines of its head, and the refusal when one is empty. */
interface Admission {
  readonly lines: string
  readonly refused?: Refusal
}
/** Count one request of a credential in an organization. */
export type Limits = (credential: string, organization: string) => Admission

type Scope = 'key' | 'org'
interface Window {
  used: number
  /** Unix milliseconds. */
  readonly ends: number
  /** The lines that stay the same while it lasts. */
  readonly lines: string
}
/** Windows kept before those that have ended are dropped. */
const KEPT = 10_000

class Buckets {
  readonly scope: Scope
  readonly points: number
  readonly #seconds: number
  readonly #windows = new Map<string, Window>()

  constructor(scope: Scope, points: number, seconds: number) {
    this.scope = scope
    this.points = points
    this.#seconds = seconds
  }

  take(name: string, now: number): Window {
    let window = this.#windows.get(name)
    if (!window || window.ends <= now) {
      if (this.#windows.size >= KEPT) for (const [other, { ends }] of this.#windows) if (ends <= now) this.#windows.delete(other)
      const ends = now + this.#seconds * 1000
      const lines = headerLine('X-RateLimit-Limit', String(this.points)) + headerLine('X-RateLimit-Reset', String(Math.ceil(ends / 1000)))
        + headerLine('X-RateLimit-Scope', this.scope) + headerLine('X-RateLimit-Policy', `${this.points};w=${this.#seconds}`)
      window = { used: 0, ends, lines }
      this.#windows.set(name, window)
    }
    window.used++
    return window
  }
}

/** What is left of a bucket as a part of it; less than nothing when it is empty, more than all of it when there is none. */
const share = (window: Window | undefined, points: number): number => (window ? Math.max(0, points - window.used) / points - (window.used > points ? 1 : 0) : 2)

/** Limits as configured; a limit of 0 is none. Undefined when there are none at all. */
export function createLimits(world: World): Limits | undefined {
  const { key, organization, window_seconds } = world.settings.rate
  const keys = key > 0 ? new Buckets('key', key, window_seconds) : undefined
  const organizations = organization > 0 ? new Buckets('org', organization, window_seconds) : undefined
  if (!keys && !organizations) return undefined

  return (credential, organizationId) => {
    const now = world.now()
    const mine = keys?.take(credential, now)
    const all = organizations?.take(organizationId, now)
    // Of two empty ones the key's is told, because it is the caller's own.
    const byKey = share(mine, key) <= share(all, organization)
    const [window, points, scope] = byKey ? [mine, key, 'key'] : [all, organization, 'org']
    if (!window) return { lines: '' }
    const lines = window.lines + headerLine('X-RateLimit-Remaining', String(Math.max(0, points - window.used)))
    if (window.used <= points) return { lines }
    world.count.inc('rate_limited')
    const seconds = Math.max(1, Math.ceil((window.ends - now) / 1000))
    return { lines: lines + headerLine('Retry-After', String(seconds)), refused: refuse('rate_limit_exceeded', { scope, limit: points, window_seconds, retry_after_seconds: seconds }) }
  }
}
