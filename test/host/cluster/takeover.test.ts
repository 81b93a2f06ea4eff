/**
 * Takeover of a shard: concurrent reads, what is replayed after a graceful shutdown, which effects
 * are repeated, and stored state that is lost or written late.
 */
import t from 'tap'
import type { AnyActor, Push } from '../../../actors/actor.ts'
import { answerEach } from '../../../nodes/host/effects/pushes.ts'
import { subjects } from '../../../protocol/subjects.ts'
import { MemoryBus, settleAll } from '../../support/memory.ts'
import { command, reply, runId, ToyWorld } from '../support/toy.ts'

const RUNS = 20

/**
 * Extends the ports of a node: runs react to the event `counted` with `react`, and `replayed`
 * collects the numbers of entries that takeovers replay.
 */
function counting(base: ReturnType<ToyWorld['deps']>, react: { readonly counted: never }) {
  const replayed: unknown[] = []
  const log = {
    ...base.log,
    info: (fields: unknown, text: string) => {
      if (text === 'shard taken over') replayed.push((fields as { replayed: number }).replayed)
    },
  }
  const deps = { ...base, log, kinds: { ...base.kinds, run: { ...base.kinds.run, react } } }
  return { replayed, deps }
}

t.test('the snapshots for a replay are read concurrently', async (t) => {
  let reading = 0
  let most = 0
  const world = new ToyWorld()
  const first = await world.owner()
  for (let i = 0; i < RUNS; i++) await first.submit(command(runId(i), 'add', { by: i }))
  await world.clock.advance(70_000)
  t.equal(first.instances.size, 0, 'all have left memory')
  for (let i = 0; i < RUNS; i++) await first.submit(command(runId(i), 'add', { by: 100 }))
  first.drop()

  const get = world.snapshots.get.bind(world.snapshots)
  world.snapshots.get = async (partition, key) => {
    if (key.includes('run_')) most = Math.max(most, ++reading)
    await new Promise<void>((later) => setImmediate(later))
    if (key.includes('run_')) reading--
    return get(partition, key)
  }
  const next = await world.owner()
  t.equal(most, RUNS)
  for (let i = 0; i < RUNS; i++)
    t.match(
      reply(await next.ask({ project: 'prj_1', kind: 'run', id: runId(i) }, 'get', undefined)),
      { count: 100 + i },
      `run ${i}`,
    )
  next.drop()
})

t.test(
  'an owner that stops gracefully finishes its effects first, so the next one replays nothing',
  async (t) => {
    let answer: (() => void) | undefined
    const bus = new MemoryBus()
    bus.subscribe(
      'gateway.g1',
      () =>
        new Promise((done) => {
          answer = () => done({ ok: true })
        }),
    )
    const world = new ToyWorld()
    const base = world.deps(bus)
    const react = {
      counted: (() => [{ push: { gateway: 'g1', message: { type: 'state' } } }]) as never,
    }
    const { replayed, deps } = counting(base, react)

    const first = await world.owner(0, deps)
    await first.submit(command(runId(1), 'add', { by: 1 }))
    const ended = first.stop()
    await settleAll()
    t.ok(answer, 'its message is under way')
    answer?.()
    await ended
    const next = await world.owner(0, deps)
    t.same(replayed, [0, 0])

    await next.submit(command(runId(2), 'add', { by: 1 }))
    const late = next.stop()
    await world.clock.advance(1000)
    await late
    answer = undefined
    const last = await world.owner(0, deps)
    t.same(replayed, [0, 0, 0], 'nor after an effect without a timely answer')
    await settleAll()
    t.ok(answer, 'that is sent again')
    last.drop()
  },
)

t.test(
  'events that only wait for effects are not replayed; all their effects are performed again',
  async (t) => {
    const bus = new MemoryBus()
    const told: unknown[] = []
    bus.subscribe('gateway.g1', (message) =>
      answerEach(message, (one) => {
        told.push((one as unknown as { by: unknown }).by)
        return new Promise(() => {})
      }),
    )
    const world = new ToyWorld()
    const base = world.deps(bus)
    const react = {
      counted: (({ by }: { by: number }) => [
        { push: { gateway: 'g1', message: { type: 'state', by } } },
      ]) as never,
    }
    const { replayed, deps } = counting(base, react)
    const first = await world.owner(0, deps)
    for (let i = 0; i < RUNS; i++) await first.submit(command(runId(i), 'add', { by: i }))
    // This takes 1.9 s: less than the timeout of a push to a gateway, and long enough for a changed
    // actor to be stored.
    for (let i = 0; i < 19; i++) await world.clock.advance(100)
    await first.submit(command(runId(0), 'add', { by: 100 }))
    first.drop()
    told.length = 0

    const next = await world.owner(0, deps)
    await settleAll()
    t.same(replayed, [0, 1], 'the only change that was not stored')
    t.same(told, [...Array.from({ length: RUNS }, (_, i) => i), 100])
    t.match(
      reply(await next.ask({ project: 'prj_1', kind: 'run', id: runId(0) }, 'get', undefined)),
      { count: 100 },
    )
    t.match(
      reply(await next.ask({ project: 'prj_1', kind: 'run', id: runId(7) }, 'get', undefined)),
      { count: 7 },
    )
    next.drop()
  },
)

t.test('an owner with pending effects detects the loss of stored state', async (t) => {
  const bus = new MemoryBus()
  bus.subscribe('gateway.g1', () => new Promise(() => {}))
  const world = new ToyWorld()
  const base = world.deps(bus)
  const react = {
    counted: (() => [{ push: { gateway: 'g1', message: { type: 'state' } } }]) as never,
  }
  const lost: string[] = []
  const first = await world.owner(
    0,
    { ...base, kinds: { ...base.kinds, run: { ...base.kinds.run, react } } },
    lost,
  )
  const { values } = world.snapshots
  const checkpoint = () =>
    JSON.parse(Buffer.from(values.get('0/_/0/checkpoint')?.data ?? []).toString()) as {
      sequence: number
      state: number
    }
  const pass = async (ms: number) => {
    for (let i = 0; i < ms; i += 100) await world.clock.advance(100)
  }
  const changed = async (i: number) => {
    await first.submit(command(runId(i), 'add', { by: 1 }))
    await pass(800)
  }
  // Both changes occur before the push to the gateway times out.
  await pass(500)
  await changed(1)
  const [older, then] = [new Map(values), checkpoint()]
  await changed(2)
  t.match(checkpoint(), { sequence: then.sequence })
  t.ok(checkpoint().state > then.state, 'more actors are stored, their effects still wait')
  values.clear()
  for (const [key, value] of older) values.set(key, value)
  await changed(3)
  await pass(1000)
  t.equal(lost.length, 1, 'the lost state is not written again from memory')
})

t.test('commands are answered while a stopping owner stores its state', async (t) => {
  let stored: (() => void) | undefined
  let hold = false
  const world = new ToyWorld((step) =>
    step === 'snapshot write' && hold && !stored
      ? new Promise<void>((go) => {
          stored = go
        })
      : undefined,
  )
  const bus = new MemoryBus()
  const shard = await world.owner(0, world.deps(bus))
  await shard.submit(command(runId(1), 'add', { by: 1 }))
  hold = true
  const ended = shard.stop()
  await settleAll()
  t.ok(stored, 'it is being stored')
  t.match(
    await bus.request(subjects.shard(0, 0), {
      type: 'command',
      command: command(runId(1), 'add', { by: 1 }),
    }),
    { answer: { reply: { count: 2 } } },
  )
  stored?.()
  await ended
  const next = await world.owner()
  t.match(
    reply(await next.ask({ project: 'prj_1', kind: 'run', id: runId(1) }, 'get', undefined)),
    { count: 2 },
  )
  next.drop()
})

t.test('the next owner does not repeat an obsolete message', async (t) => {
  const bus = new MemoryBus()
  const sent: unknown[] = []
  bus.subscribe('gateway.g1', (message) => {
    sent.push((message as { about: number }).about)
    return { ok: true }
  })
  const world = new ToyWorld()
  const base = world.deps(bus)
  const run: AnyActor = {
    ...base.kinds.run,
    react: {
      counted: ((event: { by: number }) => [
        { push: { gateway: 'g1', message: { type: 'state', about: event.by } } },
      ]) as never,
    },
    isObsolete: ((state: { count: number }, { message }: Push) =>
      message['about'] !== state.count) as never,
  }
  const deps = { ...base, kinds: { ...base.kinds, run } }
  const first = await world.owner(0, deps)
  await first.submit(command(runId(1), 'add', { by: 1 }))
  await first.submit(command(runId(1), 'add', { by: 2 }))
  await first.submit(command(runId(2), 'add', { by: 5 }))
  await settleAll()
  t.same(sent.splice(0), [1, 2, 5])
  first.drop()
  const next = await world.owner(0, deps)
  await settleAll()
  t.same(sent, [5])
  next.drop()
})

t.test('commands whose batch failed are sent as a batch again after a retry', async (t) => {
  const sizes: number[] = []
  const asked: string[] = []
  const bus = new MemoryBus()
  const world = new ToyWorld()
  const deps = world.deps(bus)
  const request = bus.request.bind(bus)
  bus.request = async (subject, message) => {
    const { type, commands } = message as { type: string; commands?: readonly unknown[] }
    if (subject !== subjects.shard(0, 1)) return request(subject, message)
    sizes.push(type === 'commands' ? (commands?.length ?? 0) : 1)
    return sizes.length === 1 ? 'timeout' : request(subject, message)
  }
  const from = await world.owner(0, deps)
  const to = await world.owner(1, {
    ...world.deps(bus),
    measure: { commit() {}, command: () => void asked.push('told'), offer() {} },
  })
  await Promise.all(
    Array.from({ length: 60 }, (_, i) =>
      from.submit(command(runId(i), 'add', { by: 1, abroad: runId(1, 1) })),
    ),
  )
  await world.clock.advance(5000)
  t.same(sizes, [60, 8, 52])
  t.match(
    reply(await to.ask({ project: 'prj_1', kind: 'run', id: runId(1, 1) }, 'get', undefined)),
    { told: 60 },
  )
  t.equal(asked.length, 60)
  from.drop()
  to.drop()
})

t.test('a delayed write of the deadline index does not replace a newer one', async (t) => {
  const world = new ToyWorld()
  const put = world.snapshots.put.bind(world.snapshots)
  let late: (() => Promise<number | undefined>) | undefined
  world.snapshots.put = (partition, key, data, revision) => {
    if (late || !key.includes('/deadlines/')) return put(partition, key, data, revision)
    late = () => put(partition, key, data, revision)
    return Promise.reject(new Error('no answer in time'))
  }
  const pass = async (ms: number) => {
    for (let i = 0; i < ms; i += 100) await world.clock.advance(100)
  }
  const at = world.clock.now() + 3_600_000
  const first = await world.owner()
  await first.submit(command(runId(1), 'nap', { at }))
  await pass(5000)
  await first.submit(command(runId(2), 'nap', { at }))
  await pass(5000)
  t.equal(await late?.(), undefined, 'the late write is refused')
  first.drop()

  const next = await world.owner()
  await world.clock.advance(3_600_000)
  for (const n of [1, 2])
    t.match(
      reply(await next.ask({ project: 'prj_1', kind: 'run', id: runId(n) }, 'get', undefined)),
      { count: 1000, wake: 0 },
      `run ${n} was woken`,
    )
  next.drop()
})
