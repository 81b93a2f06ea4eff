/**
 * Kills gateways, the owner of all shards and executors while artifacts are uploaded and a project
 * is deleted. Invariants, once the unfinished uploads have been abandoned: the records are exactly
 * the acknowledged artifacts, each with its bytes; the object store contains the files of these
 * records and nothing else. The quota is the sum of their sizes.
 */
import { randomBytes } from 'node:crypto'
import t from 'tap'
import { sweepChunks } from '../../../nodes/nats/blobs.ts'
import { listOf } from '../support/given.ts'
import { portsFor, processes } from '../support/processes.ts'
import { hasty } from '../support/sockets.ts'
import { artifactClient, type Open, sha256 } from './client.ts'
import { artifactOf, chunksOf, connectTo, storedChunks, storedFiles } from './store.ts'

const UPLOADS = 260
const CONCURRENT = 16
/** Returns the size of upload `n` in bytes. Some uploads exceed the 262,144 bytes of one chunk. */
const sizeOf = (n: number): number => 1 + ((n * 7919) % (n % 4 === 0 ? 300_000 : 60_000))
/** Number of artifacts in the project that is deleted. */
const DOOMED = 30

t.setTimeout(240_000)
const it = await processes({ ...hasty, BATON_SHARDS: '2', BATON_ARTIFACT_UPLOAD: '5s' })
t.teardown(() => it.stop())
const ports = await portsFor(2)
const [steady = 0, shaky = 0] = ports
const owner = await it.node('shards-0', 'shards')
const [, executor] = await Promise.all([
  it.node('steady', 'gateway,views,executor', steady),
  it.node('executor', 'executor'),
])
const gateway = await it.node('gateway-1', 'gateway', shaky)
const nats = await connectTo(it.access)
t.teardown(() => nats.close())
const clients = ports.map((port) => artifactClient(`http://127.0.0.1:${port}`, it.key))
const client = clients[0] as (typeof clients)[0]

/**
 * Polls until the value satisfies the condition, for a minute at most.
 * @param every milliseconds between two polls.
 */
async function until<T>(
  look: () => Promise<T>,
  holds: (seen: T) => boolean,
  what: string,
  every = 250,
) {
  for (const since = Date.now(); ; await new Promise((resolve) => setTimeout(resolve, every))) {
    const found = await look()
    if (holds(found)) return found
    if (Date.now() - since > 60_000)
      throw new Error(`${what}: not within a minute; last seen: ${JSON.stringify(found)}`)
  }
}
/** Repeats a request until a gateway and an owner answer it. */
const read = async (path: string, method = 'GET'): Promise<Open> => {
  const got = await until(
    () => client.get(path, { method }).catch(() => undefined),
    (got) => got !== undefined && got.status < 500,
    path,
  )
  return got?.body ?? {}
}
interface Put {
  readonly id: string
  readonly sha: string
  readonly size: number
}
/** Repeats an upload under its key, at the gateways in turn, until it is acknowledged. */
async function put(key: string, bytes: Buffer, project = 'default'): Promise<Put> {
  for (let turn = 0; ; turn++) {
    const at = clients[(Number.parseInt(key, 36) + turn) % clients.length] as typeof client
    const headers = { 'idempotency-key': key }
    const got = await at.put(`file ${key}`, bytes, { headers, project }).catch(() => undefined)
    if (got && got.status < 300)
      return { id: String(got.body['id']), sha: sha256(bytes), size: bytes.length }
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

t.test('processes are killed while artifacts are uploaded', async (t) => {
  const answer = await fetch(`${client.url}/v1/projects`, {
    method: 'POST',
    headers: { authorization: `Bearer ${it.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'doomed' }),
  })
  t.equal(answer.status, 201)
  const doomed = String(((await answer.json()) as Open)['id'])
  const acknowledged = new Map<string, Put>()
  let [begun, removed] = [0, 0]
  const uploading = Array.from({ length: CONCURRENT }, async () => {
    while (begun < UPLOADS) {
      const n = begun++
      const one = await put(n.toString(36), randomBytes(sizeOf(n)))
      acknowledged.set(one.id, one)
    }
  })
  const filling = Array.from({ length: DOOMED }, async (_, n) => {
    await put(`d${n}`, randomBytes(1000), doomed)
    removed++
  })
  const some = (count: number) =>
    until(
      async () => acknowledged.size,
      (size) => size >= count,
      `${count} acknowledged uploads`,
      10,
    )
  await some(30)
  await gateway.kill()
  const again = await it.node('gateway-2', 'gateway', shaky)
  await some(60)
  await it.node('shards-1', 'shards')
  await owner.kill()
  await Promise.all(filling)
  t.equal(removed, DOOMED)
  await read(`/v1/projects/${doomed}`, 'DELETE')
  await executor.kill()
  await some(150)
  await again.kill()
  await Promise.all(uploading)

  // Interrupted uploads stay pending until their deadline.
  const quota = await until(
    () => read('/v1/projects/default/artifacts/quota'),
    ({ pending_count, artifact_count }) =>
      pending_count === 0 && Number(artifact_count) <= acknowledged.size,
    'the end of all uploads',
  )
  const listed: Open[] = []
  for (let cursor: unknown = ''; cursor !== undefined; ) {
    const after = cursor === '' ? '' : `&cursor=${String(cursor)}`
    const page = await read(`/v1/projects/default/artifacts?limit=200${after}`)
    listed.push(...listOf(page))
    cursor = page['next_cursor']
  }
  const ids = [...acknowledged.keys()].sort()
  t.equal(ids.length, UPLOADS, `${ids.length} acknowledged uploads`)
  t.same(listed.map(({ id }) => id).sort(), ids, 'the records are the acknowledged artifacts')
  t.match(quota, {
    used_bytes: [...acknowledged.values()].reduce((sum, { size }) => sum + size, 0),
    artifact_count: ids.length,
  })
  const unread = [...acknowledged.values()]
  const damaged: string[] = []
  const reading = Array.from({ length: 8 }, async () => {
    for (let one = unread.pop(); one; one = unread.pop())
      if (sha256((await client.content(one.id)).bytes) !== one.sha) damaged.push(one.id)
  })
  await Promise.all(reading)
  t.same(damaged, [], 'every acknowledged artifact has its bytes')
  const files = await until(
    () => storedFiles(nats),
    (all) => all.length <= ids.length,
    'the removal of all other files',
  )
  t.same(files.map(artifactOf).sort(), ids, 'no file is without a record')
  await sweepChunks(nats, Date.now() + 60_000, 0)
  t.equal(
    await storedChunks(nats),
    [...acknowledged.values()].reduce((sum, { size }) => sum + chunksOf(size), 0),
    'no chunk is without a file',
  )
})
