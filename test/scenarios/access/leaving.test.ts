/**
 * A gateway that is about to stop still serves requests, but accepts no streams and no worker
 * sockets, so that clients immediately connect to another gateway.
 */
import http from 'node:http'
import t from 'tap'
import { api } from '../../../protocol/api.ts'
import type { Row } from '../../../protocol/contract.ts'
import { type CallOptions, service } from '../../support/service.ts'
import { sleeping } from '../support/given.ts'

const s = await service()
t.teardown(() => s.stop())
const agent_id = (await s.ok('agent.create', { name: 'echo', system_prompt: '' }))['id']
const run = (await s.ok('run.start', { spec: sleeping() }))['id']
const session = (await s.ok('session.create', { agent_id }))['id']
const channel = (await s.ok('channel.create', { name: 'leaving' }))['id']
const events: CallOptions = { headers: { accept: 'text/event-stream' } }
/** Returns the path parameters that a request to an operation needs. */
const inputOf = (name: string): Record<string, unknown> => ({
  ...(name.startsWith('run.') && name !== 'run.feed' && { id: run }),
  ...(name.startsWith('channel.') && { id: channel }),
  ...(name.startsWith('session.') && { session_id: session }),
  ...(name.startsWith('agent.') && { id: agent_id, agent_id }),
  ...(name === 'stream.follow' && {
    subscriptions: [{ id: 'a', project: 'default', topic: 'runs' }],
  }),
})
const rows = Object.entries(api as Readonly<Record<string, Row>>)

t.test('every stream is refused with Retry-After, other requests are not', async (t) => {
  for (const node of s.nodes) node.leave()
  const streams = rows.filter(
    ([, { verb, shape }]) => verb === 'stream' && shape.stream !== 'socket',
  )
  t.ok(streams.length >= 7)
  for (const [name] of streams) {
    const { status, headers, body } = await s.call(name as never, inputOf(name) as never, events)
    t.match(
      { status, body, after: headers.get('retry-after') },
      { status: 503, body: { error: { code: 'service_unavailable' } }, after: /^\d+$/ },
      name,
    )
  }
  const { status, headers } = await s.call(
    'session.start_turn',
    { session_id: session, content: [{ type: 'text', text: 'hello' }] } as never,
    events,
  )
  t.match({ status, after: headers.get('retry-after') }, { status: 503, after: /^\d+$/ })
  t.match(await s.ok('run.events', { id: run }), { items: [] }, 'a JSON page is not a stream')
  t.match(await s.ok('run.get', { id: run }), { id: run })
})

t.test('worker sockets are refused with Retry-After', async (t) => {
  const { hostname, port } = new URL(s.url)
  const answer = await new Promise<http.IncomingMessage>((resolve, reject) => {
    const headers = {
      authorization: `Bearer ${s.key}`,
      connection: 'Upgrade',
      upgrade: 'websocket',
      'sec-websocket-version': '13',
      'sec-websocket-key': Buffer.alloc(16).toString('base64'),
    }
    http
      .get({ hostname, port, path: '/v1/projects/default/workers/socket', headers }, resolve)
      .on('upgrade', () => reject(new Error('the socket was opened')))
      .on('error', reject)
  })
  answer.resume()
  t.match([answer.statusCode, answer.headers['retry-after']], [503, /^\d+$/])
})
