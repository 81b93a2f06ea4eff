/** Refused upgrades of WebSockets. */
import http from 'node:http'
import t from 'tap'
import { gateway } from '../support/edge-world.ts'

const it = await gateway()
t.teardown(() => it.server.stop())
const upgrading = {
  connection: 'Upgrade',
  upgrade: 'websocket',
  'sec-websocket-version': '13',
  'sec-websocket-key': Buffer.alloc(16).toString('base64'),
}
const paths = {
  worker: '/v1/projects/default/workers/socket',
  terminal: '/v1/projects/default/environments/env_01AAAAAAAAAAAAAAAAAAAAAA0C/terminal',
}
const get = (path: string, headers: Record<string, string>, port = it.port) =>
  new Promise<{
    status: number | undefined
    id: string
    retry?: string | undefined
    scheme?: string | undefined
  }>((resolve, reject) => {
    http
      .get({ host: '127.0.0.1', port, path, agent: false, headers }, (answer) => {
        answer.resume()
        const { 'retry-after': retry, 'www-authenticate': scheme } = answer.headers
        resolve({
          status: answer.statusCode,
          id: String(answer.headers['x-request-id']),
          ...(retry !== undefined && { retry }),
          ...(scheme !== undefined && { scheme }),
        })
      })
      .on('error', reject)
  })

t.test('the answer contains the id of the request, which is in the log', async (t) => {
  const requests = [
    { headers: upgrading, status: 401 },
    { headers: {}, status: 426 },
    { headers: { ...upgrading, connection: 'close' }, status: 400 },
  ]
  for (const [name, path] of Object.entries(paths)) {
    for (const { headers, status } of requests) {
      const what = `${name} ${status}`
      const first = await get(path, headers)
      const second = await get(path, headers)
      t.equal(first.status, status, what)
      t.match(first.id, /^req_\w+$/, what)
      t.not(second.id, first.id, what)
      t.match(it.logs.at(-1), { event: 'upgrade_refused', status, request_id: second.id }, what)
      const given = await get(path, { ...headers, 'x-request-id': 'trace-7' })
      const scheme = status === 401 && { scheme: 'Bearer' }
      t.strictSame(given, { status, id: 'trace-7', ...scheme }, what)
      const invalid = await get(path, { ...headers, 'x-request-id': 'two words' })
      t.match(invalid.id, /^req_\w+$/, what)
    }
  }
})

t.test('refused upgrades are limited by address, also those of terminals', async (t) => {
  const limited = await gateway({ rate: { key: 4, organization: 0, window_seconds: 60 } })
  t.teardown(() => limited.server.stop())
  const ask = (path: string, authorization?: string) =>
    get(path, { ...upgrading, ...(authorization && { authorization }) }, limited.port)
  const statuses: (number | undefined)[] = []
  for (const authorization of ['Bearer bat_wrong', undefined, 'Bearer bat_wrong'])
    for (const path of Object.values(paths)) statuses.push((await ask(path, authorization)).status)
  t.strictSame(statuses, [401, 401, 401, 401, 429, 429])
  const refused = await ask(paths.terminal)
  t.ok(Number(refused.retry) > 50, 'at the end of the window')
  const root = `Bearer ${limited.root}`
  t.equal((await ask(paths.terminal, root)).status, 404, 'a valid key is not limited by address')
})
