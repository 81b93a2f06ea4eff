/**
 * The clients of a chaos run. Runs are started at a fixed rate, even if earlier requests are open.
 * Each start has its own key. Its client may later send another request about the run. This file
 * only records what happens; `check.ts` evaluates it.
 */
import { type Dice, fork } from '../simulation/faults/dice.ts'
import type { Asker, Json, Reply } from './ask.ts'
import type { Repeat, Start } from './history.ts'
import { draw, type Plan } from './plans.ts'

const RUNS = '/projects/default/runs'
/**
 * The maximum number of open requests. Starts beyond it are skipped, and their number is reported.
 */
const MAX_OPEN = 4000
/**
 * Maximum delays in milliseconds: before the next request of a client, and before the repetition of
 * a start.
 */
const LATER = { next: 8000, repeat: 20_000 }
const REPEATED = 0.1

interface Begun {
  readonly start: Start
  readonly plan: Plan
  readonly body: Json
}

export class Load {
  readonly asker: Asker
  readonly starts: Start[] = []
  readonly repeats: Repeat[] = []
  readonly oddities: string[] = []
  readonly retried = new Set<string>()
  /** Called for every run whose start was acknowledged. */
  onRun: (run: string, plan: Plan) => void = () => {}
  acknowledged = 0
  heldBack = 0
  readonly #plans = new Map<string, Plan>()
  readonly #now: () => number
  readonly #dice: Dice
  readonly #status = new Map<string, { readonly status: string; readonly cursor: number }>()
  readonly #open = new Set<Promise<unknown>>()
  readonly #retries = new Map<string, number>()
  #ending = false

  constructor(asker: Asker, seed: number, now: () => number) {
    this.asker = asker
    this.#dice = fork(seed, 'load')
    this.#now = now
  }

  /** Starts `rate` runs per second until the time `until`, in milliseconds since the load began. */
  async run(rate: number, until: number): Promise<void> {
    for (
      const began = this.#now();
      this.#now() < until;
      await new Promise((next) => setTimeout(next, 5))
    ) {
      const due =
        Math.floor(((this.#now() - began) * rate) / 1000) - this.starts.length - this.heldBack
      for (let i = 0; i < due; i++) {
        if (this.asker.open >= MAX_OPEN) this.heldBack++
        else this.#track(this.#begin(draw(this.#dice)))
      }
    }
    this.#ending = true
  }
  /** Starts a last run, which ends without further requests. Returns its id. */
  async last(): Promise<string> {
    const plan: Plan = {
      name: 'last',
      weight: 0,
      spec: { steps: [{ id: 'nap', kind: 'sleep', config: { duration: '0' } }] },
      ends: ['completed'],
    }
    await this.#begin(plan)
    return this.starts.at(-1)?.acknowledged?.run ?? ''
  }
  get quiet(): boolean {
    return this.#open.size === 0
  }
  /**
   * The number of runs that have ended, according to the feed. A failed run that is to be retried
   * has not ended.
   */
  get finished(): number {
    let count = 0
    for (const [run, { status }] of this.#status)
      if (
        status === 'completed' ||
        status === 'cancelled' ||
        (status === 'failed' && !this.#plans.get(run)?.retried)
      )
        count++
    return count
  }
  /** Handles a new status of a run. A failed run is retried if its plan requires a retry. */
  heard(run: string, status: string, cursor: number): void {
    if (cursor <= (this.#status.get(run)?.cursor ?? 0)) return
    this.#status.set(run, { status, cursor })
    this.#react(run, status)
  }
  #react(run: string, status: string): void {
    if (status === 'failed' && this.#plans.get(run)?.retried) this.#track(this.#retry(run))
  }

  #track(work: Promise<unknown>): void {
    this.#open.add(work)
    void work
      .catch((error: unknown) => this.oddities.push(String(error)))
      .finally(() => this.#open.delete(work))
  }
  /** Waits for a random time of at most `most` milliseconds, or until the load ends. */
  async #later(most: number): Promise<void> {
    for (
      const until = this.#now() + this.#dice.between(0, most);
      !this.#ending && this.#now() < until;
    )
      await new Promise((next) => setTimeout(next, 100))
  }

  async #begin(plan: Plan): Promise<void> {
    const key = `start-${this.starts.length}`
    const start: Start = { key, at: this.#now(), ends: plan.ends }
    this.starts.push(start)
    const begun = {
      start,
      plan,
      body: { spec: plan.spec, input: { n: key }, idempotency_key: key },
    }
    const reply = await this.#post(begun)
    if (!reply) return
    const run = runOf(reply)
    if (run === undefined) {
      this.oddities.push(`${key} was answered ${reply.status} ${JSON.stringify(reply.body)}`)
      return
    }
    start.acknowledged = { at: this.#now(), run }
    this.acknowledged++
    this.#plans.set(run, plan)
    // The feed may have reported the status before the start was answered.
    const known = this.#status.get(run)
    if (known) this.#react(run, known.status)
    this.onRun(run, plan)
    if (this.#dice.chance(REPEATED)) this.#track(this.#repeat(begun))
    if (plan.then) await this.#next(begun, run)
  }
  #post({ body }: Begun): Promise<Reply | undefined> {
    return this.asker.ask({ method: 'POST', path: RUNS, body })
  }
  async #repeat(begun: Begun): Promise<void> {
    await this.#later(LATER.repeat)
    const reply = await this.#post(begun)
    if (!reply) return
    const run = runOf(reply)
    this.repeats.push({
      key: begun.start.key,
      at: this.#now(),
      ...(run === undefined
        ? { answer: `${reply.status} ${JSON.stringify(reply.body)}` }
        : { run }),
    })
  }
  async #next({ start, plan }: Begun, run: string): Promise<void> {
    if (plan.then !== 'cancel at once') await this.#later(LATER.next)
    const signal = plan.then === 'signal'
    const path = `${RUNS}/${run}/${signal ? 'signals' : 'cancellations'}`
    const reply = await this.asker.ask({
      method: 'POST',
      path,
      ...(signal
        ? { body: { name: 'go', payload: { n: start.key }, idempotency_key: start.key } }
        : { key: `${start.key}-next` }),
    })
    if (!reply) return
    if (reply.status >= 300)
      this.oddities.push(
        `${plan.name} ${run} was answered ${reply.status} ${JSON.stringify(reply.body)}`,
      )
    else if (plan.then === 'cancel') start.cancelled = true
  }
  async #retry(run: string): Promise<void> {
    const count = (this.#retries.get(run) ?? 0) + 1
    this.#retries.set(run, count)
    this.retried.add(run)
    const reply = await this.asker.ask({
      method: 'POST',
      path: `${RUNS}/${run}/retry`,
      key: `${run}-retry-${count}`,
      body: {},
    })
    // 409 is not a violation: it means that the run was no longer `failed` when the request was
    // decided.
    if (reply && reply.status !== 202 && reply.status !== 409)
      this.oddities.push(
        `the retry of ${run} was answered ${reply.status} ${JSON.stringify(reply.body)}`,
      )
  }
}

/**
 * Returns the id of the run in the response to a start. If the run of a repeated start has ended,
 * the response is 409 with the id in its details. Returns undefined for any other response.
 */
function runOf({ status, body }: Reply): string | undefined {
  if (status === 202 || status === 200) return String(body['id'])
  const { code, details } = (body['error'] ?? body) as {
    code?: string
    details?: { run_id?: string }
  }
  return status === 409 && code === 'idempotency_key_conflict' ? details?.run_id : undefined
}
