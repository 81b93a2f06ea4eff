/**
 * Files of the object store as streams, over a real nats-server: any size and any range, failed
 * writes that leave no chunks behind, bounded memory, and files that are damaged or deleted during
 * a read.
 */
import { createHash, randomBytes } from 'node:crypto'
import t from 'tap'
import { createBlobs } from '../../../nodes/nats/blobs.ts'
import { provision } from '../../../nodes/nats/server/provision.ts'
import { names } from '../../../protocol/subjects.ts'
import { startStore } from '../support/store.ts'

const CHUNK_BYTES = 262_144
const { one, two } = await startStore('always')
await provision(one, { partitions: 1, shards: 4, replicas: 1 })
const [mine, theirs] = [createBlobs(one), createBlobs(two)]
const stream = `OBJ_${names.blobs}`
const stored = async () => (await one.manager.streams.info(stream)).state.messages

async function* chunksOf(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}
async function collect(chunks: AsyncIterable<Uint8Array> | undefined): Promise<Buffer> {
  const read: Uint8Array[] = []
  // A chunk is valid only until the next one is requested, so it is copied.
  for await (const chunk of chunks ?? []) read.push(Buffer.from(chunk))
  return Buffer.concat(read)
}
const factsOf = (bytes: Uint8Array) => ({
  size_bytes: bytes.length,
  sha256: createHash('sha256').update(bytes).digest('hex'),
})

t.test('a file of any size is stored in chunks and read whole or in part', async (t) => {
  for (const size of [0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 20 * CHUNK_BYTES + 7]) {
    const bytes = randomBytes(size)
    const name = `files/${size}`
    t.same(await mine.write(name, chunksOf(bytes, 60_001)), factsOf(bytes))
    t.ok((await collect(await theirs.read(name, 0, size))).equals(bytes), `${size} bytes`)
    t.ok(Buffer.from((await theirs.get(name)) ?? []).equals(bytes), 'the client library reads it')
    for (const [start, end] of [
      [0, 1],
      [size - 1, size],
      [CHUNK_BYTES - 1, CHUNK_BYTES + 1],
      [17 * CHUNK_BYTES + 3, 18 * CHUNK_BYTES + 4],
    ] as const)
      if (start >= 0 && end <= size)
        t.ok(
          (await collect(await theirs.read(name, start, end))).equals(bytes.subarray(start, end)),
          `${start} to ${end} of ${size}`,
        )
    await mine.delete(name)
    t.equal(await mine.read(name, 0, 1), undefined)
  }
  t.equal(await stored(), 0, 'nothing is left')
})

t.test('files that are written at the same time do not mix', async (t) => {
  const files = Array.from({ length: 8 }, () => randomBytes(5 * CHUNK_BYTES + 11))
  await Promise.all(files.map((bytes, n) => mine.write(`beside/${n}`, chunksOf(bytes, 100_000))))
  for (const [n, bytes] of files.entries()) {
    t.ok((await collect(await mine.read(`beside/${n}`, 0, bytes.length))).equals(bytes))
    t.ok(
      (await collect(await mine.read(`beside/${n}`, 3 * CHUNK_BYTES, 4 * CHUNK_BYTES))).equals(
        bytes.subarray(3 * CHUNK_BYTES, 4 * CHUNK_BYTES),
      ),
    )
    await mine.delete(`beside/${n}`)
  }
})

t.test('a source that fails leaves nothing', async (t) => {
  const fails = async function* () {
    yield* chunksOf(randomBytes(6 * CHUNK_BYTES), 90_000)
    throw new Error('cut off')
  }
  await t.rejects(mine.write('files/cut', fails()), { message: 'cut off' })
  t.equal(await mine.read('files/cut', 0, 1), undefined)
  t.equal(await stored(), 0)
})

t.test('the source is read only as fast as the chunks are stored', async (t) => {
  let given = 0
  let most = 0
  const counted = async function* () {
    for (let n = 0; n < 64; n++) {
      given++
      most = Math.max(most, given - (await stored()))
      yield randomBytes(CHUNK_BYTES)
    }
  }
  await mine.write('files/paced', counted())
  t.ok(most <= 6, `${most} chunks are in memory at most`)
  let taken = 0
  for await (const chunk of (await mine.read('files/paced', 0, 64 * CHUNK_BYTES)) ?? []) {
    taken += chunk.length
    if (taken > 2 * CHUNK_BYTES) break
  }
  t.equal(taken, 3 * CHUNK_BYTES, 'a reader may stop at any time')
  await mine.delete('files/paced')
})

t.test('a read whose consumer is deleted continues', async (t) => {
  const bytes = randomBytes(20 * CHUNK_BYTES + 5)
  await mine.write('files/continued', chunksOf(bytes, CHUNK_BYTES))
  const read: Buffer[] = []
  for await (const chunk of (await theirs.read('files/continued', 7, bytes.length)) ?? []) {
    read.push(Buffer.from(chunk))
    if (read.length % 6 === 0)
      for await (const { name } of one.manager.consumers.list(stream))
        await one.manager.consumers.delete(stream, name)
  }
  t.ok(Buffer.concat(read).equals(bytes.subarray(7)), 'no byte is lost or repeated')
  await mine.delete('files/continued')
})

t.test('a file that is deleted or damaged is never read to its end', async (t) => {
  const bytes = randomBytes(12 * CHUNK_BYTES)
  await mine.write('files/gone', chunksOf(bytes, CHUNK_BYTES))
  const reading = (await theirs.read('files/gone', 0, bytes.length)) as AsyncIterable<Uint8Array>
  await t.rejects(
    async () => {
      let read = 0
      for await (const chunk of reading) {
        if (read === 0) await mine.delete('files/gone')
        read += chunk.length
      }
    },
    { message: /deleted while it was read/ },
  )
  await mine.write('files/damaged', chunksOf(bytes, CHUNK_BYTES))
  const { subjects = {} } = (
    await one.manager.streams.info(stream, { subjects_filter: `$O.${names.blobs}.C.*` })
  ).state
  const subject = String(Object.keys(subjects)[0])
  const last = await one.manager.streams.getMessage(stream, { last_by_subj: subject })
  await one.manager.streams.deleteMessage(stream, Number(last?.seq))
  await one.streams.publish(subject, randomBytes(CHUNK_BYTES))
  let read = 0
  await t.rejects(
    async () => {
      for await (const chunk of (await theirs.read('files/damaged', 0, bytes.length)) ?? [])
        read += chunk.length
    },
    { message: /does not match its digest/ },
  )
  t.equal(read, 11 * CHUNK_BYTES, 'the last chunk is withheld')
  await mine.delete('files/damaged')
})
