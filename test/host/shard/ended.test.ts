/**
 * Ended actors without a snapshot: the checkpoint has an index of their last events, and they are
 * read from the journal. Invariant: an owner answers about them as it would with a snapshot.
 */
import t from 'tap'
import { type HostDeps, notOwner } from '../../../nodes/host/deps.ts'
import { EndedIndex, type SegmentName } from '../../../nodes/host/durability/ended-index.ts'
import { envelopeText, parseEnvelope } from '../../../nodes/host/memory/codec.ts'
import { ActorHistory } from '../../../nodes/host/memory/past.ts'
import type { Shard } from '../../../nodes/host/shard.ts'
import { settleAll } from '../../support/memory.ts'
import { command, endingKinds, reply, runId, ToyWorld } from '../support/toy.ts'

const CHECKPOINT = '0/_/0/checkpoint'
const world = (): ToyWorld => new ToyWorld(undefined, endingKinds)
const record = ({ snapshots }: ToyWorld): { v: number; state: number; ended?: SegmentName[] } =>
  JSON.parse(new TextDecoder().decode(snapshots.values.get(CHECKPOINT)?.data)) as never
const stored = ({ snapshots }: ToyWorld, part: string): string[] =>
  [...snapshots.values.keys()].filter((key) => key.includes(part))
const run = (n: number) => ({ project: 'prj_1', kind: 'run' as const, id: runId(n) })
const get = async (shard: Shard, n: number): Promise<unknown> =>
  reply(await shard.ask(run(n), 'get', undefined))
async function end(shard: Shard, n: number): Promise<void> {
  await shard.submit(command(runId(n), 'add', { by: n }, `add-${n}`, `request-${n}`))
  await shard.submit(command(runId(n), 'end', {}, `end-${n}`))
}
const RUNS = 40

t.test('an ended actor has no snapshot, and the next owner answers about it', async (t) => {
  const w = world()
  const first = await w.owner()
  for (let n = 1; n <= RUNS; n++) await end(first, n)
  await w.clock.advance(2500)
  t.equal(first.instances.size, 0, 'all have left memory')
  t.same(stored(w, 'run_'), [], 'no snapshot was stored')
  t.equal(record(w).v, 2)
  const bytes = stored(w, '/ended/').reduce(
    (sum, key) => sum + (w.snapshots.values.get(key)?.data.byteLength ?? 0),
    0,
  )
  t.equal(bytes, RUNS * 16)

  const read: number[] = []
  for (const owner of [first, undefined]) {
    if (!owner) first.drop()
    const shard = owner ?? (await w.owner())
    const at = w.journal.at.bind(w.journal)
    w.journal.at = (partition, sequence) => {
      read.push(sequence)
      return at(partition, sequence)
    }
    for (let n = 1; n <= RUNS; n++) {
      const again = await shard.submit(
        command(runId(n), 'add', { by: n }, `add-${n}`, `request-${n}`),
      )
      t.same(reply(again), { count: n }, 'a repeat gets the first answer')
      t.match(await get(shard, n), { count: n, over: true })
    }
    t.match(await shard.submit(command(runId(3), 'add', { by: 4 }, 'add-3', 'another')), {
      refused: 'idempotency_key_conflict',
    })
    t.equal(read.length, RUNS * 2, 'one read for each envelope')
    read.length = 0
    w.journal.at = at
    if (!owner) shard.drop()
  }
})

t.test('an index that grows has few segments, and every actor is found', async (t) => {
  const w = world()
  const shard = await w.owner()
  const index = new EndedIndex({ ...w.context(), position: { epoch: 1, sequence: 1 } })
  let count = 0
  for (const size of [
    ...Array<number>(200).fill(1),
    ...Array<number>(60).fill(300),
    9000,
    16_000,
  ]) {
    await index.add(
      Array.from({ length: size }, () => ({ key: `k${++count}`, prev: count * 1000 })),
    )
    index.adopt()
  }
  await settleAll()
  const sum = index.names.reduce((all, [, , n]) => all + n, 0)
  t.equal(sum, count)
  t.ok(index.names.length < 25, `${index.names.length} segments and free keys`)
  t.ok(index.names.every(([, , n]) => n <= 16_000))
  const full = index.names.filter(([, , n]) => n >= 4096).length
  t.equal(stored(w, '/ended/').length, index.names.length + full, 'there are no other keys')
  const other = new EndedIndex(w.context())
  t.ok(await other.load(JSON.parse(JSON.stringify(index.names)) as SegmentName[]))
  for (let n = 1; n <= count; n += 97) {
    t.ok((await index.find(`k${n}`)).includes(n * 1000), `${n}`)
    t.ok((await other.find(`k${n}`)).includes(n * 1000), `${n}, read`)
  }
  const reads = t.capture(w.snapshots, 'get', w.snapshots.get.bind(w.snapshots))
  for (let n = 0; n < 1000; n++) await other.find(`unknown-${n}`)
  t.ok(reads().length <= 8, `${reads().length} reads for 1000 actors that are not in the index`)
  shard.drop()
})

t.test('an ended actor that changes again is found with its last event', async (t) => {
  const w = world()
  let shard = await w.owner()
  await end(shard, 1)
  await w.clock.advance(2500)
  t.equal(shard.instances.size, 0)
  await shard.submit(command(runId(1), 'add', { by: 10 }, 'late'))
  await w.clock.advance(2500)
  t.equal(shard.instances.size, 0)
  t.match(await get(shard, 1), { count: 11, over: true })
  await shard.submit(command(runId(1), 'add', { by: 100 }, 'later'))
  shard.drop()
  shard = await w.owner()
  t.match(await get(shard, 1), { count: 111, over: true }, 'its index entry, then a replay')
  shard.drop()
})

t.test('the entries after a snapshot are read, and long histories are stored', async (t) => {
  const w = world()
  let shard = await w.owner()
  await shard.submit(command(runId(1), 'add', { by: 1 }))
  for (let n = 0; n < 20; n++) await shard.submit(command(runId(2), 'add', { by: 1 }))
  await shard.submit(command(runId(3), 'add', { by: 1, text: 'x'.repeat(70_000) }))
  await shard.submit(command(runId(2), 'end'))
  await shard.submit(command(runId(3), 'end'))
  await w.clock.advance(4000)
  t.equal(stored(w, 'run_').length, 3)
  const before = w.snapshots.values.get(stored(w, runId(1))[0] ?? '')
  await shard.submit(command(runId(1), 'end'))
  await w.clock.advance(2500)
  t.equal(w.snapshots.values.get(stored(w, runId(1))[0] ?? ''), before, 'it is not replaced')
  shard.drop()
  shard = await w.owner()
  const read = t.capture(w.journal, 'at', w.journal.at.bind(w.journal))
  t.match(await get(shard, 1), { count: 1, over: true })
  t.equal(read().length, 1)
  t.match(await get(shard, 2), { count: 20, over: true })
  t.match(await get(shard, 3), { count: 1, over: true })
  t.equal(read().length, 0)
  shard.drop()
})

t.test('snapshots are stored while a live node cannot read the index', async (t) => {
  const w = world()
  let format: 1 | 2 = 2
  const deps = (): HostDeps => ({ ...w.deps(), format: () => format })
  let shard = await w.owner(0, deps())
  await end(shard, 1)
  await w.clock.advance(2500)
  format = 1
  await end(shard, 2)
  await w.clock.advance(2500)
  t.equal(stored(w, 'run_').length, 1)
  shard.drop()
  shard = await w.owner(0, deps())
  for (const n of [1, 2]) t.match(await get(shard, n), { count: n, over: true })
  shard.drop()
})

t.test('a checkpoint is stored in version 1 until an actor is in the index', async (t) => {
  const w = world()
  const shard = await w.owner()
  await shard.submit(command(runId(1), 'add', { by: 1 }))
  await w.clock.advance(5000)
  t.equal(record(w).v, 1)
  t.equal(shard.instances.size, 1)
  t.same([...shard.instances.active()], [], 'the next round does not visit it')
  await end(shard, 2)
  await w.clock.advance(2500)
  t.equal(record(w).v, 2)
  shard.drop()
})

t.test('an index whose record may not be stored is stored again', async (t) => {
  const w = world()
  const put = w.snapshots.put.bind(w.snapshots)
  for (const applied of [false, true]) {
    const shard = await w.owner()
    let failed = 0
    const n = applied ? 2 : 1
    w.snapshots.put = async (partition, key, data, revision) => {
      const names = new TextDecoder().decode(data)
      const fails =
        key.endsWith('checkpoint') && names.includes('"ended"') && failed < 3 && ++failed > 0
      const outcome = fails && !applied ? undefined : await put(partition, key, data, revision)
      if (fails) throw new Error('the servers do not answer')
      return outcome
    }
    await end(shard, n)
    await w.clock.advance(3500)
    t.equal(failed, 3)
    t.match(await get(shard, n), { count: n, over: true }, 'it is read from the journal meanwhile')
    await w.clock.advance(2500)
    t.equal(shard.instances.size, 0)
    w.snapshots.put = put
    const named = (record(w).ended ?? []).map(([epoch, number]) => `${epoch}/${number}`)
    const keys = stored(w, '/ended/').map((key) => key.split('/ended/')[1] ?? '')
    t.same(
      keys.filter((key) => !named.includes(key)),
      [],
      'the record names all keys',
    )
    shard.drop()
  }
  const next = await w.owner()
  for (const n of [1, 2]) t.match(await get(next, n), { count: n, over: true })
  next.drop()
})

t.test('an ended actor leaves memory after its commit', async (t) => {
  const w = world()
  const shard = await w.owner()
  await end(shard, 1)
  t.equal(shard.instances.size, 0)
  t.equal(stored(w, '/ended/').length, 0, 'no index contains it yet')
  t.match(await get(shard, 1), { count: 1, over: true })
  const again = await shard.submit(command(runId(1), 'add', { by: 1 }, 'add-1', 'request-1'))
  t.same(reply(again), { count: 1 }, 'a repeat gets the first answer')
  shard.drop()
  const next = await w.owner()
  t.match(await get(next, 1), { count: 1, over: true })
  next.drop()
})

t.test('a checkpoint does not cover an actor that ended while it was stored', async (t) => {
  const w = world()
  const put = w.snapshots.put.bind(w.snapshots)
  const shard = await w.owner()
  let later: Promise<unknown> | undefined
  w.snapshots.put = async (partition, key, data, revision) => {
    if (key.includes('/ended/') && !later) await (later = end(shard, 2))
    return put(partition, key, data, revision)
  }
  await end(shard, 1)
  await w.clock.advance(1500)
  await later
  t.equal(record(w).v, 2, 'the first one is in the index')
  shard.drop()
  const next = await w.owner()
  for (const n of [1, 2]) t.match(await get(next, n), { count: n, over: true })
  next.drop()
})

t.test('an index that was not stored is stored in the next round', async (t) => {
  const w = world()
  const put = w.snapshots.put.bind(w.snapshots)
  const shard = await w.owner()
  let failed = 0
  w.snapshots.put = async (partition, key, data, revision) => {
    if (key.includes('/ended/') && ++failed === 1) throw new Error('the servers do not answer')
    return put(partition, key, data, revision)
  }
  await end(shard, 1)
  await w.clock.advance(1500)
  t.equal(failed, 1)
  await end(shard, 2)
  await w.clock.advance(2500)
  t.equal(record(w).ended?.[0]?.[2], 2)
  for (const n of [1, 2]) t.match(await get(shard, n), { count: n, over: true })
  shard.drop()
})

t.test('a lost segment is replaced by a replay', async (t) => {
  const w = world()
  const first = await w.owner()
  for (let n = 1; n <= 3; n++) await end(first, n)
  await w.clock.advance(2500)
  first.drop()
  for (const key of stored(w, '/ended/')) w.snapshots.values.delete(key)
  const next = await w.owner()
  for (let n = 1; n <= 3; n++) t.match(await get(next, n), { count: n, over: true })
  t.equal(record(w).v, 1)
  await w.clock.advance(2500)
  t.equal(record(w).ended?.[0]?.[2], 3, 'they are in a new index')
  t.equal(next.instances.size, 0)
  next.drop()
})

t.test('an unknown version is replayed, and its segments stay unused', async (t) => {
  const w = world()
  const first = await w.owner()
  await end(first, 1)
  await w.clock.advance(2500)
  first.drop()
  const { v: _, ...rest } = record(w)
  const found = w.snapshots.values.get(CHECKPOINT)
  w.snapshots.values.set(CHECKPOINT, {
    data: Buffer.from(JSON.stringify({ v: 3, ...rest })),
    revision: found?.revision ?? 0,
  })
  const next = await w.owner()
  t.match(await get(next, 1), { count: 1, over: true })
  t.equal(record(w).ended, undefined)
  next.drop()
})

t.test('after a trim of the journal, an actor is what its snapshot contains', async (t) => {
  const w = world()
  const shard = await w.owner()
  await shard.submit(command(runId(2), 'add', { by: 2 }))
  await w.clock.advance(2500)
  await end(shard, 1)
  await shard.submit(command(runId(2), 'end', {}, 'cut'))
  await w.clock.advance(2500)
  const cut = w.journal.messages.findIndex(({ data }) =>
    parseEnvelope(envelopeText(data)).entries.some(({ command }) => command.id === 'cut'),
  )
  w.journal.messages.splice(0, cut)
  w.journal.first += cut
  t.match(await get(shard, 2), { count: 2, over: true }, 'its last entry is there')
  await w.clock.advance(2500)
  t.match(await get(shard, 1), { count: 0 }, 'this one has no snapshot')
  t.equal(shard.open, true)
  shard.drop()
})

t.test('a server that lacks an entry is asked again; then the shard is given up', async (t) => {
  const w = world()
  const lost: string[] = []
  const shard = await w.owner(0, w.deps(), lost)
  await end(shard, 1)
  await w.clock.advance(2500)
  const at = w.journal.at.bind(w.journal)
  let attempts = 0
  w.journal.at = async (partition, sequence) =>
    ++attempts < 3 ? undefined : at(partition, sequence)
  const asked = get(shard, 1)
  await w.clock.advance(2000)
  t.match(await asked, { count: 1, over: true })
  await w.clock.advance(2500)
  w.journal.at = async () => undefined
  const answer = shard.ask(run(1), 'get', undefined)
  await w.clock.advance(25_000)
  t.same(await answer, notOwner)
  t.same(lost, ['shard loop failed'])
})

t.test('actors with the same hash are distinguished', async (t) => {
  const w = world()
  const shard = await w.owner()
  await end(shard, 1)
  await end(shard, 2)
  await w.clock.advance(2500)
  const cursors = [4000, 3000, 2000]
  const past = async (n: number, since = 0) =>
    (await new ActorHistory(shard.deps, 0).of(run(n), [5000, ...cursors], since)).map(
      ({ cursor }) => cursor,
    )
  t.same(await past(2), [4000, 5000])
  t.same(await past(1), [2000, 3000])
  t.same(await past(3), [])
  t.same(await past(1, 2000), [3000])
  t.same(await past(1, 6000), [])
  shard.drop()
})
