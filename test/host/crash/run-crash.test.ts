/**
 * A run with every kind of step except `agent`, on a node that dies at any of its steps. Another
 * node continues from the last commit. Invariants: each job is executed as often as without a
 * crash; no step completes twice. The timelines of the run and of its child runs are the same.
 */
import t from 'tap'
import { actorKinds } from '../../../actors/kinds.ts'
import { makeId } from '../../../protocol/ids.ts'
import { timelineTypes } from '../../../protocol/runs/events.ts'
import { defaultTiming } from '../../../protocol/workers/timing.ts'
import { MemoryBus } from '../../support/memory.ts'
import { ToyWorld } from '../support/toy.ts'
import { dieAtEach, dying, handedTo, type Open, Told } from './dying.ts'

const id = (prefix: 'loop' | 'run' | 'project', n: number, slot = 0) =>
  makeId(prefix, 0, new Uint8Array(10).fill(n), slot)
/** The project and its source events are in a shard whose owner does not die. */
const [PROJECT, LOOP, SIDE, RUN] = [id('project', 8, 1), id('loop', 1), id('loop', 2), id('run', 3)]
const kinds = actorKinds({ brand: 'Service', timing: { ...defaultTiming, lease: 3600 } })
const action = (key: string, more: Open = {}) => ({
  id: key,
  kind: 'action',
  config: { action_name: 'act' },
  ...more,
})
const child = { id: 'wfd_child', version: 1, spec: { steps: [action('inner')] } }
const steps = [
  action('work', { retry: { max_attempts: 2 } }),
  { id: 'hook', kind: 'action', config: { action_name: 'hook' }, retry: { max_attempts: 2 } },
  { id: 'nap', kind: 'sleep', config: { duration: '5s' } },
  {
    id: 'paid',
    kind: 'wait_for_event',
    config: { event_type: 'order.paid', match: { order: '${{ event.order }}' } },
  },
  {
    id: 'ask',
    kind: 'interaction',
    config: { protocol: 'request_approval', targets: ['ann'], spec: { mode: 'confirm' } },
  },
  { id: 'flow', kind: 'loop', config: { workflow_id: 'child', wait: true } },
  { id: 'side', kind: 'loop', config: { loop_id: SIDE } },
  {
    id: 'gate',
    kind: 'check',
    config: {
      checks: [{ name: 'never', kind: 'expr', expr: 'false' }],
      on_fail: 'gate',
      gate: { targets: ['ann'] },
    },
  },
  {
    id: 'both',
    kind: 'parallel',
    config: {
      branches: [
        { id: 'a', steps: [action('do')] },
        { id: 'b', steps: [{ id: 'rest', kind: 'sleep', config: { duration: '5s' } }] },
      ],
    },
  },
  {
    id: 'each',
    kind: 'for_each',
    config: { items: [1, 2, 3], max_concurrency: 2, steps: [action('one')] },
  },
  action('last'),
]
/**
 * Returns the outcome to report for a job. It depends on the key of the step and on the number of
 * earlier reports.
 */
function outcomeOf(step: string, before: number): Open {
  const fails = before === 0 && ['work', 'hook', 'last'].includes(step)
  return fails
    ? {
        status: 'failed',
        error_type: 'no',
        ...(step === 'hook' && { retry_in: 100 }),
        ...(step === 'last' && { final: true }),
      }
    : { status: 'completed', result: { before } }
}

interface Played {
  steps: number
  timelines: string[][]
  done: Record<string, number>
}

async function play(crashAt: number): Promise<Played> {
  const world = new ToyWorld(undefined, kinds)
  const bus = new MemoryBus()
  const other = await world.owner(1, world.deps(bus))
  const { revive, send, steps: taken } = await dying(world, bus, crashAt, { project: PROJECT })
  const told = new Told(world)
  const handed = handedTo(bus)
  const done: Record<string, number> = {}
  const reported = new Set<string>()
  const answered = new Set<string>()
  const seen = (type: string, step?: string) =>
    told
      .of('run')
      .some(
        (event) =>
          event.of === RUN && event.type === type && (step === undefined || event['step'] === step),
      )

  /**
   * Claims the waiting jobs. If no job waits, reports the next claimed job. Returns whether any job
   * is unfinished.
   */
  const work = async (): Promise<boolean> => {
    const jobs = new Map<string, { state: 'waiting' | 'resting' | string; name: string }>()
    for (const { type, id: job, header, lease, not_before } of told.of('queue') as unknown as {
      type: string
      id: string
      header?: { action_name: string }
      lease?: { token: string }
      not_before?: number
    }[]) {
      const name = header?.action_name ?? jobs.get(job)?.name ?? ''
      if (type === 'job.claimed') jobs.set(job, { state: lease?.token ?? '', name })
      else if (type === 'job.queued' || type === 'job.rested')
        jobs.set(job, { state: 'waiting', name })
      else if (type === 'job.requeued')
        jobs.set(job, { state: not_before === undefined ? 'waiting' : 'resting', name })
      else if (type !== 'job.cancel_requested') jobs.delete(job)
    }
    const waiting = [...jobs].filter(([, { state }]) => state === 'waiting')
    if (waiting.length > 0) {
      const takes = waiting.map(([job_id, { name }]) => ({
        job_id,
        session: 'w',
        instance: 'w',
        ...(name === 'hook' && { served: true, losses: 2 }),
      }))
      await send('queue', '0.default', 'queue.claim', { gateway: 'g', takes })
      return true
    }
    const held = [...jobs].filter(([, { state }]) => state !== 'resting')
    // All claimed jobs must be assigned before the first report, so that the order of reports is
    // fixed.
    if (held.some(([, { state }]) => !handed.has(state))) return jobs.size > 0
    const next = held
      .flatMap(([, { state }]) => handed.get(state) ?? [])
      .filter(({ lease_token }) => !reported.has(lease_token))
      .sort((a, b) => (String(a.step_id) < String(b.step_id) ? -1 : 1))[0]
    if (next) {
      const step = String(next.step_id).split(':')[1] ?? ''
      const outcome = outcomeOf(step, done[step] ?? 0)
      done[step] = (done[step] ?? 0) + 1
      reported.add(next.lease_token)
      for (let n = 0; n < 2; n++)
        await send('queue', '0.default', 'queue.report', {
          job_id: next.id,
          lease_token: next.lease_token,
          ...outcome,
        })
    }
    return jobs.size > 0
  }
  const answer = async (): Promise<boolean> => {
    const asked = told
      .of('run')
      .filter(({ type }) => type === 'interaction.requested')
      .map(({ payload }) => String((payload as Open)['interaction_id']))
      .find((one) => !answered.has(one))
    if (asked === undefined) return false
    answered.add(asked)
    await send('interaction', asked, 'interaction.respond', { value: true, roles: [] })
    return true
  }
  let published = false
  const publish = async (): Promise<boolean> => {
    if (published || !seen('wait.opened', 'paid')) return false
    published = true
    const input = { event_type: 'order.paid', event: { order: 7 }, ids: ['sevt_1'] }
    await other.submit({
      project: PROJECT,
      kind: 'events',
      id: PROJECT,
      name: 'event.publish',
      input,
      command_id: 'published',
      origin: { at: 0, principal: { type: 'user', id: 'ann' } },
    })
    return true
  }
  /**
   * Performs all possible work until the condition holds.
   * @throws {Error} when no progress is made.
   */
  const until = async (happened: () => boolean): Promise<void> => {
    for (let round = 0; !happened(); round++) {
      if (round > 400)
        throw new Error(
          `dying at step ${crashAt}: nothing happens any more after ${told
            .of('run')
            .map(({ type }) => type)
            .slice(-5)
            .join(' ')}`,
        )
      await revive()
      const busy = (await work()) || (await answer()) || (await publish())
      await world.clock.advance(busy ? 20 : 5000)
    }
  }
  await send('loop', SIDE, 'loop.create', {
    name: 'Side',
    steps: [action('aside')],
    organization: 'org_1',
  })
  await send('loop', LOOP, 'loop.create', {
    name: 'Main',
    steps,
    cleanup: [action('tidy')],
    definitions: { child },
    organization: 'org_1',
  })
  await send('loop', LOOP, 'loop.start', {
    project: PROJECT,
    id: LOOP,
    run_id: RUN,
    event: { order: 7 },
  })
  await until(() => seen('run.failed'))
  await send('run', RUN, 'run.retry', { project: PROJECT, id: RUN, from_step: 'both' })
  const ends = ['run.completed', 'run.failed', 'run.cancelled']
  await until(
    () =>
      seen('run.completed') &&
      told.of('run').filter(({ type }) => ends.includes(type)).length === 4,
  )
  const runs = [...new Set(told.of('run').map(({ of }) => of))]
  const timelines = runs.map((run) =>
    told
      .of('run')
      .filter(({ of, type }) => of === run && timelineTypes.has(type as never))
      .map(({ type, step }) => (step === undefined ? type : `${type} ${String(step)}`)),
  )
  return {
    steps: taken(),
    timelines,
    done: Object.fromEntries(Object.entries(done).sort(([a], [b]) => (a < b ? -1 : 1))),
  }
}

const chosen = process.env['CRASH']
const STRIDE = 4
/**
 * Yields the steps at which the node dies: every fourth step, with a different offset each day.
 * `CRASH=all` selects all steps, and `CRASH=n` only step n.
 */
function* positions(steps: number): Generator<number> {
  if (chosen !== undefined && chosen !== 'all') yield Number(chosen)
  else
    for (
      let at = chosen === 'all' ? 1 : 1 + (Math.floor(Date.now() / 86_400_000) % STRIDE);
      at <= steps;
      at += chosen === 'all' ? 1 : STRIDE
    )
      yield at
}

t.test(
  'a node may die at any step of a run with every kind of step',
  { timeout: 280_000 },
  async (t) => {
    const clean = await play(0)
    t.same(clean.done, {
      work: 2,
      hook: 2,
      inner: 1,
      aside: 1,
      'both.a.do': 2,
      'each.0.one': 2,
      'each.1.one': 2,
      'each.2.one': 2,
      last: 2,
      'cleanup.tidy': 2,
    })
    const [main = []] = clean.timelines
    for (const { id: step } of steps)
      t.equal(
        main.filter((line) => line === `step.completed ${step}`).length,
        ['both', 'each'].includes(step) ? 2 : 1,
        `${step} completes`,
      )
    t.ok(clean.steps > 150, `${clean.steps} steps to die at`)
    await dieAtEach(t, clean, play, positions(clean.steps))
  },
)
