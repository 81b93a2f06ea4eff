/**
 * Kills gateways and the owner of all shards while files are attached to sessions and deleted.
 * Uploads are repeated under their idempotency keys until they are acknowledged. Afterwards, every
 * acknowledged file that was not deleted is in its session and in the list of artifacts, with its
 * bytes. No key has two files, and the quota is the sum of the sizes of the files.
 */
import { randomBytes } from 'node:crypto'
import t from 'tap'
import { artifactClient, type Got, type Open } from '../artifacts/client.ts'
import { listOf } from '../support/given.ts'
import { portsFor, processes } from '../support/processes.ts'
import { hasty } from '../support/sockets.ts'

/** Milliseconds between two uploads of a client. */
const PAUSE_MS = 100

t.setTimeout(400_000)
const it = await processes({ ...hasty, BATON_SHARDS: '2' })
t.teardown(() => it.stop())
const ports = await portsFor(3)
let owner = await it.node('shards-0', 'shards')
await it.node('steady', 'gateway,views', ports[0])
const urls = ports.map((port) => `http://127.0.0.1:${port}`)
const clients = urls.map((url) => artifactClient(url, it.key))
const client = clients[0] as (typeof clients)[0]
const pause = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms))
/** Sends a request until a gateway answers with neither a server error nor 429. */
async function answered(send: () => Promise<{ status: number; body: Open }>): Promise<Open> {
  for (;;) {
    const got = await send().catch(() => undefined)
    if (got && got.status < 500 && got.status !== 429) return { ...got.body, status: got.status }
    await pause(200)
  }
}
const post = (url: string, path: string, body: Open, headers: Record<string, string> = {}) =>
  fetch(`${url}/v1/projects/default${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${it.key}`, 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  }).then(async (answer) => ({ status: answer.status, body: (await answer.json()) as Open }))
const get = (path: string): Promise<Open> =>
  answered(() => client.get(`/v1/projects/default${path}`) as Promise<Got>)

t.test('files are attached and deleted while gateways and the owner are killed', async (t) => {
  const gateways = await Promise.all(
    [1, 2].map((n) => it.node(`gateway-${n}`, 'gateway', ports[n])),
  )
  const steady = urls[0] ?? ''
  const agent = await answered(() =>
    post(steady, '/agents', { name: 'reader', system_prompt: 'Be brief.' }),
  )
  const sessions = await Promise.all(
    Array.from({ length: 6 }, async (_, n) =>
      String(
        (
          await answered(() =>
            post(steady, '/sessions', { agent_id: agent['id'], session_key: `k${n}` }),
          )
        )['id'],
      ),
    ),
  )
  const files = new Map<string, { readonly session: string; readonly bytes: Buffer }>()
  let count = 0
  let stopped = false
  const uploading = sessions.map(async (session, n) => {
    for (let turn = 0; !stopped; turn++, await pause(PAUSE_MS)) {
      const bytes = Buffer.concat([
        Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'),
        randomBytes(60_000 + n),
      ])
      const body = { name: `${turn}.png`, file: bytes.toString('base64') }
      let attempt = n
      // A repeat goes to another gateway, because this one may have been killed.
      const { artifact } = await answered(() =>
        post(urls[attempt++ % urls.length] ?? '', `/sessions/${session}/attachments`, body, {
          'idempotency-key': `${n} ${turn}`,
        }),
      )
      const { id } = artifact as { id: string }
      count++
      if (turn % 3 !== 2) files.set(id, { session, bytes })
      else {
        const path = turn % 2 === 0 ? `/artifacts/${id}` : `/sessions/${session}/attachments/${id}`
        const { status } = await answered(() =>
          client.get(`/v1/projects/default${path}`, { method: 'DELETE' }),
        )
        // If the answer to a deletion was lost, the repeated deletion finds no artifact.
        t.ok(status === 204 || status === 404)
      }
    }
  })
  const some = async (more: number) => {
    const from = count
    for (const since = Date.now(); count < from + more; await pause(50))
      if (Date.now() - since > 90_000) throw new Error('nothing is acknowledged any more')
  }
  await some(8)
  await gateways[0]?.kill()
  await some(8)
  const next = await it.node('shards-1', 'shards')
  await owner.kill()
  owner = next
  await some(8)
  await gateways[1]?.kill()
  await some(8)
  stopped = true
  await Promise.all(uploading)

  const sum = [...files.values()].reduce((all, { bytes }) => all + bytes.length, 0)
  let quota: Open = {}
  // The effects of a deletion may occur after the answer.
  for (const since = Date.now(); Date.now() - since < 30_000; await pause(500)) {
    quota = await get('/artifacts/quota')
    if (quota['used_bytes'] === sum && quota['pending_count'] === 0) break
  }
  t.match(quota, { used_bytes: sum, artifact_count: files.size, pending_count: 0 })
  const listed: unknown[] = []
  for (let cursor: unknown; ; ) {
    const page = await get(
      `/artifacts?limit=200${cursor === undefined ? '' : `&cursor=${String(cursor)}`}`,
    )
    listed.push(...listOf(page as never).map(({ id }) => id))
    cursor = page['next_cursor']
    if (cursor === undefined) break
  }
  t.same(listed.sort(), [...files.keys()].sort(), 'exactly the acknowledged files are listed')
  for (const session of sessions) {
    const page = await get(`/sessions/${session}/attachments?limit=200`)
    t.same(
      listOf(page as never)
        .map(({ id }) => id)
        .sort(),
      [...files].flatMap(([id, file]) => (file.session === session ? [id] : [])).sort(),
    )
  }
  for (const [id, { bytes }] of files) t.ok((await client.content(id)).bytes.equals(bytes))
})
