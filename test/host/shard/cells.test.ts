/**
 * How actors are loaded: concurrently with commits, and never from a snapshot older than the stored
 * one.
 */
import t from 'tap'
import { notOwner } from '../../../nodes/host/deps.ts'
import { settleAll } from '../../support/memory.ts'
import { command, reply, runId, ToyWorld } from '../support/toy.ts'

/** Milliseconds after which an unused actor has certainly been evicted from memory. */
const PAST_IDLE_EVICTION_MS = 70_000

t.test('snapshots for waiting commands are read once, concurrently with commits', async (t) => {
  const reads: string[] = []
  let held: (() => void) | undefined
  let hold = false
  const world = new ToyWorld((step) =>
    step === 'append' && hold
      ? new Promise<void>((go) => {
          held = go
        })
      : undefined,
  )
  const get = world.snapshots.get.bind(world.snapshots)
  world.snapshots.get = (partition, key) => {
    if (key.includes('run_')) reads.push(key)
    return get(partition, key)
  }
  const shard = await world.owner()
  for (let i = 0; i < 6; i++) await shard.submit(command(runId(i), 'add', { by: i }))
  await world.clock.advance(PAST_IDLE_EVICTION_MS)
  t.equal(shard.instances.size, 0)
  reads.length = 0
  hold = true
  const first = shard.submit(command(runId(0), 'add', { by: 1 }))
  await settleAll()
  t.ok(held, 'its append is under way')
  const others = [1, 2, 3, 4, 5, 1].map((i) => shard.submit(command(runId(i), 'add', { by: 1 })))
  await settleAll()
  t.equal(reads.length, 6, 'one read for the first, and one for each other before its batch')
  hold = false
  held?.()
  t.same(reply(await first), { count: 1 })
  t.same((await Promise.all(others)).map(reply), [
    { count: 2 },
    { count: 3 },
    { count: 4 },
    { count: 5 },
    { count: 6 },
    { count: 3 },
  ])
  t.equal(reads.length, 6)
})

t.test(
  'a snapshot that was read ahead is not used after the actor was loaded and changed',
  async (t) => {
    let held: (() => void) | undefined
    let hold = false
    const world = new ToyWorld((step) =>
      step === 'append' && hold
        ? new Promise<void>((go) => {
            held = go
          })
        : undefined,
    )
    const shard = await world.owner()
    for (const i of [1, 2]) await shard.submit(command(runId(i), 'add', { by: i }))
    await world.clock.advance(PAST_IDLE_EVICTION_MS)
    hold = true
    const first = shard.submit(command(runId(1), 'add', { by: 1 }))
    await settleAll()
    // The next batch changes the second actor twice: by a tell from another actor, and then by a
    // command that waited for the second actor.
    const told = shard.submit(command(runId(3), 'add', { by: 1, sibling: runId(2) }))
    const own = shard.submit(command(runId(2), 'add', { by: 10 }))
    await settleAll()
    hold = false
    held?.()
    await Promise.all([first, told])
    t.same(reply(await own), { count: 12 })
    t.match(
      reply(await shard.ask({ project: 'prj_1', kind: 'run', id: runId(2) }, 'get', undefined)),
      { count: 12, told: 1 },
    )
  },
)

t.test(
  'other commands overtake one whose actor is loading, unless they need it; a task overtakes nothing',
  async (t) => {
    const world = new ToyWorld()
    const shard = await world.owner()
    for (const i of [1, 2]) await shard.submit(command(runId(i), 'add', { by: i }))
    await world.clock.advance(PAST_IDLE_EVICTION_MS)
    await shard.submit(command(runId(2), 'add', { by: 1 }))
    const get = world.snapshots.get.bind(world.snapshots)
    let read: (() => void) | undefined
    world.snapshots.get = async (partition, key) => {
      if (key.includes(runId(1)))
        await new Promise<void>((go) => {
          read = go
        })
      return get(partition, key)
    }
    const over: string[] = []
    const say = (name: string) => (answer: unknown) => {
      over.push(`${name} ${JSON.stringify((answer as { reply: unknown }).reply)}`)
    }
    const all = [
      shard.submit(command(runId(1), 'add', { by: 10 })).then(say('first')),
      shard.submit(command(runId(2), 'add', { by: 10 })).then(say('other')),
      shard
        .ask({ project: 'prj_1', kind: 'run', id: runId(1) }, 'get', undefined)
        .then(say('look')),
      new Promise<void>((done) =>
        shard.task(() => {
          over.push('task')
          done()
        }),
      ),
      shard.submit(command(runId(1), 'add', { by: 100 })).then(say('second')),
      shard.submit(command(runId(2), 'add', { by: 100 })).then(say('another')),
    ]
    await settleAll()
    t.same(over, ['other {"count":13}', 'another {"count":113}'])
    let ahead = false
    shard.task(
      () => {
        ahead = true
      },
      undefined,
      true,
    )
    await settleAll()
    t.ok(ahead, 'a task with priority does not wait for the mailbox')
    over.length = 0
    read?.()
    await Promise.all(all)
    t.same(
      over.map((one) => one.replace(/,.*/, '')),
      ['first {"count":11}', 'look {"count":11', 'task', 'second {"count":111}'],
    )
  },
)

t.test(
  'a shard that is dropped while an actor is loading rejects the waiting commands',
  async (t) => {
    const { world, shard, id } = await left()
    world.snapshots.get = () => new Promise(() => {})
    const answer = shard.submit(command(id, 'add', { by: 1 }))
    await settleAll()
    shard.drop()
    t.same(await answer, notOwner)
    t.same(await shard.submit(command(id, 'add', { by: 1 })), notOwner)
  },
)

t.test('concurrent loads share one check of the checkpoint', async (t) => {
  const world = new ToyWorld()
  const shard = await world.owner()
  for (let i = 0; i < 20; i++) await shard.submit(command(runId(i), 'add', { by: i }))
  await world.clock.advance(PAST_IDLE_EVICTION_MS)
  const get = world.snapshots.get.bind(world.snapshots)
  let looks = 0
  world.snapshots.get = (partition, key) => {
    if (key.endsWith('/checkpoint')) looks++
    return get(partition, key)
  }
  await Promise.all(
    Array.from({ length: 20 }, (_, i) => shard.submit(command(runId(i), 'add', { by: 1 }))),
  )
  t.ok(looks > 0 && looks <= 2, `${looks} looks`)
})

/** Starts a shard with one run, which is then evicted from memory. */
async function left() {
  const lost: string[] = []
  const world = new ToyWorld()
  const shard = await world.owner(0, world.deps(), lost)
  const id = runId(1)
  await shard.submit(command(id, 'add', { by: 1 }))
  await world.clock.advance(12_000)
  const [at, older] = [...world.snapshots.values].find(([key]) => key.includes('run_')) ?? []
  if (!at || !older) throw new Error('it was not stored')
  await shard.submit(command(id, 'add', { by: 1 }))
  while (shard.instances.loaded({ project: 'prj_1', kind: 'run', id }))
    await world.clock.advance(1000)
  return { world, shard, lost, id, at, older }
}
/**
 * Advances the clock by `ms` milliseconds. Returns the answer, or undefined if it does not arrive
 * within that time.
 */
async function within<T>(world: ToyWorld, ms: number, answer: Promise<T>): Promise<T | undefined> {
  let got: T | undefined
  void answer.then((given) => {
    got = given
  })
  await world.clock.advance(ms)
  return got
}

t.test('a server that lacks the newest snapshot is queried again', async (t) => {
  const { world, shard, lost, id, at, older } = await left()
  const newest = world.snapshots.values.get(at)
  world.snapshots.values.set(at, older)
  const answer = shard.submit(command(id, 'add', { by: 1 }))
  t.equal(await within(world, 5000, answer), undefined)
  if (newest) world.snapshots.values.set(at, newest)
  t.same(reply((await within(world, 1000, answer)) ?? notOwner), { count: 3 })
  t.same([lost, shard.open], [[], true])
})

t.test('a snapshot that stays missing makes the owner drop the shard', async (t) => {
  const { world, shard, lost, id, at, older } = await left()
  world.snapshots.values.set(at, older)
  t.same(await within(world, 25_000, shard.submit(command(id, 'add', { by: 1 }))), notOwner)
  t.same([lost.length, shard.open], [1, false])
})

t.test('if all stored state is lost, the owner drops the shard at once', async (t) => {
  const { world, shard, lost, id } = await left()
  world.snapshots.values.clear()
  t.same(await within(world, 100, shard.submit(command(id, 'add', { by: 1 }))), notOwner)
  t.same([lost.length, shard.open], [1, false])
})

t.test('while the storage does not answer, commands wait and the shard is kept', async (t) => {
  const { world, shard, lost, id } = await left()
  const get = world.snapshots.get.bind(world.snapshots)
  world.snapshots.get = () => Promise.reject(new Error('timeout'))
  const answer = shard.submit(command(id, 'add', { by: 1 }))
  t.equal(await within(world, 8000, answer), undefined)
  world.snapshots.get = get
  t.same(reply((await within(world, 1000, answer)) ?? notOwner), { count: 3 })
  t.same([lost, shard.open], [[], true])
})

t.test('a checkpoint that is replaced while it is read does not count as lost', async (t) => {
  const { world, shard, lost, id } = await left()
  const { snapshots } = world
  const [get, put] = [snapshots.get.bind(snapshots), snapshots.put.bind(snapshots)]
  const gates: { reading?: () => void; storing?: () => void } = {}
  let puts = 0
  snapshots.put = async (partition, key, data, revision) => {
    // The checkpoint is written twice: first with its old content, and then with new content.
    if (key.endsWith('/checkpoint') && ++puts === 2)
      await new Promise<void>((go) => {
        gates.storing = go
      })
    return put(partition, key, data, revision)
  }
  await shard.submit(command(runId(2), 'add', { by: 1 }))
  for (let i = 0; i < 20 && !gates.storing; i++) await world.clock.advance(1000)
  snapshots.get = async (partition, key) => {
    const found = await get(partition, key)
    if (key.endsWith('/checkpoint'))
      await new Promise<void>((go) => {
        gates.reading = go
      })
    return found
  }
  const answer = shard.submit(command(id, 'add', { by: 1 }))
  await settleAll()
  t.ok(gates.storing && gates.reading, 'the old record was read, and the new one is on its way')
  gates.storing?.()
  await settleAll()
  snapshots.get = get
  gates.reading?.()
  t.same(reply((await within(world, 1000, answer)) ?? notOwner), { count: 3 })
  await world.clock.advance(10_000)
  t.same([lost, shard.open], [[], true])
})

t.test(
  'concurrent flushes store each actor once, and no actor counts as stored too early',
  async (t) => {
    const world = new ToyWorld()
    const shard = await world.owner()
    const id = runId(1)
    await shard.submit(command(id, 'add', { by: 1 }))
    const put = world.snapshots.put.bind(world.snapshots)
    const puts: { fail(): void; pass(): void }[] = []
    world.snapshots.put = (partition, key, data, revision) =>
      key.includes(id)
        ? new Promise((done, failed) =>
            puts.push({
              fail: () => failed(new Error('timeout')),
              pass: () => done(put(partition, key, data, revision)),
            }),
          )
        : put(partition, key, data, revision)
    const both = [shard.checkpointer.flush(), shard.checkpointer.flush()]
    await settleAll()
    t.equal(puts.length, 1)
    puts[0]?.fail()
    await settleAll()
    t.equal(puts.length, 2, 'the second flush stores what the first could not')
    puts[1]?.pass()
    await Promise.all(both)
    shard.drop()
    const next = await world.owner()
    t.same(reply(await next.submit(command(id, 'add', { by: 10 }))), { count: 11 })
  },
)
