/**
 * Which shards a node claims if the registry lacks their records, how often a shard restarts if an
 * actor's timer handler throws, and how a node reports a shard that it cannot take over.
 */
import t from 'tap'
import { Membership } from '../../../nodes/host/cluster/membership.ts'
import { Host } from '../../../nodes/host/host.ts'
import type { Registry } from '../../../nodes/host/ports.ts'
import { subjects } from '../../../protocol/subjects.ts'
import { MemoryRegistry, silentLog } from '../../support/memory.ts'
import { command, runId, ToyWorld } from '../support/toy.ts'

/** Creates nodes that share one journal and one registry. */
function cluster() {
  const world = new ToyWorld()
  const registry = new MemoryRegistry()
  const owners = () =>
    [...registry.values].flatMap(([key, { value }]) =>
      key.startsWith('shard.') ? [(JSON.parse(value) as { node: string }).node] : [],
    )
  const join = async (id: string) => {
    const own: Registry = {
      get: (key) => registry.get(key),
      put: (key, value, revision) => registry.put(key, value, revision),
      delete: (key) => registry.delete(key),
      list: (prefix) => registry.list(prefix),
    }
    const membership = new Membership(own, world.clock, { id, roles: ['shards'] })
    const deps = world.deps()
    const errors: object[] = []
    const log = { ...silentLog, error: (fields: object) => void errors.push(fields) }
    const host: Host = new Host(
      { ...deps, node: id, fresh: () => membership.fresh(), log },
      own,
      membership,
    )
    membership.reportStops(() => host.failures())
    const joined = membership.start(() => host.round())
    await world.clock.advance(2500)
    await joined
    return { registry: own, host, membership, bus: deps.bus, errors }
  }
  return { clock: world.clock, journal: world.journal, registry, join, owners }
}

t.test('a shard without a record is not claimed while its owner is alive', async (t) => {
  const { clock, registry, join, owners } = cluster()
  const a = await join('a')
  t.same(a.host.owned().sort(), ['0.0', '0.1'])
  const { list } = a.registry
  a.registry.list = () => new Promise(() => {})
  const b = await join('b')
  t.same(b.host.owned(), [], 'the owner is slow to look, and gives nothing up')
  registry.values.clear()
  await clock.advance(1000)
  t.ok(a.membership.fresh(), 'its renewals wait for no look')
  await clock.advance(10_000)
  t.same([a.host.owned().sort(), b.host.owned(), owners()], [['0.0', '0.1'], [], []])
  a.registry.list = list
  a.host.crash()
  await a.membership.stop()
  await clock.advance(3000)
  t.same(b.host.owned().sort(), ['0.0', '0.1'], 'the shards of a dead node are claimed')
  t.same(owners(), ['b', 'b'])
})

t.test(
  'an owner claims a shard again when its record is missing, or leaves it to the assigned node',
  async (t) => {
    const { clock, registry, join } = cluster()
    const [a, b] = [await join('a'), await join('b')]
    await clock.advance(5000)
    const before = [...a.host.owned(), ...b.host.owned()].sort()
    t.same(before, ['0.0', '0.1'])
    registry.values.clear()
    await clock.advance(5000)
    t.same([...a.host.owned(), ...b.host.owned()].sort(), before)
  },
)

t.test('an actor whose timer throws restarts its shard less and less often', async (t) => {
  const { clock, journal, join } = cluster()
  const a = await join('a')
  const send = async (id: string, name: string, input: object) => {
    const answer = a.bus.request(
      subjects.shard(0, 0),
      { type: 'command', command: command(id, name, input) },
      1000,
    )
    await clock.advance(10)
    return answer
  }
  t.same(await send(runId(1), 'nap', { at: clock.now() + 1000, broken: true }), {
    answer: { reply: null },
  })
  const before = journal.messages.length
  await clock.advance(60_000)
  const lost = journal.messages.length - before
  t.ok(lost >= 4 && lost <= 8, `taken over ${lost} times in a minute`)
  t.same(
    await send(runId(2), 'add', { by: 1 }),
    { answer: { reply: { count: 1 } } },
    'others are served',
  )
  t.same(await send(runId(1), 'nap', { at: clock.now() + 1000, broken: false }), {
    answer: { reply: null },
  })
  await clock.advance(120_000)
  t.match(
    await send(runId(1), 'add', { by: 1 }),
    { answer: { reply: { count: 1001 } } },
    'once it is mended it is woken',
  )
})

t.test('a takeover that fails repeatedly is reported, and repeated less often', async (t) => {
  const { clock, journal, registry, join } = cluster()
  const a = await join('a')
  a.host.crash()
  await a.membership.stop()
  let attempts = 0
  const { read } = journal
  journal.read = (partition, shard, from) => {
    if (shard !== 1) return read.call(journal, partition, shard, from)
    attempts++
    throw new Error('an error in the replay')
  }
  const b = await join('b')
  await clock.advance(3000)
  t.same(b.host.owned(), ['0.0'])
  t.same(b.membership.stops(), [], 'a short failure is not reported')
  await clock.advance(10_000)
  const report = 'shard 0.1: its takeover by node b fails repeatedly (an error in the replay)'
  t.same(b.membership.stops(), [report])
  t.match(b.errors, [{ event: 'shard_takeover_failing', shard: '0.1' }], 'it is logged once')
  const record = registry.values.get('node.b')?.value ?? '{}'
  t.same(JSON.parse(record).stops, [report], 'other nodes report it, too')
  await clock.advance(300_000)
  attempts = 0
  await clock.advance(120_000)
  t.ok(attempts >= 3 && attempts <= 4, `${attempts} attempts in two minutes`)
  journal.read = read
  await clock.advance(31_000)
  t.same(b.host.owned().sort(), ['0.0', '0.1'])
  t.same(b.membership.stops(), [])
})

t.test('a shard that is lost soon after each takeover is reported', async (t) => {
  const { clock, journal, join } = cluster()
  const a = await join('a')
  await clock.advance(10_000)
  const { append } = journal
  journal.append = (partition, shard, data, expected, id) => {
    // Only fences can be stored: an envelope with entries causes an error.
    if (shard !== 1 || !id.includes('takeover')) {
      if (shard === 1) throw new Error('an error in the loop')
    }
    return append.call(journal, partition, shard, data, expected, id)
  }
  const send = () =>
    a.bus.request(
      subjects.shard(0, 1),
      { type: 'command', command: command(runId(1, 1), 'add', { by: 1 }) },
      1000,
    )
  void send()
  await clock.advance(2000)
  t.same(a.membership.stops(), [], 'a single loss is not reported')
  for (let i = 0; i < 20; i++) {
    void send()
    await clock.advance(500)
  }
  t.same(a.membership.stops(), [
    'shard 0.1: its takeover by node a fails repeatedly (shard loop failed)',
  ])
  const before = journal.messages.length
  for (let i = 0; i < 40; i++) {
    void send()
    await clock.advance(500)
  }
  const takeovers = journal.messages.length - before
  t.ok(takeovers > 5 && takeovers <= 10, `${takeovers} takeovers in 20 s`)
  journal.append = append
  await clock.advance(6000)
  t.same(a.membership.stops(), [])
  t.same(a.host.owned().sort(), ['0.0', '0.1'])
})
