/**
 * The shards of a node whose takeover fails repeatedly, for example because an error occurs in the
 * replay. A shard that is lost soon after its takeover counts as well. The ownership record names
 * this node, so no other node takes over such a shard, and its requests wait in vain. The node
 * therefore reports it.
 */

/**
 * Milliseconds for which the takeover of a shard must have failed before this is reported. Leaders
 * of streams are usually elected within this time.
 */
const REPORT_AFTER_MS = 6000
/**
 * The pause after a failed attempt, as a share of the time for which the takeover has failed. A
 * fault that ends soon therefore delays the takeover only a little.
 */
const PAUSE_SHARE = 0.25
/**
 * Maximum number of milliseconds between two attempts. A shard that was served briefly is taken over
 * again sooner, because its requests can succeed in the meantime.
 */
const MAX_PAUSE_MS = { failed: 30_000, lost: 2000 } as const
/**
 * Milliseconds for which a shard must be served before its earlier failures are forgotten. Within
 * this time, the owner has stored its first checkpoints.
 */
const SETTLED_AFTER_MS = 3000

interface Failure {
  readonly since: number
  readonly until: number
  readonly reason: string
  readonly isReported: boolean
}

/** All times are monotonic times in milliseconds (`Clock.elapsed`). */
export class FailedTakeovers {
  readonly #node: string
  readonly #failures = new Map<string, Failure>()
  /** The times at which the served shards were taken over. */
  readonly #served = new Map<string, number>()

  /** @param node id of this node, for the reports. */
  constructor(node: string) {
    this.#node = node
  }
  /**
   * Records that a takeover failed.
   * @returns whether this shard is reported from now on, and was not before.
   */
  add(shard: string, reason: string, now: number): boolean {
    return this.#note(shard, reason, now, MAX_PAUSE_MS.failed)
  }
  #note(shard: string, reason: string, now: number, maxPause: number): boolean {
    const before = this.#failures.get(shard)
    const since = before?.since ?? now
    const failing = now - since
    const until = now + Math.min(maxPause, failing * PAUSE_SHARE)
    const isReported = failing >= REPORT_AFTER_MS
    this.#failures.set(shard, { since, until, reason, isReported })
    return isReported && !before?.isReported
  }
  /** Records that the shard was taken over. */
  serve(shard: string, now: number): void {
    this.#served.set(shard, now)
  }
  /**
   * Records that a served shard was lost. If it was served only briefly, its takeover counts as
   * failed.
   * @returns as `add`.
   */
  lose(shard: string, reason: string, now: number): boolean {
    const served = this.#served.get(shard) ?? now
    this.#served.delete(shard)
    if (now - served < SETTLED_AFTER_MS) return this.#note(shard, reason, now, MAX_PAUSE_MS.lost)
    this.#failures.delete(shard)
    return false
  }
  /** Whether a takeover may be attempted now. */
  permits(shard: string, now: number): boolean {
    return now >= (this.#failures.get(shard)?.until ?? 0)
  }
  /** Forgets a shard that another node owns, or that is assigned to another node. */
  delete(shard: string): void {
    this.#failures.delete(shard)
    this.#served.delete(shard)
  }
  /** Returns the reported shards with the reasons, as short texts for `/readyz`. */
  reports(now: number): readonly string[] {
    const isSettled = (shard: string) => now - (this.#served.get(shard) ?? now) >= SETTLED_AFTER_MS
    return [...this.#failures].flatMap(([shard, { reason, isReported }]) =>
      isReported && !isSettled(shard)
        ? [`shard ${shard}: its takeover by node ${this.#node} fails repeatedly (${reason})`]
        : [],
    )
  }
}
