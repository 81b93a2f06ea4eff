/** The S3 file store, against a real S3 server. */
import { createHash, randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ListObjectsV2Command, S3Client } from '@aws-sdk/client-s3'
import t from 'tap'
import { openS3 } from '../../../nodes/s3/files.ts'
import { startS3Server } from './server.ts'

const folder = mkdtempSync(join(tmpdir(), 'baton-s3-'))
const server = await startS3Server(folder)
const credentials = { accessKeyId: 'S3RVER', secretAccessKey: 'S3RVER' }
const files = openS3({ ...server.bucket, prefix: 'team/' }, { credentials })
const client = new S3Client({
  region: server.bucket.region,
  endpoint: server.bucket.endpoint,
  forcePathStyle: true,
  credentials,
})
t.teardown(async () => {
  files.close()
  client.destroy()
  await server.stop()
  rmSync(folder, { recursive: true, force: true })
})

async function* chunked(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array, void> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}
async function whole(body: AsyncIterable<Uint8Array> | undefined): Promise<Buffer | undefined> {
  if (!body) return undefined
  const chunks: Uint8Array[] = []
  for await (const chunk of body) chunks.push(chunk)
  return Buffer.concat(chunks)
}
const keys = async (): Promise<string[]> => {
  const { Contents = [] } = await client.send(
    new ListObjectsV2Command({ Bucket: server.bucket.bucket }),
  )
  return Contents.map(({ Key = '' }) => Key)
}

t.test('files of all sizes are stored and read back, also in ranges', async (t) => {
  await files.check()
  for (const size of [0, 1, 70_000, 5 * 2 ** 20, 12 * 2 ** 20 + 17]) {
    const bytes = randomBytes(size)
    const name = `artifacts/size-${size}`
    t.strictSame(await files.write(name, chunked(bytes, 65_536)), {
      size_bytes: size,
      sha256: createHash('sha256').update(bytes).digest('hex'),
    })
    t.ok(bytes.equals((await whole(await files.read(name, 0, size))) as Buffer), `${size} bytes`)
    if (size < 100) continue
    // If only the first byte is requested, this server sends the whole object. The store must still
    // return only one byte.
    t.ok(bytes.subarray(0, 1).equals((await whole(await files.read(name, 0, 1))) as Buffer))
    await t.rejects(async () => whole(await files.read(name, size - 1, size + 1)))
    const part = await whole(await files.read(name, 60_000, 66_000))
    t.ok(bytes.subarray(60_000, 66_000).equals(part as Buffer))
    t.equal((await whole(await files.read(name, 7, 7)))?.length, 0)
    await files.delete(name)
    await files.delete(name)
    t.equal(await files.read(name, 0, size), undefined)
    t.equal(await files.get(name), undefined)
  }
  t.strictSame(await keys(), ['team/artifacts/size-0', 'team/artifacts/size-1'])
})

t.test('a failed write leaves neither an object nor parts', async (t) => {
  const before = await keys()
  for (const good of [1, 3 * 2 ** 20, 11 * 2 ** 20]) {
    const cut = async function* () {
      yield* chunked(randomBytes(good), 65_536)
      throw new Error('the client is gone')
    }
    await t.rejects(files.write('artifacts/cut', cut()), { message: 'the client is gone' })
  }
  t.strictSame(await keys(), before)
})

t.test('more concurrent uploads than buffers all end', async (t) => {
  const sizes = Array.from({ length: 20 }, (_, index) => index * 1000)
  const stored = await Promise.all(
    sizes.map((size) => files.write(`many/${size}`, chunked(randomBytes(size), 300))),
  )
  t.strictSame(
    stored.map(({ size_bytes }) => size_bytes),
    sizes,
  )
})

t.test('files are listed page by page, in a fixed order', async (t) => {
  const names = ['list/a/1', 'list/a/2', 'list/b', 'list/c'] as const
  for (const name of names) await files.put(name, Buffer.from('x'))
  const listed: string[] = []
  // This S3 server cannot list a page if more files follow, so the page is large enough for all
  // files.
  const whole = await files.list('list/', undefined, names.length)
  for (const { name, at } of whole.files) {
    listed.push(name)
    t.ok(at > 0 && at < Date.now() + 2000)
  }
  t.strictSame(listed, names)
  t.equal(whole.next, 'list/c', 'a full page may be followed by another one')
  const rest = await files.list('list/', 'list/a/2', names.length)
  t.strictSame(
    rest.files.map(({ name }) => name),
    ['list/b', 'list/c'],
  )
  t.equal(rest.next, undefined)
  t.strictSame(await files.list('list/', whole.next, names.length), { files: [] })
  t.strictSame(await files.list('none/', undefined, 3), { files: [] })
})

t.test('small files are stored whole; an unknown bucket is reported', async (t) => {
  await files.put('note', Buffer.from('hello'))
  t.equal((await files.get('note'))?.toString(), 'hello')
  const other = openS3({ ...server.bucket, bucket: 'missing', prefix: '' }, { credentials })
  await t.rejects(other.check())
  other.close()
})
