/**
 * The largest commands: each stays below the number of events that one command may cause. A command
 * that exceeds it makes the owner drop the shard, and a wake that exceeds it does so again and again.
 */
import t from 'tap'
import { actorKinds } from '../../../actors/kinds.ts'
import type { ShardAnswer } from '../../../nodes/host/deps.ts'
import type { Kind } from '../../../protocol/entry.ts'
import { makeId } from '../../../protocol/ids.ts'
import { defaultTiming } from '../../../protocol/workers/timing.ts'
import { MemoryBus, settleAll } from '../../support/memory.ts'
import { handedTo, Told } from '../crash/dying.ts'
import { command, reply, runId, ToyWorld } from '../support/toy.ts'

const kinds = actorKinds({ brand: 'Service', timing: { ...defaultTiming, lease: 30 } })
const PROJECT = makeId('project', 0, new Uint8Array(10).fill(8), 0)
const id = (n: number) => makeId('run', 0, new Uint8Array(10).fill(n), 0)
const QUEUE = '0.default'
const action = { id: 'a', kind: 'action', config: { action_name: 'act' } }
/** A step with as many concurrent branches as a step may have. */
const each = (steps: readonly object[], config: object = {}) => ({
  id: 'each',
  kind: 'for_each',
  config: { items: 'input.list', max_concurrency: 100, steps, ...config },
})
const items = (count: number) => ({ list: Array.from({ length: count }, (_, i) => i) })
type Open = Record<string, unknown>

/** A shard with real actors. Records the faults of the shard. */
class World {
  readonly toy = new ToyWorld(undefined, kinds)
  readonly faults: string[] = []
  readonly #shard
  readonly #told = new Told(this.toy)
  #commands = 0
  constructor() {
    const bus = new MemoryBus()
    handedTo(bus)
    const error = (fields: object) => {
      const { event, command, err } = fields as { event: string; command?: string; err?: Error }
      this.faults.push(`${event} ${command}: ${err?.message}`)
    }
    const log = { debug() {}, info() {}, warn() {}, error }
    // Format 3 is compressed in another thread, which takes real time.
    const deps = { ...this.toy.deps(bus), log, format: () => 2 as const }
    this.#shard = this.toy.owner(0, deps, this.faults)
  }
  async send(kind: Kind, to: string, name: string, input: object): Promise<ShardAnswer> {
    const shard = await this.#shard
    const answer = await shard.submit({
      project: PROJECT,
      kind,
      id: to,
      name,
      input,
      command_id: `c${++this.#commands}`,
      origin: { at: 0, principal: { type: 'system', id: 'test' } },
    })
    await settleAll()
    return answer
  }
  /**
   * Advances the time in steps until a condition holds. Returns whether it holds. Snapshots are
   * compressed in another thread, which takes real time, so many steps may pass until then.
   */
  async until(holds: () => boolean | Promise<boolean>, ms = 1): Promise<boolean> {
    for (let i = 0; i < 20_000 && this.faults.length === 0; i++) {
      if (await holds()) return true
      await this.toy.clock.advance(ms)
      await settleAll()
    }
    return holds()
  }
  async state<S>(kind: Kind, to: string): Promise<S> {
    const shard = await this.#shard
    return shard.instances.loaded({ project: PROJECT, kind, id: to })?.state as S
  }
  jobs = async (): Promise<string[]> =>
    Object.keys((await this.state<{ jobs: Open } | undefined>('queue', QUEUE))?.jobs ?? {})
  leases = async (): Promise<number> =>
    (await this.state<{ due: readonly string[] } | undefined>('queue', QUEUE))?.due.length ?? 0
  hasJobs = (count: number) => async () => (await this.jobs()).length === count
  hasAsked = (count: number) => () =>
    this.#told.of('run').filter(({ type }) => type === 'interaction.requested').length === count
  /** Whether the first run has ended with this event. */
  hasEnded = (type: string) => () =>
    this.#told.of('run').some((event) => event.of === id(1) && event.type === type)
}
/** Starts a run that then has this number of jobs. */
async function started(
  steps: readonly object[],
  input: Open,
  jobs: number,
  more: Open = {},
): Promise<World> {
  const world = new World()
  await world.send('run', id(1), 'run.start', { spec: { steps }, input, ...more })
  await world.until(world.hasJobs(jobs))
  return world
}
const claim = async (world: World): Promise<void> => {
  const takes = (await world.jobs()).map((job_id) => ({ job_id, session: 's', instance: 'w' }))
  while (takes.length > 0)
    await world.send('queue', QUEUE, 'queue.claim', { gateway: 'g', takes: takes.splice(0, 100) })
}

const CHILD = { id: 'wfd_child', version: 1, spec: { steps: [action] } }
const flow = (wait: boolean) => ({ kind: 'loop', config: { workflow_id: 'child', wait } })

t.test('the leases of a worker with 100 jobs expire', async (t) => {
  for (const on_failure of ['continue', 'fail'])
    for (const max_attempts of [1, 2]) {
      const step = { ...action, retry: { max_attempts } }
      const world = await started([each([step], { on_failure })], items(150), 100)
      const end = world.hasEnded(on_failure === 'fail' ? 'run.failed' : 'run.completed')
      for (let round = 0; round < 2 * max_attempts; round++) {
        await claim(world)
        await world.until(async () => (await world.leases()) === 0, 1000)
      }
      await world.until(end)
      t.strictSame(world.faults, [], `${on_failure}, ${max_attempts} attempts`)
      t.ok(end(), 'the run has ended')
    }
})

t.test('runs with 100 jobs each lose a worker, and each stops its other jobs', async (t) => {
  const world = new World()
  for (let n = 1; n <= 10; n++)
    await world.send('run', id(n), 'run.start', {
      spec: { steps: [each([action], { join: 'first_failure' })] },
      input: items(100),
    })
  t.ok(await world.until(world.hasJobs(1000)))
  await claim(world)
  t.ok(await world.until(world.hasJobs(0), 1000))
  t.strictSame(world.faults, [])
})

t.test('a session with 100 jobs ends', async (t) => {
  const world = await started([each([action], { on_failure: 'continue' })], items(100), 100)
  const job_ids = await world.jobs()
  await claim(world)
  await world.send('queue', QUEUE, 'queue.lose', { session: 's', job_ids })
  t.ok(await world.until(world.hasJobs(0)), 'no lease waits for its expiry')
  t.strictSame(world.faults, [])
  t.ok(world.hasEnded('run.completed')())
})

t.test('a run with 100 jobs is cancelled', async (t) => {
  for (const isClaimed of [false, true]) {
    const world = await started([each([action])], items(1000), 100)
    if (isClaimed) await claim(world)
    await world.send('run', id(1), 'run.cancel', {})
    t.ok(await world.until(world.hasEnded('run.cancelled'), 1000))
    t.strictSame(world.faults, [])
  }
})

t.test('200 steps start a run each', async (t) => {
  const steps = Array.from({ length: 200 }, (_, n) => ({ id: `s${n}`, ...flow(false) }))
  const world = await started(steps, {}, 200, { definitions: { child: CHILD } })
  t.strictSame(world.faults, [])
  t.ok(world.hasEnded('run.completed')())
})

t.test('a run that waits for 100 runs is cancelled', async (t) => {
  const step = each([{ id: 'f', ...flow(true) }])
  const world = await started([step], items(100), 100, { definitions: { child: CHILD } })
  await world.send('run', id(1), 'run.cancel', {})
  t.ok(await world.until(world.hasEnded('run.cancelled')))
  t.strictSame(world.faults, [])
})

t.test('a run with 100 open questions is cancelled', async (t) => {
  const config = { protocol: 'request_approval', targets: ['ann'], spec: { mode: 'confirm' } }
  const step = each([{ id: 'q', kind: 'interaction', config }])
  const world = await started([step], items(1000), 0)
  await world.until(world.hasAsked(100))
  await world.send('run', id(1), 'run.cancel', {})
  t.ok(await world.until(world.hasEnded('run.cancelled')))
  t.strictSame(world.faults, [])
})

t.test('a decision with too many events is refused before it changes anything', async (t) => {
  const world = new ToyWorld()
  const lost: string[] = []
  const shard = await world.owner(0, world.deps(), lost)
  await shard.submit(command(runId(1), 'repeat', { times: 500 }))
  t.same(await shard.submit(command(runId(1), 'repeat', { times: 501 })), { refused: 'internal' })
  t.same(reply(await shard.submit(command(runId(1), 'add', { by: 1 }))), { count: 501 })
  t.strictSame(lost, [])
})
