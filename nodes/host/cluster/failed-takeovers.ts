/**
 * The shards of a node whose takeover fails repeatedly, for example because an error occurs in the
 * replay. The ownership record names this node, so no other node takes over such a shard, and
 * its requests wait in vain. The node therefore reports it.
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
/** Maximum number of milliseconds between two attempts. */
const MAX_PAUSE_MS = 30_000

interface Failure {
  readonly since: number
  readonly until: number
  readonly reason: string
  readonly isReported: boolean
}

export class FailedTakeovers {
  readonly #failures = new Map<string, Failure>()

  /**
   * Records that a takeover failed.
   * @param now monotonic time in milliseconds (`Clock.elapsed`).
   * @returns whether this shard is reported from now on, and was not before.
   */
  add(shard: string, reason: string, now: number): boolean {
    const before = this.#failures.get(shard)
    const since = before?.since ?? now
    const failing = now - since
    const until = now + Math.min(MAX_PAUSE_MS, failing * PAUSE_SHARE)
    const isReported = failing >= REPORT_AFTER_MS
    this.#failures.set(shard, { since, until, reason, isReported })
    return isReported && !before?.isReported
  }
  /** Whether a takeover may be attempted now. */
  permits(shard: string, now: number): boolean {
    return now >= (this.#failures.get(shard)?.until ?? 0)
  }
  /** Records that the shard was taken over, or is assigned to another node. */
  delete(shard: string): void {
    this.#failures.delete(shard)
  }
  /** Returns the reported shards with the reasons, as short texts for `/readyz`. */
  reports(): readonly string[] {
    return [...this.#failures].flatMap(([shard, { reason, isReported }]) =>
      isReported ? [`shard ${shard}: its takeover fails repeatedly (${reason})`] : [],
    )
  }
}
