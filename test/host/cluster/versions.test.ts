/**
 * Data from other releases. An envelope of a newer version is refused, and an envelope is written
 * only in a format that all nodes read. Snapshots and checkpoints of an unknown version are ignored
 * and recreated.
 */
import t from 'tap'
import {
  decodeEnvelope,
  type EnvelopeFormat,
  encodeEnvelope,
  envelopeJson,
  envelopeText,
  envelopeWriter,
  formatOf,
  NewerRelease,
} from '../../../nodes/host/memory/codec.ts'
import type { Entry } from '../../../protocol/entry.ts'
import { MemoryBlobs } from '../../support/memory.ts'
import { command, reply, runId, ToyWorld } from '../support/toy.ts'

const raised = (data: Uint8Array): Uint8Array =>
  new TextEncoder().encode(new TextDecoder().decode(data).replace(/"v":[13]/, '"v":9'))

t.test('an envelope of a newer version is refused by its version number', async (t) => {
  const world = new ToyWorld()
  const shard = await world.owner()
  await shard.submit(command(runId(1), 'add', { by: 5 }))
  await shard.stop()
  const last = world.journal.messages.at(-1)
  if (last) last.data = raised(last.data)
  await t.rejects(world.owner(), {
    name: NewerRelease.name,
    message: /version 9.*newer release.*run that release/s,
  })
})
t.test('an envelope that begins with an unknown byte is refused', async (t) => {
  await t.rejects(decodeEnvelope(Uint8Array.of(9, 1, 2, 3), new MemoryBlobs()), {
    name: NewerRelease.name,
    message: /version 9/,
  })
})

const COMPRESSED = 2
const formats: readonly EnvelopeFormat[] = [1, 2, 3]
/**
 * Commits 80 concurrent commands, each with a text of 4 × `length` characters. Returns the last
 * envelope.
 */
async function busy(world: ToyWorld, format: EnvelopeFormat, length: number): Promise<Uint8Array> {
  const shard = await world.owner(0, { ...world.deps(), format: () => format })
  await Promise.all(
    Array.from({ length: 80 }, (_, n) =>
      shard.submit(command(runId(n), 'add', { by: n, text: 'ä𝄞\ud800"'.repeat(length) }, `k${n}`)),
    ),
  )
  shard.drop()
  return world.journal.messages.at(-1)?.data ?? new Uint8Array()
}
t.test('a busy shard writes the newest format that all nodes read, and all are read', async (t) => {
  // With the last length, the envelope is so large that another thread compresses it.
  for (const length of [10, 1000]) {
    const sizes: number[] = []
    for (const format of formats) {
      const world = new ToyWorld()
      const data = await busy(world, format, length)
      t.equal(data[0] === COMPRESSED, format > 1, `format ${format}`)
      t.ok(envelopeText(data).startsWith(`{"v":${format === 3 ? 3 : 1},`))
      sizes[format] = data.length
      const next = await world.owner()
      for (let n = 0; n < 80; n++)
        t.same(
          reply(await next.submit(command(runId(n), 'add', { by: n }, `k${n}`))),
          { count: n },
          'the repeated command gets the first reply',
        )
      await next.stop()
    }
    const [, plain = 0, ...compressed] = sizes
    for (const size of compressed) t.ok(size < plain * 0.2, `${size} of ${plain} bytes`)
  }
})
t.test('the format is the newest one that every node reads and that is useful', async (t) => {
  t.equal(
    formatOf(3, false, () => true),
    3,
  )
  t.equal(
    formatOf(3, true, () => true),
    2,
    'announcements contain the JSON of entries',
  )
  t.equal(
    formatOf(3, false, (format) => format < 3),
    2,
  )
  t.equal(
    formatOf(3, false, () => false),
    1,
  )
  t.equal(
    formatOf(1, false, () => true),
    1,
  )
})
t.test('all formats return the same envelope, with values in the object store', async (t) => {
  const entry = (size: number): Entry => ({
    project: 'prj_1',
    kind: 'run',
    id: runId(1),
    command: { id: 'c', name: 'add' },
    origin: { at: 5, principal: { type: 'system', id: 'test' } },
    events: [{ type: 'counted', text: 'é\ud800\u2028'.repeat(size) } as Entry['events'][number]],
    reply: { __proto__: null, n: -0, big: 2 ** 60 },
    prev: -3,
  })
  for (const sizes of [[1], [5000], [200_000, 10], [30_000, 30_000]]) {
    const entries = sizes.map(entry)
    const decoded = []
    for (const format of formats) {
      const blobs = new MemoryBlobs()
      const writer = envelopeWriter(format)
      const written = { entries, sizes: entries.map((one) => writer.add(one)), writer }
      const head = { epoch: 7, prev: 12 }
      const json = await envelopeJson(head, written, 'x', blobs)
      decoded.push(await decodeEnvelope(await encodeEnvelope(json, format), blobs))
      t.strictSame(await decodeEnvelope(json, blobs), decoded.at(-1), 'the JSON is decoded, too')
    }
    for (const one of decoded) t.strictSame(one, decoded[0])
    t.strictSame(decoded[0]?.entries, JSON.parse(JSON.stringify(entries)))
  }
})

t.test(
  'snapshots and checkpoints of an unknown version are ignored: the journal is replayed',
  async (t) => {
    const world = new ToyWorld()
    const shard = await world.owner()
    for (let n = 1; n <= 3; n++)
      await shard.submit(command(runId(n), 'add', { by: n }, `same-${n}`))
    await shard.stop()
    t.ok(world.snapshots.values.size > 3, 'there are snapshots')
    for (const [key, { data, revision }] of world.snapshots.values)
      world.snapshots.values.set(key, { data: raised(data), revision })
    for (let round = 0; round < 2; round++) {
      const next = await world.owner()
      for (let n = 1; n <= 3; n++)
        t.same(
          reply(await next.submit(command(runId(n), 'add', { by: n }, `same-${n}`))),
          { count: n - 0 },
          `round ${round}: what was answered is answered again`,
        )
      await next.stop()
    }
    const texts = [...world.snapshots.values.values()].map(({ data }) =>
      new TextDecoder().decode(data),
    )
    t.notOk(
      texts.some((text) => text.includes('"v":9')),
      'they are stored again in the form of this release',
    )
  },
)
