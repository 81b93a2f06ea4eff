/**
 * One order for the waiting work of several shards. Each shard offers the jobs of its own part of a queue, in their order; here
 * offers of one queue and one capability are merged before slots are given away.
 *
 * Order: higher priority first, then the fairness keys in turns (start-time fair queuing, Goyal et al. 1996), then oldest first.
 *
 * Invariants:
 * R1. An offer is answered within `COLLECT_TIMEOUT_MS`. It waits only for shards that are known to have work that comes before its own or,
 *     where nothing is known and workers have only now got room, for those that have not spoken yet.
 * R2. Jobs that differ in age by less than a tolerance do not wait for each other: 100 ms where few jobs are left, and 1 s where
 *     many are, because then slots that wait would cost throughput.
 * R3. What is known of other shards is a hint. It may delay an offer, and never takes anything out of one.
 */
import type { JobHeader } from '../../../protocol/jobs/rows.ts'
import type { MaybePromise } from '../../maybe-promise.ts'

/** Milliseconds that an offer waits at most: what a shard of a busy machine takes to hear of a free slot and to offer. */
export const COLLECT_TIMEOUT_MS = 50
/** Milliseconds of age that do not matter between an offer and one that is not here, where few or many jobs are left. */
const TOLERANCE = { few: 100, many: 1000 } as const
/** Jobs left that still are few. */
const FEW = 32
/** Milliseconds for which it is known which shards have work, after all of them could speak. */
const KNOWN = 2000
/** Fairness keys whose turns are remembered. */
const KEYS = 1024

type Ranked = Pick<JobHeader, 'id' | 'priority' | 'fairness_key' | 'enqueued_at'>
/** What became of an offer: what was taken of it, and the jobs that are left. */
export interface Decided<J, T> {
  readonly taken: readonly T[]
  readonly left: readonly J[]
}
interface Parts<J, T> {
  /** Whether a worker has room for a job. */
  readonly fits: (job: J) => boolean
  /** Take a job; undefined when no worker has room for it. @param again only if it was promised before. */
  readonly take: (job: J, again: boolean) => T | undefined
  /** Unix milliseconds. */
  readonly now: () => number
  readonly later: (ms: number, run: () => void) => () => void
  /** Shards that may have work. */
  readonly shards: number
  /** Since when workers have had room for a job, Unix milliseconds: shards whose work they could not take may not know it yet. */
  readonly since: (job: J) => number
}
interface OpenOffer<J, T> {
  readonly source: string | undefined
  /** What has not been taken, in the shard's order. */
  readonly jobs: J[]
  /** Of these the first of each fairness key. */
  readonly heads: J[]
  readonly taken: T[]
  readonly left: J[]
  answer: ((decided: Decided<J, T>) => void) | undefined
}

/** The jobs of an offer that may come next: the first of each fairness key, which is also the one of its highest priority. */
function headsOf<J extends Ranked>(jobs: readonly J[]): J[] {
  const heads: J[] = []
  for (const job of jobs)
    if (!heads.some(({ fairness_key }) => fairness_key === job.fairness_key)) heads.push(job)
  return heads
}

/** The offers of one queue and one capability. */
export class Order<J extends Ranked, T> {
  readonly #parts: Parts<J, T>
  /** The first job of each fairness key that a shard had left when it spoke last, and the number of that answer. */
  readonly #heads = new Map<
    string,
    { readonly jobs: readonly J[]; readonly left: number; readonly answer: number }
  >()
  #answers = 0
  #open: OpenOffer<J, T>[] = []
  /** By fairness key the turn after its last job, and the turn of the last job of all. */
  readonly #turns = new Map<string, number>()
  #turn = 0
  /** When all shards could have spoken. */
  #heard = Number.NEGATIVE_INFINITY
  /** The wait of the open offers: since which answer, and how to end it. */
  #wait: { readonly since: number; readonly cancel: () => void } | undefined

  constructor(parts: Parts<J, T>) {
    this.#parts = parts
  }
  /** Whether no work is known to be left. */
  get idle(): boolean {
    return this.#heads.size === 0 && this.#open.length === 0
  }

  /**
   * Take jobs of a shard's offer. @param source undefined where the shard is not known: such an offer never waits.
   * @param jobs in the shard's order.
   * @param ahead the answer is needed at once: nothing is taken where the offer would have to wait.
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

  /** Take what comes first until nothing more can be taken; false when that has to wait. */
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
  /** All shards that have work could have spoken: those that did not have none any more. */
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

  /** The job of these offers that comes first. */
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
  /** Whether a job comes before another one. @param tolerance milliseconds of age that do not matter. */
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
