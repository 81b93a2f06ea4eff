/** The conversion of calls to requests, and which requests are retried. */
import t from 'tap'
import { type Client, client } from '../../client/client.ts'
import type { BatonError } from '../../client/errors.ts'
import { followRun } from '../../client/follow.ts'
import { followStreams } from '../../client/streams/follow.ts'
import { followTranscript } from '../../client/transcript.ts'
import type { ClientOptions } from '../../client/transport.ts'
import { api } from '../../protocol/api.ts'

interface Sent {
  readonly method: string
  readonly url: string
  readonly headers: Record<string, string>
  readonly body: unknown
}
type Answer =
  | { readonly status: number; readonly body?: unknown; readonly headers?: Record<string, string> }
  | 'broken'

/** Creates a client whose requests receive these responses, in order. */
function answered(
  answers: readonly Answer[],
  options: Partial<ClientOptions> = {},
): { client: Client; sent: Sent[]; waits: number[] } {
  const sent: Sent[] = []
  const waits: number[] = []
  const fake = (async (url: string, { method = '', headers, body }: RequestInit) => {
    const answer = answers[sent.length] ?? 'broken'
    sent.push({
      method,
      url,
      headers: headers as Record<string, string>,
      body: body === undefined ? undefined : JSON.parse(body as string),
    })
    if (answer === 'broken')
      throw Object.assign(new TypeError('fetch failed'), { cause: new Error('ECONNREFUSED') })
    return new Response(answer.body === undefined ? null : JSON.stringify(answer.body), {
      status: answer.status,
      ...(answer.headers && { headers: answer.headers }),
    })
  }) as typeof fetch
  const pause = async (ms: number) => void waits.push(Math.round(ms / 100) * 100)
  return {
    client: client({
      url: ['http://a.test/', 'http://b.test'],
      key: 'bat_k',
      fetch: fake,
      pause,
      ...options,
    }),
    sent,
    waits,
  }
}
const noPause = async () => {}
const refused = (status: number, code: string, details?: Record<string, unknown>) => ({
  status,
  body: { error: { code, message: code, ...(details && { details }) } },
  headers: { 'x-request-id': 'req_1' },
})

t.test('slots fill the path, queries the query string, the rest is the body', async (t) => {
  const { client, sent } = answered(
    [{ status: 200, body: { items: [] } }, { status: 200, body: {} }, { status: 204 }],
    { project: 'pay/ments' },
  )
  await client.run.list({ status: ['running', 'failed'], limit: 5 })
  await client.workflow.update({ id: 'wf 1', name: 'x' })
  t.equal(await client.run.cancel({ id: 'run_1' }), undefined)
  t.match(sent, [
    {
      method: 'GET',
      url: 'http://a.test/v1/projects/pay%2Fments/runs?status=running%2Cfailed&limit=5&include=name%2Cdescription',
      headers: { authorization: 'Bearer bat_k' },
      body: undefined,
    },
    {
      method: 'PATCH',
      url: 'http://a.test/v1/projects/pay%2Fments/workflows/wf%201?include=warnings',
      body: { name: 'x' },
    },
    {
      method: 'POST',
      url: 'http://a.test/v1/projects/pay%2Fments/runs/run_1/cancellations',
      body: undefined,
    },
  ])
  await t.rejects(
    client.run.get({} as { id: string }),
    /needs id/,
    'a call without its id never goes out',
  )
})

t.test('a parameter that a URL would resolve is refused before the request', async (t) => {
  const { client, sent } = answered([])
  for (const dots of ['.', '..']) {
    // `DELETE …/projects/shop/sessions/..` would be `DELETE …/projects/shop/`.
    await t.rejects(client.session.delete({ session_id: dots }), {
      code: 'bad_request',
      message: `session_id must not be "${dots}".`,
    })
    await t.rejects(client.run.list({ project: dots }), { code: 'bad_request' })
  }
  t.strictSame(sent, [])
})

t.test(
  'a failed request is repeated with the same key, at the next address if needed',
  async (t) => {
    const { client, sent } = answered([
      'broken',
      { status: 503, headers: { 'retry-after': '3' } },
      { status: 429 },
      { status: 202, body: { source_event_id: 'sevt_1' } },
    ])
    t.strictSame(await client.run.signal({ id: 'run_1', name: 'go' }), {
      source_event_id: 'sevt_1',
    })
    t.strictSame(
      sent.map(({ url }) => new URL(url).host),
      ['a.test', 'b.test', 'a.test', 'a.test'],
    )
    t.equal(new Set(sent.map(({ headers }) => headers['idempotency-key'])).size, 1)
  },
)

t.test('a request whose first line arrived in several parts is repeated', async (t) => {
  const { client, sent } = answered([{ status: 505 }, { status: 200, body: { items: [] } }])
  t.strictSame(await client.run.list({ external_id: 'x'.repeat(3000) }), { items: [] })
  t.equal(sent.length, 2)
})

t.test('pauses grow, and are at least as long as the service requests', async (t) => {
  const { client, waits } = answered([
    { status: 503 },
    { status: 503, headers: { 'retry-after': '30' } },
    { status: 503 },
    { status: 503 },
  ])
  await t.rejects(client.run.get({ id: 'run_1' }), { message: /503/ })
  t.equal(waits.length, 3)
  t.ok((waits[1] ?? 0) >= 30_000)
})

t.test('a request is repeated under one header key, and its body is unchanged', async (t) => {
  const input = { content: [{ type: 'text', text: 'pay' }] }
  const { client, sent } = answered([
    'broken',
    { status: 202, body: { id: 'run_1' } },
    'broken',
    { status: 202, body: {} },
  ])
  await client.workflow.run({ id: 'tour' })
  const agent_ref = { name: 'helper' }
  await client.agent.invoke({ agent_ref, session: { mode: 'new' }, input })
  t.strictSame(
    sent.map(({ body }) => body),
    [undefined, undefined, ...[1, 2].map(() => ({ agent_ref, session: { mode: 'new' }, input }))],
  )
  const keys = sent.map(({ headers }) => headers['idempotency-key'])
  t.equal(keys[0], keys[1])
  t.equal(keys[2], keys[3])
  t.not(keys[0], keys[2])
})

t.test('if the run of a start key has already ended, the client reads it', async (t) => {
  const { client, sent } = answered([
    'broken',
    refused(409, 'idempotency_key_conflict', { run_id: 'run_1', status: 'completed' }),
    { status: 200, body: { id: 'run_1', status: 'completed' } },
  ])
  const start = { id: 'loop_1', idempotency_key: 'mine' }
  t.match(await client.loop.start(start), { id: 'run_1', status: 'completed' })
  t.match(sent[2], {
    method: 'GET',
    url: 'http://b.test/v1/projects/default/runs/run_1',
    body: undefined,
  })
  const other = answered([
    { status: 202, body: { id: 'run_2' } },
    { status: 202, body: {} },
  ])
  await other.client.loop.start({ id: 'loop_1', external_id: 'mine' })
  t.strictSame(other.sent[0]?.body, { external_id: 'mine' })
  await other.client.event.publish({ event_type: 'order.paid' })
  t.strictSame(other.sent[1]?.body, { event_type: 'order.paid' }, 'the header repeats it')
})

t.test('a request that cannot be repeated or succeed is not repeated', async (t) => {
  const { client, sent } = answered([
    { status: 503 },
    refused(404, 'not_found'),
    { status: 503 },
    { status: 404 },
  ])
  await t.rejects(client.workflow.update({ id: 'w', name: 'x' }), { message: /503/ })
  const error = await client.run.get({ id: 'run_1' }).catch((caught: BatonError) => caught)
  t.match(error, { name: 'BatonError', status: 404, code: 'not_found', request_id: 'req_1' })
  t.equal(sent.length, 2)
  await client.workflow.delete({ id: 'w' })
  t.equal(sent.length, 4, 'a deletion that finds nothing the second time has happened')
})

t.test('an unreachable address is reported with the reason', async (t) => {
  const { client } = answered([], { url: 'http://a.test', tries: 2 })
  await t.rejects(client.run.get({ id: 'run_1' }), {
    code: 'unreachable',
    message: 'http://a.test does not respond: ECONNREFUSED',
  })
})

t.test('a conditional update is sent once, and replies carry the entity tag', async (t) => {
  const { client, sent } = answered([
    { status: 200, body: { id: 'a' }, headers: { etag: '"1"' } },
    refused(503, 'service_unavailable'),
  ])
  const input = { id: 'skill_1', name: 'a', instructions: 'b' }
  const read = await client.transport.exchange(api['skill.get'], { id: 'skill_1' })
  t.strictSame(read, { reply: { id: 'a' }, etag: '"1"' })
  const update = client.transport.exchange(api['skill.replace'], input, { if_match: read.etag })
  await t.rejects(
    update,
    { code: 'service_unavailable' },
    'a repeat of a successful update would be refused',
  )
  t.equal(sent.length, 2)
  t.match(sent[1], { method: 'PUT', headers: { 'if-match': '"1"' } })
})

t.test('a response that is not from the service is reported, and not repeated', async (t) => {
  const html = async () =>
    new Response('<!DOCTYPE html>', { headers: { 'content-type': 'text/html; charset=utf-8' } })
  const wrong = client({ url: 'http://a.test', key: 'k', fetch: html, pause: noPause })
  const expected = { code: 'unexpected_response', status: 200, message: /a\.test.* text\/html/ }
  await t.rejects(wrong.run.get({ id: 'run_1' }), expected)
  await t.rejects(followRun(wrong, 'run_1').next(), expected)
  await t.rejects(followStreams(wrong, [{ id: 'a', topic: 'runs' }]).next(), expected)
  const transcript = { url: 'http://a.test', session_id: 's', fetch: html, pause: noPause }
  await t.rejects(followTranscript(transcript).next(), expected)
  let attempts = 0
  const cut = async () =>
    new Response(attempts++ === 0 ? '{"id":' : '{"id":"run_1"}', {
      headers: { 'content-type': 'application/json' },
    })
  const lossy = client({ url: 'http://a.test', key: 'k', fetch: cut, pause: noPause })
  t.match(await lossy.run.get({ id: 'run_1' }), { id: 'run_1' }, 'incomplete JSON is repeated')
})

t.test('an error in another format is reported by its status', async (t) => {
  for (const body of [{ error: 'no' }, { error: { message: 'no' } }, { message: 'no' }, []]) {
    const { client: baton } = answered([{ status: 403, body }])
    await t.rejects(baton.run.get({ id: 'run_1' }), {
      status: 403,
      code: 'internal',
      message: /403/,
    })
  }
})

t.test('a key or header with an invalid character is refused without its value', async (t) => {
  const { client: baton, sent } = answered([], { key: 'bat_secret\nx' })
  const expected = { code: 'unauthorized', message: /^(?!.*secret)The key has a character/ }
  await t.rejects(baton.run.get({ id: 'run_1' }), expected)
  await t.rejects(followRun(baton, 'run_1').next(), expected)
  await t.rejects(followStreams(baton, [{ id: 'a', topic: 'runs' }]).next(), expected)
  const { client: other } = answered([])
  await t.rejects(
    other.transport.exchange(api['skill.get'], { id: 's' }, { if_match: 'sécret → x' }),
    { code: 'bad_request', message: /^(?!.*cret →)The header if-match/ },
  )
  t.equal(sent.length, 0)
})

t.test('a client that was answered once can try longer', async (t) => {
  const unavailable: string[] = []
  const options = {
    tries: 2,
    reconnectTries: 5,
    onUnavailable: ({ message }: BatonError) => void unavailable.push(message),
  }
  const ok = { status: 200, body: { id: 'run_1' } }
  const { client: baton, sent } = answered(
    ['broken', ok, 'broken', 'broken', 'broken', 'broken', ok, ...Array(5).fill('broken'), ok],
    options,
  )
  const get = () => baton.run.get({ id: 'run_1' })
  await get()
  t.strictSame(unavailable, [])
  await get()
  t.equal(sent.length, 7)
  t.strictSame(unavailable.length, 1, 'reported once per interruption')
  await t.rejects(get(), { code: 'unreachable' })
  t.strictSame([sent.length, unavailable.length], [12, 2])
  const first = answered([], options)
  await t.rejects(first.client.run.get({ id: 'run_1' }), { code: 'unreachable' })
  t.strictSame([first.sent.length, unavailable.length], [2, 2], 'as long as nothing has answered')
})

t.test('additions that an older service does not know are not requested again', async (t) => {
  const unknown = (field: string) =>
    refused(400, 'bad_request', { fields: [{ field, message: 'is unknown' }] })
  const ok = { status: 200, body: { items: [] } }
  for (const field of ['include', 'include[1]']) {
    const { client: baton, sent } = answered([unknown(field), ok])
    t.strictSame(await baton.run.list({ limit: 5 }), { items: [] })
    t.strictSame(
      sent.map(({ url }) => new URL(url).search),
      ['?limit=5&include=name%2Cdescription', '?limit=5'],
    )
  }
  const { client: baton, sent } = answered([unknown('limit'), unknown('include')])
  await t.rejects(baton.run.list({ limit: 5 }), { code: 'bad_request' })
  await t.rejects(baton.run.list({ include: ['name'] }), { code: 'bad_request' })
  t.equal(sent.length, 2, 'another refusal, or that of a requested addition, is final')
})
