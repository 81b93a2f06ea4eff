/**
 * Kills gateways and the owner of all shards while artifacts are uploaded. Every acknowledged
 * artifact is readable with its bytes, nothing is listed without bytes, and once the unfinished
 * uploads have been given up, the quota is the sum of the listed artifacts.
 */
import { randomBytes } from 'node:crypto'
import t from 'tap'
import { listOf } from '../support/given.ts'
import { portsFor, processes } from '../support/processes.ts'
import { hasty } from '../support/sockets.ts'
import { artifactClient, type Open } from './client.ts'

t.setTimeout(400_000)
const it = await processes({ ...hasty, BATON_SHARDS: '2' })
t.teardown(() => it.stop())
const ports = await portsFor(3)
const [steady = 0] = ports
let owner = await it.node('shards-0', 'shards')
await it.node('steady', 'gateway,views', steady)
const clients = ports.map((port) => artifactClient(`http://127.0.0.1:${port}`, it.key))
const client = clients[0] as (typeof clients)[0]
const read = async (path: string): Promise<Open> => {
  for (;;) {
    const got = await client.get(`/v1/projects/default/artifacts${path}`).catch(() => undefined)
    if (got && got.status < 500) return got.body
    await new Promise((resolve) => setTimeout(resolve, 200))
  }
}

t.test('uploads while gateways and the owner are killed', async (t) => {
  const gateways = await Promise.all(
    [1, 2].map((n) => it.node(`gateway-${n}`, 'gateway', ports[n])),
  )
  const acknowledged = new Map<string, Buffer>()
  let stopped = false
  const uploading = Array.from({ length: 6 }, async (_, n) => {
    const mine = clients[n % 3] as (typeof clients)[0]
    for (let turn = 0; !stopped; turn++) {
      const bytes = randomBytes(300_000 + n)
      const headers = { 'idempotency-key': `${n} ${turn}` }
      const got = await mine.put(`file ${n}`, bytes, { headers }).catch(() => undefined)
      if (got?.status === 201) acknowledged.set(String(got.body['id']), bytes)
      else await new Promise((resolve) => setTimeout(resolve, 100))
    }
  })
  const some = async (count: number) => {
    const from = acknowledged.size
    for (const since = Date.now(); acknowledged.size < from + count; ) {
      if (Date.now() - since > 60_000) throw new Error('nothing is acknowledged any more')
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }
  await some(6)
  await gateways[0]?.kill()
  await some(6)
  const next = await it.node('shards-1', 'shards')
  await owner.kill()
  owner = next
  await some(6)
  await gateways[1]?.kill()
  await some(3)
  stopped = true
  await Promise.all(uploading)

  // An upload that was cut off is given up at its deadline.
  for (let pending: unknown = 1; pending !== 0; ) {
    pending = (await read('/quota'))['pending_count']
    await new Promise((resolve) => setTimeout(resolve, 500))
  }
  const listed: Open[] = []
  for (let cursor: unknown = ''; cursor !== undefined; ) {
    const page: Open = await read(`?limit=200${cursor === '' ? '' : `&cursor=${String(cursor)}`}`)
    listed.push(...listOf(page))
    cursor = page['next_cursor']
  }
  for (const [id, bytes] of acknowledged) {
    t.ok(
      listed.some((one) => one['id'] === id),
      'an acknowledged artifact is listed',
    )
    const content = await client.content(id)
    t.ok(content.bytes.equals(bytes), 'with its bytes')
  }
  for (const { id, size_bytes } of listed)
    t.equal((await client.content(id)).bytes.length, size_bytes, 'no record is without bytes')
  t.match(await read('/quota'), {
    used_bytes: listed.reduce((sum, { size_bytes }) => sum + Number(size_bytes), 0),
    artifact_count: listed.length,
  })
})
