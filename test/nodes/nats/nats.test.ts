/**
 * The NATS implementations of the host's ports, over a real nats-server. Their guarantees also hold
 * after the server has been killed.
 */
import t from 'tap'
import type { Stored } from '../../../nodes/host/ports.ts'
import { createBlobs } from '../../../nodes/nats/blobs.ts'
import { createBus } from '../../../nodes/nats/bus.ts'
import { createJournal } from '../../../nodes/nats/journal/journal.ts'
import { createRegistry } from '../../../nodes/nats/journal/registry.ts'
import { createSnapshots } from '../../../nodes/nats/journal/snapshots.ts'
import type { Nats } from '../../../nodes/nats/server/connect.ts'
import { ensureCluster, provision } from '../../../nodes/nats/server/provision.ts'
import { StartFault } from '../../../nodes/process/fault.ts'
import { names } from '../../../protocol/subjects.ts'
import { fake } from '../../support/fake-world.ts'
import { startStore } from '../support/store.ts'

const bytes = (text: string) => new TextEncoder().encode(text)
const words = (stored: { readonly data: Uint8Array } | undefined) =>
  stored && new TextDecoder().decode(stored.data)
/**
 * Polls until the condition holds.
 * @throws {Error} after `within` milliseconds.
 */
const until = async (what: string, holds: () => boolean, within = 10_000) => {
  for (
    const started = Date.now();
    !holds();
    await new Promise((resolve) => setTimeout(resolve, 10))
  )
    if (Date.now() - started > within) throw new Error(`not within ${within} ms: ${what}`)
}

const layout = { partitions: 1, shards: 4, replicas: 1 }
const { one, two, start, kill } = await startStore('always')
await Promise.all([provision(one, layout), provision(two, layout)])

t.test('an installation keeps its layout', async (t) => {
  await provision(one, layout)
  await t.rejects(provision(one, { ...layout, shards: 8 }), {
    name: 'StartFault',
    message: /created with 4 shards.*BATON_SHARDS=4/,
  })
  await t.rejects(provision(one, { ...layout, partitions: 2 }), StartFault)
})

t.test('a folder has one server', async (t) => {
  await t.rejects(start(0), { name: 'StartFault', message: /already running/ })
})

t.test('of concurrent appends to one shard, one wins', async (t) => {
  const journal = createJournal(one)
  t.equal(await journal.last(0, 0), undefined, 'nothing yet')
  const a = await journal.append(0, 0, bytes('a'), 0, 'm1')
  t.same(a, { sequence: 1 })
  t.equal(await journal.append(0, 0, bytes('x'), 0, 'm2'), 'conflict', 'another append was first')
  t.same(
    await journal.append(0, 1, bytes('other'), 0, 'm3'),
    { sequence: 2 },
    'another shard has a subject of its own',
  )
  t.same(await journal.append(0, 0, bytes('b'), 1, 'm4'), { sequence: 3 })
  t.same(
    await journal.append(0, 0, bytes('b'), 1, 'm4'),
    { sequence: 3 },
    'a repeat finds its own message',
  )
  const last = await journal.last(0, 0)
  t.match(last, { sequence: 3, message_id: 'm4' })
  t.equal(words(last), 'b')
  t.same(await journal.position(0), { first: 1, last: 3, missing: 0 })
  const raced = await Promise.all([
    createJournal(one).append(0, 2, bytes('1'), 0, 'r1'),
    createJournal(two).append(0, 2, bytes('2'), 0, 'r2'),
  ])
  t.equal(raced.filter((outcome) => outcome === 'conflict').length, 1, 'of two at once, one wins')
  await t.rejects(
    journal.append(0, 3, new Uint8Array(9_000_000), 0, 'big'),
    'what no server accepts is a bug, not an outcome',
  )
})

t.test('a shard is read from a sequence to its end', async (t) => {
  const journal = createJournal(one)
  const read: string[] = []
  for await (const stored of journal.read(0, 0, 1))
    read.push(`${stored.sequence}${words(stored)}${stored.message_id}`)
  t.same(read, ['1am1', '3bm4'], 'only this shard, in order')
  for await (const stored of journal.read(0, 0, 4))
    t.fail(`nothing is behind the end, but ${stored.sequence}`)
  for await (const stored of journal.read(0, 0, 2)) {
    t.equal(stored.sequence, 3)
    break
  }
  t.match(await journal.at(0, 2), { sequence: 2, message_id: 'm3', data: bytes('other') })
  t.equal(await journal.at(0, 1000), undefined, 'there is no such envelope')
})

t.test(
  'many large envelopes are read without losing the connection, however slow the reader is',
  async (t) => {
    const journal = createJournal(one)
    const large = new Uint8Array(400_000)
    let expected = (await journal.last(0, 1))?.sequence ?? 0
    const before = expected
    for (let i = 0; i < 250; i++) {
      const appended = await journal.append(0, 1, large, expected, `large${i}`)
      if (typeof appended !== 'object') throw new Error(`not stored: ${appended}`)
      expected = appended.sequence
    }
    let connections = 0
    const forget = two.onReconnect(() => {
      connections++
    })
    let read = 0
    // The reader blocks after each of the first envelopes, so later messages queue up in the
    // server.
    for await (const { data } of createJournal(two).read(0, 1, before + 1)) {
      read += data.length
      if (read < 10 * large.length)
        for (const since = performance.now(); performance.now() - since < 100; );
    }
    forget()
    t.equal(read, 250 * large.length)
    t.equal(connections, 0, 'the server did not drop the reader')
  },
)

t.test('damaged data is reported and never returned', async (t) => {
  const journal = createJournal(one)
  await one.streams.publish('journal.0.3', bytes('not from here'))
  await t.rejects(journal.last(0, 3), /damaged/)
  await t.rejects(
    (async () => {
      for await (const _ of journal.read(0, 3, 1)) t.fail('it was read')
    })(),
    /damaged/,
  )
  await one.manager.streams.purge('JOURNAL_0', { filter: 'journal.0.3' })
})

t.test('snapshots may be small, large, replaced and deleted', async (t) => {
  const [mine, theirs] = [createSnapshots(one), createSnapshots(two)]
  const key = 'queue/0.mails & more > *'
  t.equal(await mine.get(0, key), undefined)
  const first = await mine.put(0, key, bytes('small'), 0)
  t.equal(new TextDecoder().decode((await theirs.get(0, key))?.data), 'small')
  t.equal((await theirs.get(0, key))?.revision, first)
  t.equal(await theirs.put(0, key, bytes('other'), 0), undefined, 'it exists')
  t.ok(((await theirs.put(0, key, bytes('later'), first)) ?? 0) > (first ?? 0))
  t.equal(await mine.put(0, key, bytes('stale'), first), undefined, 'it has changed')
  t.equal(new TextDecoder().decode((await mine.get(0, key))?.data), 'later')
  const large = new Uint8Array(600_000).map((_, i) => i % 251)
  await mine.put(0, key, large)
  t.same(
    Buffer.from((await theirs.get(0, key))?.data ?? []).equals(large),
    true,
    'a large value comes back whole',
  )
  await theirs.put(0, key, new Uint8Array(0))
  t.equal((await mine.get(0, key))?.data.length, 0, 'an empty value is a value')
  await mine.delete(0, key)
  t.equal(await theirs.get(0, key), undefined)
  t.equal((await one.manager.streams.info('KV_STATE_0')).state.messages, 0, 'nothing is left of it')
  const blobs = createBlobs(one)
  t.equal(await blobs.get('none'), undefined)
  await blobs.put('some/value', large)
  t.same(Buffer.from((await createBlobs(two).get('some/value')) ?? []).equals(large), true)
  const stream = `OBJ_${names.blobs}`
  t.equal((await one.manager.streams.info(stream)).state.consumer_count, 0, 'a read leaves nothing')
  const getMessage = async () => {
    await blobs.delete('some/value')
    return null
  }
  const reader = { ...two, manager: fake<Nats['manager']>('manager', { streams: { getMessage } }) }
  t.equal(await createBlobs(reader).get('some/value'), undefined, 'deleted during the read')
  await blobs.put('some/value', large)
  await one.manager.streams.purge(stream, { filter: `$O.${names.blobs}.C.>` })
  await t.rejects(createBlobs(two).get('some/value'), /has lost a part/)
  await blobs.delete('some/value')
})

t.test('the registry replaces only the expected revision', async (t) => {
  const [mine, theirs] = [
    createRegistry(one, 'CLUSTER', () => ensureCluster(one, 1)),
    createRegistry(two, 'CLUSTER'),
  ]
  const revision = await mine.put('shard/0.1', 'one', 0)
  t.type(revision, 'number')
  t.equal(await theirs.put('shard/0.1', 'two', 0), undefined, 'it exists')
  t.same(await theirs.get('shard/0.1'), { value: 'one', revision })
  const next = await theirs.put('shard/0.1', 'two', revision ?? 0)
  t.ok(next !== undefined && next > (revision ?? 0))
  t.equal(await mine.put('shard/0.1', 'one', revision ?? 0), undefined, 'it has changed')
  await mine.put('node/ä', 'x', 0)
  t.same(
    (await theirs.list('')).map(({ key, value }) => [key, value]),
    [
      ['node/ä', 'x'],
      ['shard/0.1', 'two'],
    ],
  )
  t.same(
    (await theirs.list('shard/')).map(({ key }) => key),
    ['shard/0.1'],
  )
  await mine.delete('shard/0.1')
  t.equal(await theirs.get('shard/0.1'), undefined)
  t.ok(await theirs.put('shard/0.1', 'again', 0), 'a deleted key can be created')
})

t.test('a request goes to local subscribers first, then to remote ones', async (t) => {
  const [mine, theirs] = [createBus(one), createBus(two)]
  t.equal(await mine.request('ask.a', {}, 500), 'no_responders')
  const stop = theirs.subscribe('ask.*', (message, subject) => ({ from: 'two', message, subject }))
  await theirs.flush()
  t.same(await mine.request('ask.a', { n: 1 }, 500), {
    answer: { from: 'two', message: { n: 1 }, subject: 'ask.a' },
  })
  const stopHere = mine.subscribe('ask.a', () => 'here')
  t.same(await mine.request('ask.a', {}, 500), { answer: 'here' })
  const stopPassing = mine.subscribe('ask.b', () => undefined)
  t.match(
    await mine.request('ask.b', {}, 500),
    { answer: { from: 'two' } },
    'a subscriber that returns undefined lets others answer',
  )
  const stopFailing = mine.subscribe('ask.c', () => {
    throw new Error('expected')
  })
  t.match(
    await mine.request('ask.c', {}, 500),
    { answer: { from: 'two' } },
    'a subscriber that throws lets others answer',
  )
  for (const end of [stop, stopHere, stopPassing, stopFailing]) end()
  await theirs.flush()
  t.equal(await mine.request('ask.b', {}, 500), 'no_responders')
  const stopSlow = theirs.subscribe('slow', () => new Promise(() => {}))
  await theirs.flush()
  t.equal(await mine.request('slow', {}, 50), 'timeout')
  stopSlow()
})

t.test('each subscriber receives a message once, and one member of each group', async (t) => {
  const [mine, theirs] = [createBus(one), createBus(two)]
  const heard: string[] = []
  const hear = (name: string) => (message: unknown) => void heard.push(`${name}${String(message)}`)
  const ends = [
    mine.subscribe('news.>', hear('a')),
    mine.subscribe('news.x', hear('b')),
    theirs.subscribe('news.*', hear('c')),
    mine.subscribe('news.x', hear('g'), 'group'),
    mine.subscribe('news.*', hear('g'), 'group'),
    theirs.subscribe('news.x', hear('g'), 'group'),
  ]
  await Promise.all([mine.flush(), theirs.flush()])
  mine.publish('news.x', 1)
  t.same(heard, [], 'never within the call')
  await until('all heard', () => heard.length >= 4)
  theirs.publish('news.x', 2)
  await until('all heard', () => heard.length >= 8)
  await Promise.all([mine.flush(), theirs.flush()])
  t.same(heard.slice().sort(), ['a1', 'a2', 'b1', 'b2', 'c1', 'c2', 'g1', 'g2'])
  for (const end of ends) end()
})

t.test('a request to a group reaches a willing member, or fails at once without one', async (t) => {
  const [mine, theirs] = [createBus(one), createBus(two)]
  const ends = [
    theirs.subscribe('offer.p.*', () => undefined, 'g'),
    theirs.subscribe('offer.p.q', (message) => (message === 'good' ? 'taken' : undefined), 'g'),
  ]
  await theirs.flush()
  for (let i = 0; i < 6; i++)
    t.same(await mine.request('offer.p.q', 'good', 1000), { answer: 'taken' })
  t.equal(await mine.request('offer.p.q', 'bad', 60_000), 'no_responders')
  for (const end of ends) end()
})

t.test('followers and appends survive a killed server', async (t) => {
  const journal = createJournal(two, { timeout: 500 })
  const seen: number[] = []
  let running = 0
  let most = 0
  const take = async (batch: readonly Stored[]) => {
    most = Math.max(most, ++running)
    await new Promise((resolve) => setImmediate(resolve))
    seen.push(...batch.map(({ sequence }) => sequence))
    running--
  }
  const stop = journal.follow(0, 1, take)
  let last = (await journal.last(0, 0))?.sequence ?? 0
  const append = async (id: string) => {
    for (;;) {
      const outcome = await journal.append(0, 0, bytes(id), last, id)
      if (typeof outcome === 'object') return void (last = outcome.sequence)
      const found = await journal.last(0, 0).catch(() => undefined)
      if (found?.message_id === id) return void (last = found.sequence)
    }
  }
  for (let i = 0; i < 700; i++) await append(`f${i}`)
  await until('the follower is there', () => seen.at(-1) === last)
  for await (const { name } of two.manager.consumers.list('JOURNAL_0'))
    await two.manager.consumers.delete('JOURNAL_0', name)
  await append('h')
  await until('the follower has a new consumer', () => seen.at(-1) === last)
  const restart = await kill()
  t.equal(await journal.append(0, 0, bytes('lost'), last, 'lost'), 'unknown')
  await restart()
  for (let i = 0; i < 20; i++) await append(`g${i}`)
  await until('the follower is there again', () => seen.at(-1) === last)
  t.same(
    seen,
    seen.slice().sort((a, b) => a - b),
    'in order',
  )
  t.equal(most, 1, 'one batch at a time')
  t.equal(new Set(seen).size, seen.length, 'nothing twice')
  const all: number[] = []
  for await (const { sequence } of journal.read(0, 0, 1)) all.push(sequence)
  t.same(
    all.filter((sequence) => !seen.includes(sequence)),
    [],
    'nothing left out',
  )
  await stop()

  const registry = createRegistry(one, 'CLUSTER', () => ensureCluster(one, 1))
  await until('the first connection is back', () => one.connected())
  t.equal(await registry.get('shard/0.1'), undefined, 'leases are forgotten')
  t.ok(await registry.put('shard/0.1', 'one', 0), 'and taken again')
  t.same(
    JSON.parse((await createRegistry(one, 'CONFIG').get('layout'))?.value ?? ''),
    layout,
    'constants are kept',
  )
})
