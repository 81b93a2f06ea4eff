/**
 * Kills executors while they convert a document: once during the conversion itself, and once just
 * before the text is stored. A third executor then completes the conversion, and exactly one text
 * is stored. The file store is a real S3 server behind a proxy that receives every request of the
 * executors.
 */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { docx, paragraph } from '../../nodes/executor/documents/office.ts'
import { startS3Server } from '../../nodes/s3/server.ts'
import { portsFor, processes } from '../support/processes.ts'
import { hasty } from '../support/sockets.ts'
import { artifactClient, type Open } from './client.ts'

t.setTimeout(300_000)
const folder = mkdtempSync(join(tmpdir(), 'baton-s3-'))
const store = await startS3Server(folder)

/** A request to the store. `pass` lets it continue, and resolves when it has been answered. */
interface Seen {
  readonly method: string | undefined
  readonly text: boolean
  pass(): Promise<void>
}
const seen: Seen[] = []
const waiting: { readonly when: (one: Seen) => boolean; readonly done: (one: Seen) => void }[] = []
/**
 * Resolves with the next request for which `when` returns true. That request is held until `pass`
 * is called.
 */
const next = (when: (one: Seen) => boolean): Promise<Seen> =>
  new Promise((done) => void waiting.push({ when, done }))
const forward = (incoming: IncomingMessage, answer: ServerResponse): void => {
  const { method, url, headers } = incoming
  const on = request(`${store.bucket.endpoint}${url}`, { method, headers }, (got) => {
    answer.writeHead(got.statusCode ?? 500, got.headers)
    got.pipe(answer)
  })
  on.on('error', () => answer.destroy())
  incoming.on('error', () => on.destroy())
  incoming.pipe(on)
}
const proxy = createServer((incoming, answer) => {
  const one: Seen = {
    method: incoming.method,
    text: /\.md(\?|$)/.test(incoming.url ?? ''),
    pass: () =>
      new Promise((done) => {
        answer.on('close', done)
        forward(incoming, answer)
      }),
  }
  if ((incoming.url ?? '').startsWith('/baton/artifacts/')) seen.push(one)
  const at = waiting.findIndex(({ when }) => when(one))
  if (at < 0) void one.pass()
  else waiting.splice(at, 1)[0]?.done(one)
})
await new Promise<void>((done) => void proxy.listen(0, '127.0.0.1', done))
const { port } = proxy.address() as AddressInfo

const it = await processes({
  ...hasty,
  BATON_SHARDS: '2',
  BATON_ARTIFACTS: `s3://baton?region=us-east-1&endpoint=http://127.0.0.1:${port}`,
  AWS_ACCESS_KEY_ID: 'S3RVER',
  AWS_SECRET_ACCESS_KEY: 'S3RVER',
})
t.teardown(async () => {
  await it.stop()
  proxy.closeAllConnections()
  proxy.close()
  await store.stop()
  rmSync(folder, { recursive: true, force: true })
})

t.test('a conversion survives the executors that are killed during it', async (t) => {
  const [gateway = 0] = await portsFor(1)
  await it.node('steady', 'gateway,shards,views', gateway)
  const client = artifactClient(`http://127.0.0.1:${gateway}`, it.key)
  let executor = await it.node('executor-1', 'executor')

  const bytesRead = next(({ method, text }) => method === 'GET' && !text)
  // With thousands of paragraphs, the conversion is still running when the executor is killed.
  const bytes = docx(paragraph('Hello').repeat(5_000))
  const upload = () =>
    client.put('a.docx', bytes, {
      headers: { 'idempotency-key': 'a' },
      fields: {
        mime: 'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
        convert: 'true',
      },
    })
  // Nodes that have just started may still refuse requests.
  let uploaded = await upload()
  while (uploaded.status >= 500) uploaded = await upload()
  const { status, body } = uploaded
  t.match([status, body['conversion']], [201, { state: 'converting' }])
  const path = `/v1/projects/default/artifacts/${String(body['id'])}`
  const artifact = async (): Promise<Open> => (await client.get(path)).body

  const textStored = next(({ method, text }) => method === 'PUT' && text)
  await (await bytesRead).pass()
  await executor.kill()
  const texts = seen.filter(({ method, text }) => method === 'PUT' && text)
  t.equal(texts.length, 0, 'it was killed before the text was stored')
  t.same((await artifact())['conversion'], { state: 'converting' })
  t.equal((await client.get(path, { method: 'DELETE' })).status, 409)

  executor = await it.node('executor-2', 'executor')
  await textStored
  await executor.kill()
  t.same((await artifact())['conversion'], { state: 'converting' })

  await it.node('executor-3', 'executor')
  let done = await artifact()
  for (; (done['conversion'] as Open)['state'] === 'converting'; done = await artifact())
    await new Promise((resolve) => setTimeout(resolve, 100))
  t.same(done['conversion'], { state: 'ready' })
  const reads = seen.filter(({ method, text }) => method === 'GET' && !text)
  t.equal(reads.length, 3, 'one attempt of each executor')
  const stored = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.md._S3rver_object'),
  )
  t.equal(stored.length, 1, 'one text is stored')

  t.equal((await client.get(path, { method: 'DELETE' })).status, 204)
  t.notMatch(
    readdirSync(folder, { recursive: true, encoding: 'utf8' }).join('\n'),
    /artifacts\/.*_S3rver_object$/m,
    'nothing is left',
  )
})
