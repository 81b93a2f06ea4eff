/**
 * A resolver call: the allowed addresses, the data that it may send, and the labels of its
 * failures.
 */
import { createServer } from 'node:net'
import t from 'tap'
import type { ResolverQuestion } from '../../../gateway/ports.ts'
import { createGuard } from '../../../nodes/outbound/guard.ts'
import {
  createPost,
  type Failed,
  type Received,
  type Sending,
} from '../../../nodes/outbound/post.ts'
import { callResolver } from '../../../nodes/resolver/call.ts'
import { resolverDefaults } from '../../../protocol/resolver/schema.ts'

const question = (more: Partial<ResolverQuestion['configuration']> = {}): ResolverQuestion => ({
  configuration: {
    settings: {
      ...resolverDefaults,
      source: 'client_resolver',
      endpoint_url: 'https://resolver.example/',
    },
    updated_at: '2026-01-01T00:00:00.000Z',
    ...more,
  },
  project: { id: 'prj_1' },
  agent_id: 'agt_1',
  selector: 'agent/helper',
})
const parts = {
  unlock: (text: string) => (text === 'foreign' ? undefined : Buffer.from(text)),
  brand: 'Acme',
  organization: 'org_1',
  signal: new AbortController().signal,
}
const answering = (answer: Omit<Received, 'content_type'> | Failed) => {
  const sent: Sending[] = []
  const post = async (sending: Sending) => {
    sent.push(sending)
    return 'failed' in answer ? answer : { content_type: 'application/json', ...answer }
  }
  return { sent, post }
}

t.test('a name that resolves to a private address later gains nothing', async (t) => {
  let connections = 0
  const server = createServer((socket) => {
    connections++
    socket.destroy()
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  t.teardown(() => server.close())
  const address = server.address()
  const port = typeof address === 'object' && address ? address.port : 0
  let addresses = ['127.0.0.1']
  const post = createPost(createGuard(['127.0.0.1/32'], async () => addresses))
  const asked = question({
    settings: { ...question().configuration.settings, endpoint_url: `https://r.example:${port}/` },
  })
  const call = () => callResolver({ ...parts, post }, asked, 'turn', undefined, 'c1')
  t.match(await call(), { label: 'network', outcome: { kind: 'unreachable' } })
  t.equal(connections, 1)
  for (const other of ['127.0.0.2', '10.0.0.1', '169.254.169.254', '::1', '::ffff:10.0.0.1']) {
    addresses = ['127.0.0.1', other]
    const { label, outcome } = await call()
    t.equal(label, 'refused', other)
    t.notMatch(JSON.stringify(outcome), /\d+\.\d+|r\.example/, 'the reason names no address')
  }
  t.equal(connections, 1)
})

t.test('the token is sent as bearer, and only over https', async (t) => {
  const { sent, post } = answering({ status: 500, body: Buffer.from('') })
  const token = { sealed: 'the token', digest: 'd' }
  await callResolver({ ...parts, post }, question({ token }), 'turn', 'd1', 'c1')
  t.match(sent[0], {
    schemes: ['https:'],
    timeout: 2000,
    most: 1_048_576,
    headers: {
      Authorization: 'Bearer the token',
      'X-Acme-Delivery-Id': 'c1',
      'X-Request-ID': 'c1',
      'User-Agent': 'acme-resolver/1',
    },
  })
  await callResolver({ ...parts, post }, question(), 'turn', undefined, 'c2')
  t.notOk('Authorization' in (sent[1]?.headers ?? {}))
})

t.test('what another installation has sealed is not sent', async (t) => {
  const { sent, post } = answering({ status: 200, body: Buffer.from('{}') })
  const foreign = { sealed: 'foreign', digest: 'd' }
  const { endpoint_url: _, ...settings } = question().configuration.settings
  for (const configuration of [
    { token: foreign },
    {
      settings: { ...settings, endpoint_url: 'https://resolver.example/?key=***' },
      url_parts: [foreign],
    },
  ])
    t.match(
      await callResolver({ ...parts, post }, question(configuration), 'turn', undefined, 'c1'),
      { label: 'sealed', outcome: { kind: 'unreachable' } },
    )
  t.equal(sent.length, 0)
})

t.test('each failure has a label and a reason', async (t) => {
  const labelOf = async (answer: Omit<Received, 'content_type'> | Failed) => {
    const { post } = answering(answer)
    const found = await callResolver({ ...parts, post }, question(), 'turn', undefined, 'c1')
    t.notMatch(JSON.stringify(found.outcome), '192.0.2.1')
    return `${found.label} ${found.outcome.kind}`
  }
  const failed = (kind: Failed['failed']): Failed => ({ failed: kind, message: 'at 192.0.2.1' })
  for (const kind of ['refused', 'too_large', 'timeout', 'network', 'stopped'] as const)
    t.equal(await labelOf(failed(kind)), `${kind} unreachable`)
  const ok = JSON.stringify({ protocol_version: 1, resolved: {} })
  for (const [status, body, expected] of [
    [204, '', 'invalid invalid'],
    [200, ok, 'missing missing'],
    [299, ok, 'missing missing'],
    [301, ok, 'status unreachable'],
    [404, ok, 'status unreachable'],
    [199, ok, 'status unreachable'],
    [200, '[]', 'invalid invalid'],
    [200, '{', 'invalid invalid'],
  ] as const)
    t.equal(await labelOf({ status, body: Buffer.from(body) }), expected)
  t.equal(await labelOf({ status: 200, body: Buffer.from([0xff, 0xfe]) }), 'invalid invalid')
})
