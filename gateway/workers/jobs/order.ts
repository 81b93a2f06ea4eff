/**
 * One order for the waiting work of several shards. Each shard offers the jobs of its part of a
 * queue, in their order. This class merges the offers of one queue and one capability before slots
 * are assigned.
 *
 * Order: higher priority first, then round-robin over the fairness keys (start-time fair queuing,
 * Goyal et al. 1996), then oldest first.
 *
 * Invariants:
 * R1. An offer is answered within `COLLECT_TIMEOUT_MS`. It waits only for shards known to have work
 *     that precedes its own. If nothing is known of the shards and workers have only just got room,
 *     it waits for the shards that have not yet sent an offer.
 * R2. Jobs do not wait for each other if their ages differ by less than a tolerance: 100 ms when
 *     few jobs are left, and 1 s when many are, because waiting slots would then cost throughput.
 * R3. The knowledge of other shards is a hint. It may delay an offer, but never removes a job from
 *     one.
 */
import type { JobHeader } from '../../../protocol/jobs/rows.ts'
import type { MaybePromise } from '../../maybe-promise.ts'

/**
 * The maximum milliseconds that an offer waits: the time a shard on a busy machine needs to learn
 * of a free slot and send an offer.
 */
export const COLLECT_TIMEOUT_MS = 50
/**
 * Differences in age, in milliseconds, that do not delay an offer for a job of another shard, when
 * few or many jobs are left.
 */
const TOLERANCE = { few: 100, many: 1000 } as const
/** The maximum number of remaining jobs that counts as few. */
const FEW = 32
/**
 * Milliseconds for which the knowledge of which shards have work stays valid, once all of them had
 * time to send an offer.
 */
const KNOWN = 2000
/** The number of fairness keys above which those with past turns are removed. */
const KEYS = 1024

type Ranked = Pick<JobHeader, 'id' | 'priority' | 'fairness_key' | 'enqueued_at'>
/** The result of an offer: the jobs taken from it, and the jobs that are left. */
export interface Decided<J, T> {
  readonly taken: readonly T[]
  readonly left: readonly J[]
}
interface Parts<J, T> {
  /** Whether a worker has room for a job. */
  readonly fits: (job: J) => boolean
  /**
   * Takes a job; undefined when no worker has room for it.
   * @param again takes it only if it is reserved already.
   */
  readonly take: (job: J, again: boolean) => T | undefined
  /** The current time in Unix milliseconds. */
  readonly now: () => number
  readonly later: (ms: number, run: () => void) => () => void
  /** The number of shards that may have work. */
  readonly shards: number
  /**
   * Since when workers have had room for a job, in Unix milliseconds: shards whose jobs could not
   * be taken before may not know it yet.
   */
  readonly since: (job: J) => number
}
interface OpenOffer<J, T> {
  readonly source: string | undefined
  /** The jobs not yet taken, in the shard's order. */
  readonly jobs: J[]
  /** Of these, the first of each fairness key. */
  readonly heads: J[]
  readonly taken: T[]
  readonly left: J[]
  answer: ((decided: Decided<J, T>) => void) | undefined
}

/**
 * The jobs of an offer that may come next: the first of each fairness key, which is also that key's
 * job of highest priority.
 */
function headsOf<J extends Ranked>(jobs: readonly J[]): J[] {
  const heads: J[] = []
  for (const job of jobs)
    if (!heads.some(({ fairness_key }) => fairness_key === job.fairness_key)) heads.push(job)
  return heads
}

/** The offers of one queue and one capability. */
export class Order<J extends Ranked, T> {
  readonly #parts: Parts<J, T>
  /**
   * Per shard, the first remaining job of each fairness key and the number of remaining jobs, as of
   * its last answered offer, and the number of that answer.
   */
  readonly #heads = new Map<
    string,
    { readonly jobs: readonly J[]; readonly left: number; readonly answer: number }
  >()
  #answers = 0
  #open: OpenOffer<J, T>[] = []
  /**
   * Per fairness key, the turn that follows its last job; `#turn` is the turn of the job taken
   * last.
   */
  readonly #turns = new Map<string, number>()
  #turn = 0
  /** When all shards last had time to send an offer. */
  #heard = Number.NEGATIVE_INFINITY
  /**
   * The wait of the open offers: the number of the last answer when it began, and its cancellation.
   */
  #wait: { readonly since: number; readonly cancel: () => void } | undefined

  constructor(parts: Parts<J, T>) {
    this.#parts = parts
  }
  /** Whether no work is known to be left. */
  get idle(): boolean {
    return this.#heads.size === 0 && this.#open.length === 0
  }

  /**
   * Takes jobs of a shard's offer.
   * @param source undefined when the shard is unknown: such an offer never waits.
   * @param jobs in the shard's order.
   * @param ahead the answer is needed at once: if the offer would have to wait, only jobs that are
   * reserved already are taken.
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
   * Takes the first job of the order until no more can be taken.
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
   * Ends the wait: every shard with work has had time to send an offer, so those that sent none
   * have no work left.
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

  /** The first job of these offers in the order. */
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
    const tolerance = left <= FEW ? TOLERANCE.few : TOLERANCE.many
    for (const [other, head] of this.#heads)
      if (
        other !== source &&
        head.jobs.some((ahead) => this.#precedes(ahead, job, tolerance)) &&
        !this.#open.some((one) => one.source === other)
      )
        return true
    const now = this.#parts.now()
    if (now - this.#heard <= KNOWN || now - this.#parts.since(job) > COLLECT_TIMEOUT_MS)
      return false
    if (this.#open.length < this.#parts.shards) return true
    this.#heard = now
    return false
  }
  /**
   * Whether a job comes before another one.
   * @param tolerance the difference in age, in milliseconds, that is ignored.
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
