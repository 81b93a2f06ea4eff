/**
 * Merges the waiting jobs of several shards into one order. Each shard offers the jobs of its part
 * of a queue, in the order of that part. The class `Order` merges the offers of one queue and one
 * capability before slots are assigned. `offers.ts` decides for which session a job is taken.
 *
 * Order: higher priority first, then round-robin over the fairness keys (start-time fair queuing,
 * Goyal et al. 1996), then oldest first.
 *
 * Invariants:
 * R1. An offer is answered within `COLLECT_TIMEOUT_MS`. It waits for shards that are known to have
 *     jobs that precede its own. While it is unknown which shards have jobs, it also waits for
 *     every shard that has sent no offer yet, provided that slots became free within the last
 *     `COLLECT_TIMEOUT_MS`.
 * R2. A job does not wait for an older job of another shard if their ages differ by no more than a
 *     tolerance. The tolerance is 100 ms when few jobs are left. It is 1 s when many jobs are left,
 *     because idle slots would then reduce the throughput.
 * R3. Knowledge about other shards is only a hint. It may delay an offer, but never prevents a job
 *     from being taken.
 */
import type { JobHeader } from '../../../protocol/jobs/rows.ts'
import type { MaybePromise } from '../../maybe-promise.ts'

/**
 * Maximum wait of an offer in milliseconds. It is long enough for a shard on a busy machine to be
 * notified of a free slot and to send an offer.
 */
export const COLLECT_TIMEOUT_MS = 50
/**
 * Maximum difference in age, in milliseconds, at which a job does not wait for an older job of
 * another shard: `few` when few jobs are left, and `many` otherwise.
 */
const TOLERANCE = { few: 100, many: 1000 } as const
/** Maximum number of remaining jobs at which `TOLERANCE.few` applies. */
const MAX_FEW_JOBS = 32
/** Milliseconds after `#heard` for which it is considered known which shards have jobs. */
const KNOWN_MS = 2000
/** Number of fairness keys above which the keys whose turn has passed are removed. */
const KEYS = 1024

type Ranked = Pick<JobHeader, 'id' | 'priority' | 'fairness_key' | 'enqueued_at'>
/** The result of an offer: the jobs taken from it, and the jobs that are left. */
export interface Decided<J, T> {
  readonly taken: readonly T[]
  readonly left: readonly J[]
}
interface Parts<J, T> {
  /** Returns whether a job may be taken for at least one worker session. */
  readonly fits: (job: J) => boolean
  /**
   * Takes a job. Returns undefined when it cannot be taken.
   * @param again whether to take the job only if it is reserved already.
   */
  readonly take: (job: J, again: boolean) => T | undefined
  /** Returns the current time in Unix milliseconds. */
  readonly now: () => number
  readonly later: (ms: number, run: () => void) => () => void
  /** The number of shards that may have work. */
  readonly shards: number
  /**
   * Returns the time at which slots for a job became free, in Unix milliseconds. Shards whose jobs
   * could not be taken before may not have been notified of these slots yet.
   */
  readonly since: (job: J) => number
}
interface OpenOffer<J, T> {
  readonly source: string | undefined
  /** The jobs that are not taken yet, in the shard's order. */
  readonly jobs: J[]
  /** The first of these jobs for each fairness key. */
  readonly heads: J[]
  readonly taken: T[]
  readonly left: J[]
  answer: ((decided: Decided<J, T>) => void) | undefined
}

/**
 * Returns the candidates for the next job of an offer: the first job of each fairness key. It also
 * has the highest priority among the jobs with its key.
 */
function headsOf<J extends Ranked>(jobs: readonly J[]): J[] {
  const heads: J[] = []
  for (const job of jobs)
    if (!heads.some(({ fairness_key }) => fairness_key === job.fairness_key)) heads.push(job)
  return heads
}

/** Merges the offers of one queue and one capability into one order. */
export class Order<J extends Ranked, T> {
  readonly #parts: Parts<J, T>
  /**
   * For each shard whose last answered offer left jobs: the first remaining job of each fairness
   * key, the number of remaining jobs, and the number of the answer.
   */
  readonly #heads = new Map<
    string,
    { readonly jobs: readonly J[]; readonly left: number; readonly answer: number }
  >()
  #answers = 0
  #open: OpenOffer<J, T>[] = []
  /** For each fairness key, the earliest turn that its next job can have. */
  readonly #turns = new Map<string, number>()
  /** The turn of the job that was taken last. */
  #turn = 0
  /**
   * The last time at which every shard had sent an offer or had had time to do so, in Unix
   * milliseconds.
   */
  #heard = Number.NEGATIVE_INFINITY
  /**
   * The current wait of the open offers. `since` is the number of the last answer before the wait
   * began.
   */
  #wait: { readonly since: number; readonly cancel: () => void } | undefined

  constructor(parts: Parts<J, T>) {
    this.#parts = parts
  }
  /** Whether no offer is open and no shard is known to have remaining jobs. */
  get idle(): boolean {
    return this.#heads.size === 0 && this.#open.length === 0
  }

  /**
   * Takes jobs from a shard's offer.
   * @param source the shard, or undefined when it is unknown. An offer without a source never
   * waits.
   * @param jobs the jobs in the shard's order.
   * @param ahead whether the answer is needed immediately. If the offer would have to wait, only
   * jobs that are reserved already are taken.
   */
  offer(
    source: string | undefined,
    jobs: readonly J[],
    ahead = false,
  ): MaybePromise<Decided<J, T>> {
    const one: OpenOffer<J, T> = {
      source,
      jobs: [...jobs],
      heads: headsOf(jobs),
      taken: [],
      left: [],
      answer: undefined,
    }
    if (source === undefined) return this.#finish(one, false)
    const first = this.#first([one])?.job
    if (ahead && (this.#open.length > 0 || (first && this.#mustWait(one, first))))
      return this.#finish(one, true)
    this.#open.push(one)
    if (this.#decide(false)) return one
    return new Promise((resolve) => {
      one.answer = resolve
    })
  }

  /**
   * Takes the jobs of the open offers in order until no more can be taken, and answers the offers.
   * @param late whether the wait has ended, so that the offers must not wait again.
   * @returns false when the open offers must wait.
   */
  #decide(late: boolean): boolean {
    for (;;) {
      const first = this.#first(this.#open)
      if (!first || !this.#parts.fits(first.job)) break
      const { one, job } = first
      if (!late && this.#mustWait(one, job)) {
        this.#wait ??= {
          since: this.#answers,
          cancel: this.#parts.later(COLLECT_TIMEOUT_MS, () => this.#expire()),
        }
        return false
      }
      const take = this.#parts.take(job, false)
      if (take === undefined) break
      one.jobs.splice(one.jobs.indexOf(job), 1)
      const next = one.jobs.find(({ fairness_key }) => fairness_key === job.fairness_key)
      one.heads.splice(one.heads.indexOf(job), 1, ...(next ? [next] : []))
      one.taken.push(take)
      this.#serve(job)
    }
    this.#wait?.cancel()
    this.#wait = undefined
    for (const one of this.#open.splice(0)) {
      const decided = this.#finish(one, false)
      one.answer?.(decided)
    }
    return true
  }
  /**
   * Ends the wait. Every shard with jobs has had time to send an offer, so a shard that has sent
   * none is assumed to have no jobs left.
   */
  #expire(): void {
    const since = this.#wait?.since ?? 0
    this.#wait = undefined
    this.#heard = this.#parts.now()
    const open = new Set(this.#open.map(({ source }) => source))
    for (const [source, { answer }] of this.#heads)
      if (answer <= since && !open.has(source)) this.#heads.delete(source)
    this.#decide(true)
  }
  #finish(one: OpenOffer<J, T>, again: boolean): Decided<J, T> {
    for (const job of one.jobs) {
      const take = this.#parts.take(job, again)
      if (take === undefined) one.left.push(job)
      else one.taken.push(take)
    }
    if (one.source === undefined) return one
    if (one.left.length > 0)
      this.#heads.set(one.source, {
        jobs: headsOf(one.left),
        left: one.left.length,
        answer: ++this.#answers,
      })
    else this.#heads.delete(one.source)
    return one
  }

  /**
   * Returns the job of these offers that comes first in the order, with its offer; undefined if no
   * job is left.
   */
  #first(
    open: readonly OpenOffer<J, T>[],
  ): { readonly one: OpenOffer<J, T>; readonly job: J } | undefined {
    let first: { readonly one: OpenOffer<J, T>; readonly job: J } | undefined
    for (const one of open)
      for (const job of one.heads)
        if (!first || this.#precedes(job, first.job, 0)) first = { one, job }
    return first
  }
  #mustWait({ source }: OpenOffer<J, T>, job: J): boolean {
    let left = 0
    for (const head of this.#heads.values()) left += head.left
    const tolerance = left <= MAX_FEW_JOBS ? TOLERANCE.few : TOLERANCE.many
    for (const [other, head] of this.#heads)
      if (
        other !== source &&
        head.jobs.some((ahead) => this.#precedes(ahead, job, tolerance)) &&
        !this.#open.some((one) => one.source === other)
      )
        return true
    const now = this.#parts.now()
    if (now - this.#heard <= KNOWN_MS || now - this.#parts.since(job) > COLLECT_TIMEOUT_MS)
      return false
    if (this.#open.length < this.#parts.shards) return true
    this.#heard = now
    return false
  }
  /**
   * Returns whether a job precedes another job.
   * @param tolerance difference in age, in milliseconds, up to which both count as equally old.
   */
  #precedes(job: J, other: J, tolerance: number): boolean {
    if (job.priority !== other.priority) return job.priority > other.priority
    const [turn, others] = [this.#turnOf(job), this.#turnOf(other)]
    return turn === others ? job.enqueued_at + tolerance < other.enqueued_at : turn < others
  }
  #turnOf({ fairness_key }: J): number {
    return Math.max(this.#turn, this.#turns.get(fairness_key) ?? 0)
  }
  #serve(job: J): void {
    this.#turn = this.#turnOf(job)
    this.#turns.set(job.fairness_key, this.#turn + 1)
    if (this.#turns.size <= KEYS) return
    for (const [key, turn] of this.#turns) if (turn <= this.#turn) this.#turns.delete(key)
  }
}
