/**
 * Actors and the view apply the same events. Invariant: after any history of a run and its queue,
 * the records in the view equal those in the actors.
 */
import fc from 'fast-check'
import t from 'tap'
import { queueActor } from '../../actors/jobs/queue.ts'
import { find, type QueueState } from '../../actors/jobs/state.ts'
import { run as runActor } from '../../actors/runs/run.ts'
import type { RunState } from '../../actors/runs/state.ts'
import type { Queue } from '../../protocol/jobs/queue-rows.ts'
import type { Job, QueueEvent } from '../../protocol/jobs/rows.ts'
import { shownRun } from '../../protocol/loops/record.ts'
import type { Overview } from '../../protocol/overview/rows.ts'
import { type RunEvent, timelineTypes } from '../../protocol/runs/events.ts'
import { type RunStep, terminal, type WorkflowRunDetail } from '../../protocol/runs/schema.ts'
import { defaultTiming } from '../../protocol/workers/timing.ts'
import type { Spec, Step } from '../../protocol/workflows/spec.ts'
import { View } from '../../views/view.ts'
import { given, type Outcome, type Scene, START } from '../support/given.ts'
import { ask, type Draft, Journal, T0 } from './support/journal.ts'

const wire = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T

/** A run, its queue, and a view of both. A command and all its tells are committed together. */
class World {
  readonly view = View.open(':memory:', { now: () => this.at })
  readonly journal = new Journal()
  at = START
  run: Scene<RunState> = given<RunState>(runActor)
  queue: Scene<QueueState> = given<QueueState>(queueActor(defaultTiming))
  /** Decides a command and all its tells, and commits the result as one message. */
  send(kind: 'run' | 'queue', name: string, input: unknown): Outcome<unknown> {
    const drafts: Draft[] = []
    const decide = (to: 'run' | 'queue', what: string, about: unknown): Outcome<unknown> => {
      const id = to === 'run' ? 'run_1' : '0.default'
      const outcome: Outcome<never> = (this[to] as Scene<never>).when(what, wire(about), {
        at: this.at,
        self: { project: 'prj_1', kind: to, id },
      })
      this[to] = outcome
      if (outcome.events.length > 0)
        drafts.push({
          kind: to,
          project: 'prj_1',
          id,
          events: wire(outcome.events),
          at: (this.at - T0) / 1000,
        })
      for (const tell of outcome.tells)
        decide(tell.to.kind as 'run' | 'queue', tell.name, tell.input)
      return outcome
    }
    const first = decide(kind, name, input)
    if (drafts.length > 0) this.view.apply([this.journal.commit(0, ...drafts)])
    return first
  }
  jobs = () => Object.values(this.queue.state.jobs)
}

const steps: fc.Arbitrary<Step[]> = fc
  .array(
    fc.constantFrom<Step>(
      {
        kind: 'action',
        config: { action_name: 'a', parameters: { n: 1 } },
        retry: { max_attempts: 2 },
      },
      { kind: 'action', config: { action_name: 'b' } },
      { kind: 'sleep', config: { duration: '10s' }, name: 'Nap' },
      { kind: 'wait_for_event', config: { event_type: 'signal.go' }, timeout: { duration: '30s' } },
      { kind: 'action', config: { action_name: 'c' }, if: '1 == 2' },
    ),
    { minLength: 1, maxLength: 5 },
  )
  .map((list) => list.map((step, i) => (i % 2 ? step : { ...step, id: `s${i}` })))
const moves = [
  'claim',
  'complete',
  'fail',
  'cancel_report',
  'expire',
  'signal',
  'wake',
  'later',
  'cancel',
  'retry',
  'resume',
] as const
const story = fc.tuple(
  steps,
  fc.array(fc.constantFrom('claim', 'complete', 'wake', ...moves), { maxLength: 25 }),
)

function play(list: readonly Step[], what: readonly (typeof moves)[number][]): World {
  const world = new World()
  const spec: Spec = { steps: [...list], limits: { wall_clock_timeout: '10m' } }
  world.send('run', 'run.start', { spec, input: { n: 1 }, external_id: 'order-1' })
  for (const move of what) {
    world.at += 1000
    const job = world.jobs()[0]
    const report = (status: string) =>
      job?.lease &&
      world.send('queue', 'queue.report', {
        job_id: job.header.id,
        lease_token: job.lease.token,
        status,
        result: { done: true },
        ...(status === 'failed' && { error_type: 'Boom', error_message: 'no' }),
      })
    if (move === 'claim' && job)
      world.send('queue', 'queue.claim', {
        gateway: 'g1',
        takes: [{ job_id: job.header.id, session: 'wst_1', instance: 'w1' }],
      })
    else if (move === 'complete') report('completed')
    else if (move === 'fail') report('failed')
    else if (move === 'cancel_report') report('cancelled')
    else if (move === 'expire' || move === 'later') world.at += move === 'expire' ? 61_000 : 15_000
    else if (move === 'signal') world.send('run', 'run.signal', { name: 'go', payload: { x: 1 } })
    else if (move === 'cancel') world.send('run', 'run.cancel', { reason: 'enough' })
    else if (move === 'retry') world.send('run', 'run.retry', {})
    else if (move === 'resume') world.send('run', 'run.resume', {})
    for (const kind of ['run', 'queue'] as const)
      if ((world[kind].deadline() ?? Infinity) <= world.at) world.send(kind, 'wake', {})
  }
  return world
}

t.test('the records of the view equal those of the run and the queue', (t) => {
  const seen = new Set<string>()
  void fc.assert(
    fc.property(story, ([list, what]) => {
      const { view, run, queue, journal } = play(list, what)
      const { record, spec, steps } = run.state
      const {
        spec: shown,
        step_counts: _c,
        path_counts: _p,
        paths,
        ...detail
      } = ask<WorkflowRunDetail>(view, 'run.get', { id: 'run_1' }, 'prj_1')
      const sorted = Object.values(steps).sort((a, b) => a.seq - b.seq)
      const counted = ({ waiting_on, ...step }: RunStep) =>
        step.status === 'suspended' && step.job_id !== undefined
          ? step
          : { ...step, ...(waiting_on && { waiting_on }) }
      const jobs = ask<{ items: Job[] }>(
        view,
        'run.jobs',
        { id: 'run_1', limit: 200, include: ['waiting_on'] },
        'prj_1',
      ).items
      const events = journal.messages.flatMap(({ data }) =>
        data.entries
          .filter(({ kind }) => kind === 'run')
          .flatMap((entry) => entry.events as RunEvent[]),
      )
      const told = ask<{
        items: { event_type: string; payload?: { status?: string } }[]
        ended: boolean
      }>(view, 'timeline', { run_id: 'run_1', after: 0, limit: 10_000 }, 'prj_1')
      const overview = ask<Overview>(
        view,
        'overview.get',
        { viewer: { id: 'ada', admin: true, names: ['ada'] }, minutes: 180 },
        'prj_1',
      )
      const ends = (type: string) => events.filter((one) => one.type === type).length
      const queues = ask<{ items: Queue[] }>(view, 'queue.list', {}, 'prj_1').items
      const held = Object.values(queue.state.jobs)
      const problems = [
        [Object.entries(overview.runs).filter(([, n]) => n !== 0), [[record.status, 1]]],
        [
          overview.period,
          {
            ...overview.period,
            started: 1,
            completed: ends('run.completed'),
            failed: ends('run.failed'),
            cancelled: ends('run.cancelled'),
          },
        ],
        [
          queues.map(({ waiting, in_work }) => [waiting, in_work]),
          [[held.filter(({ lease }) => !lease).length, held.filter(({ lease }) => lease).length]],
        ],
        [detail, shownRun(record)],
        [shown, spec],
        [
          ask<{ items: RunStep[] }>(
            view,
            'run.steps',
            { id: 'run_1', include: ['waiting_on'] },
            'prj_1',
          ).items.map(counted),
          sorted.map(counted),
        ],
        [
          told.items.map(({ event_type }) => event_type),
          events.map(({ type }) => type).filter((type) => timelineTypes.has(type)),
        ],
        [told.ended, terminal.has(record.status)],
        [
          jobs
            .filter(({ status }) => !terminal.has(status))
            .map(({ id, status }) => [id, status])
            .sort(),
          Object.values(queue.state.jobs)
            .map(({ header, lease }) => [header.id, lease ? 'claimed' : 'queued'])
            .sort(),
        ],
        [
          jobs.every(
            ({ id, result }) =>
              (result !== undefined) ===
              events.some(
                ({ type, payload }) => type === 'action.completed' && payload?.['job_id'] === id,
              ),
          ),
          true,
        ],
        [
          jobs
            .filter(({ status }) => !terminal.has(status))
            .every(
              ({ id, waiting_on }) =>
                waiting_on?.kind ===
                (find(queue.state, id)?.cancel
                  ? 'cancel'
                  : find(queue.state, id)?.lease
                    ? 'lease'
                    : 'worker'),
            ),
          true,
        ],
        // A suspended run states what it waits for, unless it only pauses between two commits.
        [
          record.status !== 'suspended' ||
            paths?.[0]?.waiting_on !== undefined ||
            run.state.engine.wait?.kind === 'pause',
          true,
        ],
      ].filter(([found, wanted]) => !isSame(found, wanted))
      for (const { kind } of [paths?.[0]?.waiting_on ?? { kind: record.status }]) seen.add(kind)
      const queueEvents = journal.messages.flatMap(({ data }) =>
        data.entries
          .filter(({ kind }) => kind === 'queue')
          .flatMap((entry) => entry.events as QueueEvent[]),
      )
      for (const { type } of [...events, ...queueEvents]) seen.add(type)
      view.close()
      if (problems.length > 0) throw new Error(JSON.stringify(problems))
    }),
    { numRuns: 300, seed: 7 },
  )
  for (const what of [
    'worker',
    'lease',
    'timer',
    'signal',
    'completed',
    'failed',
    'cancelled',
    'job.requeued',
    'job.cancel_requested',
    'action.retried',
    'wait.timed_out',
  ])
    t.ok(seen.has(what), `the stories come across ${what}`)
  t.end()
})

function isSame(a: unknown, b: unknown): boolean {
  const ordered = (value: unknown): unknown =>
    Array.isArray(value)
      ? value.map(ordered)
      : typeof value === 'object' && value !== null
        ? Object.fromEntries(
            Object.entries(value)
              .sort(([x], [y]) => (x < y ? -1 : 1))
              .map(([k, v]) => [k, ordered(v)]),
          )
        : value
  return JSON.stringify(ordered(a)) === JSON.stringify(ordered(b))
}
