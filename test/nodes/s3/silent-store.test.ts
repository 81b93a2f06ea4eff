/** The S3 file store against a store that stops answering. Its time limits are short here. */
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { openS3 } from '../../../nodes/s3/files.ts'
import { openFiles } from '../../../nodes/s3/open-files.ts'
import { TIMEOUTS_MS } from '../../../nodes/s3/sending.ts'
import { startS3Server } from './server.ts'

const MIB = 2 ** 20
const folder = mkdtempSync(join(tmpdir(), 'baton-s3-'))
const server = await startS3Server(folder)

/** Which requests the store does not answer. */
let ignored = (_: IncomingMessage): boolean => false
/** Called for each request that is not answered. */
let arrived = (): void => {}
/** Forwards requests to the S3 server, except those that are ignored. */
const proxy = createServer((req, res) => {
  if (ignored(req)) {
    req.resume()
    arrived()
    return
  }
  const { method, url, headers } = req
  const onward = request(`${server.bucket.endpoint}${url}`, { method, headers }, (answer) => {
    res.writeHead(answer.statusCode ?? 500, answer.headers)
    answer.pipe(res)
  })
  onward.on('error', () => res.destroy())
  req.pipe(onward)
})
await new Promise<void>((listening) => proxy.listen(0, '127.0.0.1', listening))
const bucket = {
  ...server.bucket,
  endpoint: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
}
const credentials = { accessKeyId: 'S3RVER', secretAccessKey: 'S3RVER' }
const open = (silence: number) => openS3(bucket, { credentials }, { silence, completion: silence })
/** Its limit leaves enough time for the requests that are answered. */
const files = open(1000)
t.afterEach(() => {
  ignored = () => false
  arrived = () => {}
})
t.teardown(async () => {
  files.close()
  proxy.closeAllConnections()
  proxy.close()
  await server.stop()
  rmSync(folder, { recursive: true, force: true })
})

async function* body(size: number): AsyncGenerator<Uint8Array, void> {
  for (let left = size; left > 0; left -= 65_536) yield Buffer.alloc(Math.min(left, 65_536))
}
const SILENT = { name: 'SilentStore' }

t.test('every operation on a store that does not answer fails', async (t) => {
  const hurried = open(50)
  t.teardown(() => hurried.close())
  ignored = () => true
  await t.rejects(hurried.check(), SILENT)
  await t.rejects(hurried.get('kept'), SILENT)
  await t.rejects(hurried.read('kept', 0, 10), SILENT)
  await t.rejects(hurried.put('other', Buffer.alloc(10)), SILENT)
  await t.rejects(hurried.delete('kept'), SILENT)
  await t.rejects(hurried.list('', undefined, 10), SILENT)
  await t.rejects(hurried.write('small', body(1000)), SILENT)
  await t.rejects(hurried.write('large', body(12 * MIB)), SILENT)
})

t.test('a store that falls silent within an upload ends it', async (t) => {
  ignored = ({ url }) => /partNumber=2/.test(url ?? '')
  await t.rejects(files.write('large', body(12 * MIB)), SILENT)
  ignored = ({ method, url }) => method === 'POST' && /uploadId=/.test(url ?? '')
  await t.rejects(files.write('large', body(12 * MIB)), SILENT)
})

t.test('uploads that wait for buffers are ended too; later ones succeed', async (t) => {
  ignored = () => true
  const uploads = Array.from({ length: 30 }, (_, i) => files.write(`many/${i}`, body(1000)))
  const ended = await Promise.allSettled(uploads)
  t.ok(ended.every(({ status }) => status === 'rejected'))
  ignored = () => false
  const sizes = await Promise.all(
    Array.from({ length: 10 }, (_, i) => files.write(`after/${i}`, body(1000))),
  )
  t.ok(sizes.every(({ size_bytes }) => size_bytes === 1000))
})

t.test('an upload whose client has gone ends without waiting for the store', async (t) => {
  const patient = openS3(bucket, { credentials }, TIMEOUTS_MS)
  t.teardown(() => patient.close())
  const gone = new AbortController()
  ignored = ({ method }) => method === 'PUT'
  const asked = new Promise<void>((resolve) => {
    arrived = resolve
  })
  const writing = patient.write('gone', body(12 * MIB), gone.signal)
  const failed = t.rejects(writing, { message: 'the client has gone' })
  await asked
  gone.abort(new Error('the client has gone'))
  await failed
})

t.test('a start with a store that does not answer fails with the reason', async (t) => {
  ignored = () => true
  const stops: (() => Promise<void>)[] = []
  t.teardown(() => stops[0]?.())
  const store = open(50)
  const started = openFiles(
    bucket,
    store,
    (stop) => stops.push(stop),
    async () => store,
  )
  await t.rejects(started, {
    name: 'StartFault',
    message: /The bucket baton cannot be reached at .* did not answer within 0.05 s/,
  })
})

t.test('closing the store ends what is in progress', async (t) => {
  const closing = openS3(bucket, { credentials }, TIMEOUTS_MS)
  ignored = () => true
  const asked = new Promise<void>((resolve) => {
    arrived = resolve
  })
  const failed = t.rejects(closing.get('kept'), { message: 'the store of files is closed' })
  await asked
  closing.close()
  await failed
})
