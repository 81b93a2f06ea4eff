/** A complete service that stores its files in S3, with a real S3 server. */
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  CopyObjectCommand,
  DeleteObjectCommand,
  ListObjectsV2Command,
  S3Client,
} from '@aws-sdk/client-s3'
import t from 'tap'
import { startS3Server } from '../../nodes/s3/server.ts'
import { silentLog } from '../../support/memory.ts'
import { service } from '../../support/service.ts'
import { until } from '../support/given.ts'
import { artifactClient, codeOf, type Open, sha256 } from './client.ts'
import { connectTo, storedChunks } from './store.ts'

t.setTimeout(120_000)
const MIB = 1_048_576
const folder = mkdtempSync(join(tmpdir(), 'baton-s3-'))
const s3 = await startS3Server(folder)
Object.assign(process.env, { AWS_ACCESS_KEY_ID: 'S3RVER', AWS_SECRET_ACCESS_KEY: 'S3RVER' })
const { bucket, endpoint, region } = s3.bucket
const inBucket = (prefix: string) =>
  `s3://${bucket}/${prefix}?region=${region}&endpoint=${endpoint}`
const warnings: Open[] = []
const s = await service(
  { BATON_ARTIFACTS: inBucket('team'), BATON_ARTIFACT_QUOTA: '20MiB' },
  { log: { ...silentLog, warn: (fields) => void warnings.push(fields) } },
)
const nats = await connectTo(s.server.access)
const lister = new S3Client({ region, endpoint, forcePathStyle: true })
t.teardown(async () => {
  await nats.close()
  await s.stop()
  lister.destroy()
  await s3.stop()
  rmSync(folder, { recursive: true, force: true })
})
const stored = async (): Promise<string[]> => {
  const { Contents = [] } = await lister.send(new ListObjectsV2Command({ Bucket: bucket }))
  return Contents.map(({ Key = '' }) => Key).filter((key) => !key.endsWith('/installation'))
}
const quota = async (): Promise<Open> => {
  const { generated_at: _, ...rest } = await s.ok('artifact.quota')
  return rest
}
const bytes = randomBytes(11 * MIB + 17)
let id = ''

t.test('an upload is stored in the bucket, and read back whole and in ranges', async (t) => {
  const { put, content } = artifactClient(s.url, s.key)
  const { status, body } = await put('big.bin', bytes, {
    chunked: true,
    headers: { 'idempotency-key': 'big' },
  })
  t.equal(status, 201)
  t.match(body, { size_bytes: bytes.length, sha256: sha256(bytes) })
  id = String(body['id'])
  t.match(await stored(), [new RegExp(`^team/artifacts/prj_\\w+/${id}/\\w+$`)])
  t.equal(await storedChunks(nats), 1, 'NATS has only the record of the bucket')
  const whole = await content(id)
  t.equal(whole.status, 200)
  t.ok(whole.bytes.equals(bytes))
  for (const [range, start, end] of [
    ['bytes=0-0', 0, 1],
    ['bytes=5242879-5242881', 5_242_879, 5_242_882],
    ['bytes=-5', bytes.length - 5, bytes.length],
  ] as const) {
    const part = await content(id, { headers: { range } })
    t.equal(part.status, 206)
    t.ok(part.bytes.equals(bytes.subarray(start, end)), range)
  }
  const empty = await put('empty', Buffer.alloc(0))
  t.equal((await content(empty.body['id'])).bytes.length, 0)
  t.equal((await s.call('artifact.delete', { artifact_id: empty.body['id'] })).status, 204)
})

t.test('a refused upload leaves nothing in the bucket', async (t) => {
  const client = artifactClient(s.url, s.key)
  const [files, used] = [await stored(), await quota()]
  const over = await client.put('over', Buffer.alloc(10 * MIB), { chunked: true })
  t.match([over.status, codeOf(over)], [409, 'artifact_quota_exceeded'])
  const wrong = await client.put('wrong', Buffer.alloc(1000), { fields: { size_bytes: 1001 } })
  t.equal(wrong.status, 400)
  const socket = await client.begin(8 * MIB, 6 * MIB)
  await until(quota, ({ pending_count }) => pending_count === 1)
  socket.destroy()
  await until(quota, ({ pending_count }) => pending_count === 0)
  t.same(await quota(), used)
  t.same(await stored(), files)
})

t.test('a restarted service has the same files, and signed URLs stay valid', async (t) => {
  const signed = await s.ok('artifact.signed_url', { artifact_id: id })
  await s.restart()
  const { put, content, get } = artifactClient(s.url, s.key)
  t.ok((await content(id)).bytes.equals(bytes))
  const { pathname } = new URL(String(signed['url']))
  const read = await get(pathname, { key: null, headers: { range: 'bytes=7-10' } })
  t.equal(read.status, 206)
  t.ok(read.bytes.equals(bytes.subarray(7, 11)))
  const again = await put('big.bin', Buffer.from('x'), { headers: { 'idempotency-key': 'big' } })
  t.match([again.status, again.body['id']], [200, id])
})

t.test('a deletion removes the object', async (t) => {
  const { put, content } = artifactClient(s.url, s.key)
  const other = (await put('lost', Buffer.from('x'))).body['id']
  const [lost = ''] = (await stored()).filter((key) => key.includes(String(other)))
  await lister.send(new DeleteObjectCommand({ Bucket: bucket, Key: lost }))
  const missing = await content(other)
  t.match([missing.status, codeOf(missing)], [503, 'artifact_storage_unavailable'])
  t.match(
    warnings.filter(({ event }) => event === 'file_missing'),
    [{ artifact_id: other, reason: /BATON_ARTIFACTS/ }],
  )
  const head = await content(other, { method: 'HEAD' })
  t.match([head.status, head.bytes.length], [200, 0], 'only the record is read')
  t.equal((await s.call('artifact.delete', { artifact_id: other })).status, 204)
  t.equal((await s.call('artifact.delete', { artifact_id: id })).status, 204)
  t.same(await stored(), [])
  t.match(await quota(), { used_bytes: 0, artifact_count: 0, pending_count: 0 })
  t.equal((await content(id)).status, 404)
})

t.test('files from before the bucket was set are read from NATS, and deleted there', async (t) => {
  const earlier = await service()
  t.teardown(() => earlier.stop())
  const store = await connectTo(earlier.server.access)
  t.teardown(() => store.close())
  const before = artifactClient(earlier.url, earlier.key)
  const [first, second] = [randomBytes(300_000), randomBytes(2000)]
  const kept = String((await before.put('kept', first)).body['id'])
  await earlier.restart(undefined, { BATON_ARTIFACTS: inBucket('later') })
  const after = artifactClient(earlier.url, earlier.key)
  t.ok((await after.content(kept)).bytes.equals(first))
  const part = await after.content(kept, { headers: { range: 'bytes=10-19' } })
  t.ok(part.bytes.equals(first.subarray(10, 20)))
  const added = String((await after.put('added', second)).body['id'])
  t.ok((await after.content(added)).bytes.equals(second))
  t.match(await stored(), [new RegExp(`^later/artifacts/prj_\\w+/${added}/`)])
  t.ok((await storedChunks(store)) > 0)
  t.equal((await earlier.call('artifact.delete', { artifact_id: kept })).status, 204)
  t.equal(await storedChunks(store), 1, 'the record of the bucket remains')
})

t.test('a start with another bucket is refused until it has the files', async (t) => {
  const moved = await service({ BATON_ARTIFACTS: inBucket('old') })
  t.teardown(() => moved.stop())
  const put = await artifactClient(moved.url, moved.key).put('kept', Buffer.from('x'))
  const kept = String(put.body['id'])
  const other = { BATON_ARTIFACTS: inBucket('new') }
  const named = new RegExp(`stored in s3://${bucket}/old/`)
  await t.rejects(moved.restart(undefined, other), { name: 'StartFault', message: named })
  const { Contents = [] } = await lister.send(
    new ListObjectsV2Command({ Bucket: bucket, Prefix: 'old/' }),
  )
  for (const { Key: key = '' } of Contents)
    await lister.send(
      new CopyObjectCommand({
        Bucket: bucket,
        Key: key.replace('old/', 'new/'),
        CopySource: `${bucket}/${key}`,
      }),
    )
  await moved.restart(undefined, other)
  const content = await artifactClient(moved.url, moved.key).content(kept)
  t.equal(content.bytes.toString(), 'x')
})
