/**
 * A shard whose journal accepts no appends or lacks entries: it refuses commands, and answers reads
 * unless it found a gap during replay. Once the storage accepts appends again, it recovers
 * automatically.
 */
import t from 'tap'
import type { ShardAnswer, WriteStop } from '../../../nodes/host/deps.ts'
import { WriteGate } from '../../../nodes/host/durability/write-gate.ts'
import { UnreadableEntry } from '../../../nodes/host/ports.ts'
import { Shard } from '../../../nodes/host/shard.ts'
import { type Count, command, reply, runId, ToyWorld } from '../support/toy.ts'

const full: WriteStop = { code: 'storage_full', reason: 'for the test' }
const read = async (shard: Shard, n = 0) =>
  reply(await shard.ask({ project: 'prj_1', kind: 'run', id: runId(n) }, 'get', undefined))

t.test('while writes are stopped, commands are refused before they are decided', async (t) => {
  const world = new ToyWorld()
  let stop: WriteStop | undefined
  const owner = await world.owner(0, { ...world.deps(), stopped: () => stop })
  await owner.submit(command(runId(0), 'add', { by: 2 }))
  const stored = world.journal.messages.length
  stop = full
  t.match(await owner.submit(command(runId(0), 'add', { by: 5 })), { refused: 'storage_full' })
  const effect = { ...command(runId(0), 'add', { by: 7 }), command_id: 'e:0.1:5000.0' }
  t.match(
    await owner.submit(effect),
    { not_owner: true },
    'a message of another shard is not dropped',
  )
  t.match(await read(owner), { count: 2 }, 'reads see the stored state')
  t.equal(world.journal.messages.length, stored)
  stop = undefined
  t.match(await owner.submit(effect), { not_owner: true }, 'it waited when the gate opened')
  await owner.submit(effect)
  t.match(await read(owner), { count: 9 })
  owner.drop()
})

t.test('an append refused by the storage drops the shard but loses no entry', async (t) => {
  const world = new ToyWorld()
  const lost: string[] = []
  const owner = await world.owner(0, world.deps(), lost)
  await owner.submit(command(runId(0), 'add', { by: 2 }))
  world.journal.faults = ['full']
  t.match(await owner.submit(command(runId(0), 'add', { by: 5 })), { not_owner: true })
  t.strictSame(lost, ['the storage rejects writes'])

  world.journal.faults = ['full']
  const again: string[] = []
  const next = await world.owner(0, world.deps(), again)
  t.match(await read(next), { count: 2 }, 'the next owner reads, without a fence')
  t.match(await next.submit(command(runId(0), 'add', { by: 5 })), { refused: 'storage_full' })
  world.journal.faults = ['full']
  await world.clock.advance(1000)
  t.strictSame(again, [], 'the journal still takes nothing')
  await world.clock.advance(1000)
  t.strictSame(again, ['the journal accepts entries again'])
  const last = await world.owner()
  await last.submit(command(runId(0), 'add', { by: 5 }))
  t.match(await read(last), { count: 7 })
  last.drop()
})

t.test('a journal that lacks entries accepts no new ones', async (t) => {
  const cases: readonly [string, (world: ToyWorld) => void, boolean][] = [
    ['its stream says so', ({ journal }) => void (journal.missing = 3), true],
    ['it ends before the checkpoint', ({ journal }) => void journal.messages.splice(-2), true],
  ]
  for (const [why, spoil, reads] of cases) {
    const world = new ToyWorld()
    const owner = await world.owner()
    for (let i = 0; i < 6; i++) await owner.submit(command(runId(0), 'add', { by: 1 }))
    await world.clock.advance(10_000)
    owner.drop()
    spoil(world)
    const stored = world.journal.messages.length
    const damaged: string[] = []
    const next = await world.owner(0, {
      ...world.deps(),
      damaged: (_, reason) => void damaged.push(reason),
    })
    t.equal(damaged.length, 1, why)
    t.match(await next.submit(command(runId(0), 'add', { by: 1 })), { refused: 'journal_damaged' })
    if (reads) t.match(await read(next), { count: 6 }, `${why}: snapshots are read`)
    t.equal(world.journal.messages.length, stored, `${why}: nothing is written`)
    next.drop()
  }
})

t.test('a gap in the replayed entries also stops reads', async (t) => {
  const world = new ToyWorld()
  const owner = await world.owner()
  for (let i = 0; i < 6; i++) await owner.submit(command(runId(0), 'add', { by: 1 }))
  owner.drop()
  world.journal.messages.splice(3, 1)
  const next = await world.owner()
  t.match(await read(next), { refused: 'journal_damaged' })
  t.match(await next.submit(command(runId(0), 'add', { by: 1 })), { refused: 'journal_damaged' })
  next.drop()
})

t.test(
  'a damaged last entry stops its shard, which is served again once it is readable',
  async (t) => {
    const world = new ToyWorld()
    const owner = await world.owner()
    await owner.submit(command(runId(0), 'add', { by: 1 }))
    owner.drop()
    const stored = world.journal.messages.length
    const { last } = world.journal
    world.journal.last = () => Promise.reject(new UnreadableEntry('the last entry is damaged'))
    const damaged: string[] = []
    const lost: string[] = []
    const deps = { ...world.deps(), damaged: (_: number, why: string) => void damaged.push(why) }
    const next = await world.owner(0, deps, lost)
    t.match(await read(next), { refused: 'journal_damaged' })
    t.match(await next.submit(command(runId(0), 'add', { by: 1 })), { refused: 'journal_damaged' })
    t.strictSame(damaged, ['the last entry is damaged'])
    t.equal(world.journal.messages.length, stored)
    world.journal.last = last
    await world.clock.advance(30_000)
    t.strictSame(lost, ['the damaged journal is checked again'])
    t.match(await read(await world.owner()), { count: 1 })
  },
)

t.test('a missing large value stops its shard, which is served again with the value', async (t) => {
  for (const more of [0, 3]) {
    const world = new ToyWorld()
    const owner = await world.owner()
    await owner.submit(command(runId(0), 'add', { by: 1, text: 'x'.repeat(300_000) }))
    for (let i = 0; i < more; i++) await owner.submit(command(runId(0), 'add', { by: 1 }))
    owner.drop()
    const values = [...world.blobs.values]
    world.blobs.values.clear()
    const damaged: string[] = []
    const lost: string[] = []
    const deps = { ...world.deps(), damaged: (_: number, why: string) => void damaged.push(why) }
    const next = new Shard(deps, 0, 0, (reason) => lost.push(reason))
    const started = next.start(2)
    await world.clock.advance(10_000)
    await started
    t.match(await read(next), { refused: 'journal_damaged' })
    t.match(await next.submit(command(runId(0), 'add', { by: 1 })), { refused: 'journal_damaged' })
    t.match(damaged, [/large value .* is missing from the object store/])
    for (const [name, value] of values) world.blobs.values.set(name, value)
    await world.clock.advance(30_000)
    t.strictSame(lost, ['the damaged journal is checked again'])
    t.match(await read(await world.owner()), { count: 1 + more })
  }
})

t.test('when the gate opens, leases get their full duration before a command is decided', (t) => {
  const world = new ToyWorld()
  let stop: WriteStop | undefined
  const base = world.deps()
  const recover = (state: Count, now: number): Count => ({ ...state, wake: now + 100 })
  const context = world.context({
    ...base,
    kinds: { ...base.kinds, run: { ...base.kinds.run, recover: recover as never } },
    stopped: () => stop,
  })
  const instance = context.instances.fresh({ project: 'prj_1', kind: 'run', id: runId(0) })
  const noted: unknown[] = []
  const gate = new WriteGate(context, {
    isOpen: () => true,
    lose: (reason) => t.fail(reason),
    note: ({ state }) => noted.push(state),
    rejectEffects: () => {},
  })
  const add = command(runId(0), 'add', { by: 1 })
  const refusal = () => {
    gate.begin()
    return gate.refusal(add)
  }
  t.equal(refusal(), undefined)
  t.strictSame(noted, [], 'a gate that stays open changes no actor')
  stop = full
  t.match(refusal(), { refused: 'storage_full' })
  stop = undefined
  t.match(gate.refusal(add), { refused: 'storage_full' }, 'until the batch ends')
  t.equal(refusal(), undefined)
  t.match(noted, [{ wake: world.clock.now() + 100 }])
  t.match(instance.state, { wake: world.clock.now() + 100 })
  t.equal(refusal(), undefined)
  t.equal(noted.length, 1, 'once')
  t.end()
})

t.test('after a step of the system clock, leases get their full duration', (t) => {
  for (const step of [3_600_000, -3_600_000]) {
    const world = new ToyWorld()
    const base = world.deps()
    const recover = (state: Count, now: number): Count => ({ ...state, wake: now + 100 })
    const context = world.context({
      ...base,
      kinds: { ...base.kinds, run: { ...base.kinds.run, recover: recover as never } },
    })
    const instance = context.instances.fresh({ project: 'prj_1', kind: 'run', id: runId(0) })
    const noted: unknown[] = []
    const gate = new WriteGate(context, {
      isOpen: () => true,
      lose: (reason) => t.fail(reason),
      note: ({ state }) => noted.push(state),
      rejectEffects: () => t.fail('no command is rejected'),
    })
    gate.begin()
    world.clock.setBy(step)
    gate.begin()
    t.match(noted, [{ wake: world.clock.now() + 100 }])
    t.match(instance.state, { wake: world.clock.now() + 100 })
    t.equal(context.time.at, world.clock.now())
    world.clock.setBy(-1000)
    gate.begin()
    t.equal(context.time.at, world.clock.now() + 1000, 'a small step back is not followed')
    t.equal(noted.length, 1)
  }
  t.end()
})

t.test('effects that arrive together are rejected together when the gate opens', async (t) => {
  for (const checks of [1, 2, 3]) {
    const world = new ToyWorld()
    let closed = 0
    const stopped = () => (closed-- > 0 ? full : undefined)
    const owner = await world.owner(0, { ...world.deps(), stopped })
    // These are more commands than fit into one batch.
    const commands = Array.from({ length: 300 }, (_, i) => ({
      ...command(runId(0), 'add', { by: 1 }),
      command_id: `e:0.1:5000.${i}`,
    }))
    const send = async () =>
      ((await owner.hear({ type: 'commands', commands })) as ShardAnswer[]).filter(
        (answer) => !('not_owner' in answer),
      ).length
    closed = checks
    let decided = await send()
    t.equal(decided, 0, 'none is decided, so that the sender repeats all of them in order')
    for (let repeat = 0; repeat < 2 && decided === 0; repeat++) decided = await send()
    t.equal(decided, 300)
    t.match(await read(owner), { count: 300 })
    owner.drop()
  }
})
