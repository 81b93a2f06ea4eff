/**
 * Random histories of commands to a queue. Invariants: every job ends exactly once. Its failures
 * and losses are bounded. A superseded token has no effect. Every unfinished job is gated by its
 * environment, waiting, leased or resting. An environment is notified of every job that is pinned
 * to it, and of the job's end.
 */
import fc from 'fast-check'
import t from 'tap'
import { evolve } from '../../../actors/actor.ts'
import { dueAt, initialQueue, type QueueState } from '../../../actors/jobs/state.ts'
import type { Event } from '../../../protocol/entry.ts'
import type { GrantedLease } from '../../../protocol/jobs/leases.ts'
import type { JobHeader, LeaseGrant } from '../../../protocol/jobs/rows.ts'
import type { Done } from '../support/stage.ts'
import { QueueStage } from './queue-stage.ts'

const JOBS = 4
const pin = {
  environment_id: 'env_1',
  environment: { holder: { kind: 'run', id: 'run_1' } },
} as const
const fence = fc.nat(3)
const job = fc.integer({ min: 0, max: JOBS - 1 })
const step = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('put' as const),
      job,
      priority: fc.integer({ min: 0, max: 1 }),
      key: fc.constantFrom('x', 'y'),
      action: fc.constantFrom('mail', 'call'),
      pinned: fc.boolean(),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('claim' as const),
      from: fc.nat(4),
      count: fc.nat(3),
      session: fc.constantFrom('s1', 's2'),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('report' as const),
      job,
      age: fc.nat(2),
      status: fc.constantFrom('completed' as const, 'failed' as const, 'cancelled' as const),
      type: fc.constantFrom('Error', 'Cancelled', 'WorkerOverCapacity'),
      pause: fc.constantFrom(0, 0, 5000, 40_000),
      final: fc.nat(5).map((n) => n === 0),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('beat' as const), job, age: fc.nat(1) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('admit' as const), job, fence }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('refuse' as const), job }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('cancel' as const), job }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('release' as const), job, age: fc.nat(1) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('lose' as const),
      job,
      session: fc.constantFrom('s1', 's2'),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('pass' as const),
      seconds: fc.integer({ min: 1, max: 70 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('recover' as const) }) },
)
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never

/** The state of one job, derived only from the queue's events and tells. */
interface Seen {
  status: 'gated' | 'waiting' | 'resting' | 'leased' | 'ended'
  readonly tokens: string[]
  /** Tokens of leases whose reports produced an event. */
  readonly reported: string[]
  failures: number
  losses: number
  settled: number
  stop: boolean
  readonly pinned: boolean
  fence?: number
  used: number
  done: number
}
class Observer {
  readonly queue = new QueueStage()
  readonly jobs = new Map<string, Seen>()
  readonly journal: { event: Event; at: number }[] = []
  readonly limits = { max_attempts: 2, max_losses: 3 }

  token = (id: string, age: number): string =>
    this.jobs.get(id)?.tokens.at(-1 - age) ?? 'lt_none.default'

  play(step: Step): Done<unknown>[] {
    const { queue } = this
    const id = 'job' in step ? `job_${step.job}` : ''
    switch (step.do) {
      case 'put':
        return [
          queue.put(id, {
            priority: step.priority,
            fairness_key: step.key,
            action_name: step.action,
            run_id: `run_${step.job}`,
            ...(step.pinned && pin),
            ...this.limits,
          }),
        ]
      case 'claim': {
        const takes = queue
          .line()
          .slice(step.from, step.from + step.count)
          .map((job_id) => ({ job_id, session: step.session, instance: 'box' }))
        return [queue.run('queue.claim', { gateway: 'g1', takes })]
      }
      case 'report': {
        const seen = this.jobs.get(id)
        const token = this.token(id, step.age)
        const before = JSON.stringify(queue.state)
        const done = queue.report(id, token, step.status, {
          error_type: step.type,
          ...(step.pause > 0 && { retry_in: step.pause }),
          ...(step.final && { final: true }),
        })
        if (seen?.status !== 'ended' && (step.age > 0 || !seen?.tokens.length)) {
          if (done.reply.outcome === 'accepted' || JSON.stringify(queue.state) !== before)
            throw new Error('a superseded token had an effect')
        }
        if (seen?.reported.includes(token) && done.reply.outcome === 'accepted')
          throw new Error('a report was taken twice')
        if (done.events.length > 0) seen?.reported.push(token)
        return [done]
      }
      case 'beat': {
        const live = this.jobs.get(id)?.status === 'leased' && step.age === 0
        const done = queue.beat(id, this.token(id, step.age))
        if (done.reply.alive !== live) throw new Error('a heartbeat was answered wrongly')
        return [done]
      }
      case 'admit':
        return [queue.run('queue.admit', { job_ids: [id, id], fence: step.fence })]
      case 'refuse': {
        const { status, pinned } = this.jobs.get(id) ?? {}
        const done = queue.run('queue.unavailable', {
          job_ids: [id],
          error_type: 'environment_worker_unavailable',
          error_message: 'no worker came',
        })
        const ends = pinned === true && status !== 'leased' && status !== 'ended'
        if (done.events.length !== (ends ? 1 : 0))
          throw new Error('only pinned jobs without a lease are refused')
        return [done]
      }
      case 'cancel':
        return [queue.run('queue.cancel', { job_ids: [id] })]
      case 'release':
        return [queue.run('queue.release', { job_id: id, lease_token: this.token(id, step.age) })]
      case 'lose':
        return [queue.run('queue.lose', { session: step.session, job_ids: [id] })]
      case 'pass':
        return queue.pass(step.seconds)
      case 'recover':
        queue.recover()
        return []
    }
  }
  /**
   * Applies the results of a step to the derived states, and checks both the results and the queue.
   */
  note(all: readonly Done<unknown>[]): void {
    for (const done of all) this.#note(done)
    for (const [id, seen] of this.jobs)
      if ((seen.status === 'ended') !== (seen.settled === 1))
        throw new Error(`${id} ended and the run does not know, or the other way round`)
    for (const [id, { pinned, status, used, done }] of this.jobs)
      if (used !== (pinned ? 1 : 0) || done !== (pinned && status === 'ended' ? 1 : 0))
        throw new Error(`the environment of ${id} was told ${used} and ${done} times`)
    const { jobs, due } = this.queue.state
    const times = due.map((id) => dueAt(jobs[id] as NonNullable<(typeof jobs)[string]>))
    const first = Math.min(Infinity, ...times)
    if (first !== (this.queue.deadline() ?? Infinity))
      throw new Error('the deadline is not that of the first lease to end')
    const line = this.queue.line()
    const leased = [
      ...this.queue.ask<GrantedLease[]>('leases', { session: 's1' }),
      ...this.queue.ask<GrantedLease[]>('leases', { session: 's2' }),
    ].map(({ job_id }) => job_id)
    const by = (status: Seen['status']) =>
      [...this.jobs]
        .filter(([, seen]) => seen.status === status)
        .map(([id]) => id)
        .sort()
        .join()
    if ([...line].sort().join() !== by('waiting') || leased.sort().join() !== by('leased'))
      throw new Error('a job is in no place, or in two')
  }
  #note(done: Done<unknown>): void {
    for (const event of done.events as readonly (Event & {
      id: string
      lease?: LeaseGrant
      counted?: string
      not_before?: number
      fence?: number
      header?: JobHeader
    })[]) {
      this.journal.push({ event, at: this.queue.at })
      const seen = this.jobs.get(event.id) ?? {
        status: event.header?.environment ? 'gated' : 'waiting',
        pinned: event.header?.environment !== undefined,
        used: 0,
        done: 0,
        tokens: [],
        reported: [],
        failures: 0,
        losses: 0,
        settled: 0,
        stop: false,
      }
      this.jobs.set(event.id, seen)
      const must = (holds: boolean, what: string) => {
        if (!holds) throw new Error(`${event.type} of ${event.id}: ${what}`)
      }
      must(seen.status !== 'ended', 'the job had ended')
      if (event.type === 'job.claimed') {
        must(seen.status === 'waiting' && !seen.stop, 'only a waiting job is handed out')
        must(!seen.tokens.includes(event.lease?.token ?? ''), 'tokens are new')
        must(
          event.header?.environment_fence === seen.fence,
          'the claim has the number of the admission',
        )
        must(event.lease?.attempt === seen.failures + seen.losses + 1, 'attempts are counted')
        seen.status = 'leased'
        seen.tokens.push(event.lease?.token ?? '')
      } else if (event.type === 'job.requeued') {
        must(seen.status === 'leased' && !seen.stop, 'only a leased job goes back')
        seen.status = event.not_before === undefined ? 'waiting' : 'resting'
        must(
          event.not_before === undefined ||
            (event.not_before > this.queue.at && event.counted === 'failure'),
          'only a failed attempt is followed by a pause',
        )
        if (event.counted === 'failure') seen.failures++
        if (event.counted === 'loss') seen.losses++
        const { max_attempts, max_losses } = this.limits
        must(seen.failures < max_attempts && seen.losses < max_losses, 'attempts are bounded')
      } else if (event.type === 'job.admitted') {
        must(seen.status === 'gated', 'only a gated job is admitted')
        seen.status = 'waiting'
        seen.fence = event.fence ?? -1
      } else if (event.type === 'job.rested') {
        must(seen.status === 'resting', 'only a pause ends')
        seen.status = 'waiting'
      } else if (event.type === 'job.cancel_requested') {
        must(seen.status === 'leased' && !seen.stop, 'a stop is asked for once')
        seen.stop = true
      } else if (event.type !== 'job.queued') seen.status = 'ended'
    }
    for (const effect of done.effects) {
      if (!('tell' in effect)) continue
      const { to, name, input } = effect.tell
      const seen = this.jobs.get((input as { job_id: string }).job_id)
      if (to.kind !== 'environment' || to.id !== pin.environment_id || !seen?.pinned)
        throw new Error('the wrong environment was told')
      if (name === 'environment.use') seen.used++
      else if (seen.used > 0 && name === 'environment.done') seen.done++
      else throw new Error(`${name} was sent before the job was announced`)
    }
    for (const { name, input, to } of done.tells) {
      const id = (input as { job_id: string }).job_id
      const seen = this.jobs.get(id)
      if (to.id !== id.replace('job', 'run')) throw new Error('the wrong run was told')
      if (name === 'job.settled' && seen && ++seen.settled > 1)
        throw new Error(`${id} was settled twice`)
    }
  }
}

t.test('the invariants hold in every history, and every job ends', async (t) => {
  void fc.assert(
    fc.property(fc.array(step, { maxLength: 60, size: 'max' }), (steps) => {
      const observer = new Observer()
      for (const step of steps) observer.note(observer.play(step))
      for (
        let round = 0;
        [...observer.jobs.values()].some(({ status }) => status === 'gated') ||
        observer.queue.line().length > 0 ||
        observer.queue.deadline() !== undefined;
        round++
      ) {
        if (round > 20) throw new Error('a job is never handed out')
        for (let job = 0; job < JOBS; job++)
          observer.note(observer.play({ do: 'admit', job, fence: 9 }))
        observer.note(observer.play({ do: 'claim', from: 0, count: 1000, session: 's1' }))
        for (const [id, seen] of observer.jobs)
          if (seen.status === 'leased')
            observer.note([observer.queue.report(id, observer.token(id, 0))])
        observer.note(observer.play({ do: 'pass', seconds: 45 }))
      }
      for (const [, seen] of observer.jobs)
        if (seen.settled !== 1) throw new Error('a job did not end')
    }),
    { numRuns: 600 },
  )
  t.pass()
})

t.test('a state that was stored and loaded again behaves the same', async (t) => {
  void fc.assert(
    fc.property(fc.array(step, { maxLength: 40, size: 'max' }), (steps) => {
      const [one, two] = [new Observer(), new Observer()]
      for (const step of steps) {
        const [a, b] = [one.play(step), two.play(step)]
        if (JSON.stringify(a) !== JSON.stringify(b))
          throw new Error(`${JSON.stringify(a)} is not ${JSON.stringify(b)}`)
        one.note(a)
        two.note(b)
        two.queue.reload()
        if (
          one.queue.line().join() !== two.queue.line().join() ||
          one.queue.deadline() !== two.queue.deadline()
        )
          throw new Error('the line differs')
      }
    }),
    { numRuns: 300 },
  )
  t.pass()
})

t.test(
  'replaying the journal restores the same job order and leases, except for renewals',
  async (t) => {
    void fc.assert(
      fc.property(fc.array(step, { maxLength: 60, size: 'max' }), (steps) => {
        const observer = new Observer()
        for (const step of steps) observer.note(observer.play(step))
        const replayed = new QueueStage()
        replayed.at = observer.queue.at
        replayed.state = observer.journal.reduce<QueueState>(
          (state, { event, at }) => evolve(replayed.actor, state, event, at) as QueueState,
          initialQueue(),
        )
        for (const queue of [observer.queue, replayed]) queue.recover()
        if (observer.queue.line().join() !== replayed.line().join())
          throw new Error('the line differs')
        if (observer.queue.deadline() !== replayed.deadline())
          throw new Error('the deadline differs')
        if ([...observer.queue.state.due].sort().join() !== [...replayed.state.due].sort().join())
          throw new Error('the leases differ')
      }),
      { numRuns: 300 },
    )
    t.pass()
  },
)

t.test('decide and query functions do not change the state', async (t) => {
  const queue = new QueueStage()
  queue.put('job_1')
  queue.put('job_2')
  queue.put('job_3', pin)
  const token = queue.claim('job_1')
  const before = JSON.stringify(queue.state)
  const decide = queue.actor.decide as unknown as Record<
    string,
    (state: QueueState, input: unknown, cause: unknown) => unknown
  >
  const cause = { at: queue.at + 100_000, self: queue.self, secret: () => 'x' }
  for (const [name, input] of Object.entries({
    'queue.enqueue': { job: { id: 'job_4' }, record: {} },
    'queue.claim': { gateway: 'g', takes: [{ job_id: 'job_2', session: 's', instance: 'i' }] },
    'queue.report': { job_id: 'job_1', lease_token: token, status: 'failed' },
    'queue.heartbeat': { job_id: 'job_1', lease_token: token, gateway: 'g' },
    'queue.cancel': { job_ids: ['job_1', 'job_2'] },
    'queue.admit': { job_ids: ['job_3'], fence: 1 },
    'queue.unavailable': { job_ids: ['job_3'], error_type: 'x', error_message: 'y' },
    'queue.release': { job_id: 'job_1', lease_token: token },
    'queue.lose': { session: 'wst_1', job_ids: ['job_1'] },
    wake: {},
  }))
    t.ok(decide[name]?.(queue.state, input, cause), name)
  queue.line()
  t.equal(JSON.stringify(queue.state), before)
})
