/**
 * A request that is repeated with the same Idempotency-Key header takes effect once and gets the
 * first response again.
 */
import t from 'tap'
import { client } from '../../../client/client.ts'
import { service } from '../../support/service.ts'
import { ended, instant, until, waiting } from '../support/given.ts'

const s = await service()
t.teardown(() => s.stop())

let keys = 0
const repeatable = (name: Parameters<typeof s.call>[0], input: Record<string, unknown>) => {
  const headers = { 'idempotency-key': `repeat-${++keys}` }
  return (more: Record<string, unknown> = {}) => s.call(name, { ...input, ...more }, { headers })
}
const agent = await s.ok('agent.create', {
  name: 'echo',
  system_prompt: 'script:\n  - say: "done"\n',
})
const loop = await s.ok('loop.create', { name: 'nightly', steps: instant().steps })
await s.ok('workflow.create', { name: 'Daily', spec: instant() })

for (const [name, input] of [
  ['run.start', { spec: instant() }],
  ['workflow.run', { id: 'daily' }],
  ['loop.start', { id: loop['id'] }],
] as const)
  t.test(`${name}: repeats return one run, also after it has ended`, async (t) => {
    const send = repeatable(name, input)
    const [one, two] = await Promise.all([send(), send()])
    t.equal(one.status, 202)
    t.equal(two.body['id'], one.body['id'])
    t.match(await ended(s, one.body['id']), { status: 'completed' })
    const late = await send()
    t.equal(late.status, 202)
    t.equal(late.body['id'], one.body['id'])
    t.match(
      await send({ queue: 'elsewhere', event: {} }),
      { status: /^4/ },
      'a different request with the same key',
    )
  })

t.test('a repeated start returns its run after the workflow is deleted', async (t) => {
  const made = await s.ok('workflow.create', { name: 'Brief', spec: instant() })
  const send = repeatable('workflow.run', { id: made['id'] })
  const one = await send()
  await s.call('workflow.delete', { id: made['id'] })
  t.match(await send(), { status: 202, body: { id: one.body['id'] } })
})

t.test('a repeated update creates one version and gets the first answer', async (t) => {
  const made = await s.ok('workflow.create', { name: 'Updated', spec: instant() })
  const send = repeatable('workflow.update', { id: made['id'], spec: instant() })
  const one = await send({ expected_version: 1 })
  t.match(one, { status: 200, body: { latest_version: 2 } })
  const two = await send({ expected_version: 1 })
  t.strictSame([two.status, two.body], [one.status, one.body])
  t.match(await send({ expected_version: 2 }), {
    status: 409,
    body: { error: { code: 'idempotency_key_conflict' } },
  })
  t.match(await s.ok('workflow.get', { id: made['id'] }), { latest_version: 2 })
})

t.test('a repeated conditional update gets the first answer', async (t) => {
  const url = `${s.url}/v1/projects/default/loops/${String(loop['id'])}`
  const authorization = `Bearer ${s.key}`
  const tag = (await fetch(url, { headers: { authorization } })).headers.get('etag') ?? ''
  const send = (key: string) =>
    fetch(url, {
      method: 'PATCH',
      headers: { authorization, 'if-match': tag, 'idempotency-key': key },
      body: JSON.stringify({ description: 'Every night' }),
    })
  const [one, two] = [await send('update-1'), await send('update-1')]
  t.strictSame([one.status, two.status], [200, 200])
  t.strictSame(await two.json(), await one.json())
  t.equal((await send('update-2')).status, 412, 'a new request is compared with the record')
})

t.test('a signal is stored once, also after its run has ended', async (t) => {
  const run = await s.ok('run.start', { spec: waiting() })
  const send = repeatable('run.signal', { id: run['id'], name: 'go' })
  const one = await send()
  t.match(await ended(s, run['id']), { status: 'completed' })
  t.strictSame((await send()).body, one.body)
})

t.test('a repeated message to an agent starts one turn, in a new session too', async (t) => {
  for (const session of [{ mode: 'new' }, { session_key: 'kept' }]) {
    const send = repeatable('agent.invoke', {
      agent_ref: { id: agent['id'] },
      session,
      input: { content: [{ type: 'text', text: 'hello' }] },
    })
    const one = await send()
    t.equal(one.status, 202)
    const two = await send()
    t.equal(two.status, 202)
    t.strictSame(two.body['turn'], one.body['turn'])
    t.match(two.body['session'], { id: (one.body['session'] as { id: string }).id })
  }
})

t.test('a message with a key in its body starts a new session each time', async (t) => {
  const send = (headers: Record<string, string>) =>
    s.ok(
      'agent.invoke',
      {
        agent_ref: { id: agent['id'] },
        session: { mode: 'new' },
        input: { content: [{ type: 'text', text: 'hello' }], idempotency_key: 'k' },
      },
      { headers },
    )
  const sessionOf = (ack: Record<string, unknown>) => (ack['session'] as { id: string }).id
  t.not(sessionOf(await send({})), sessionOf(await send({})), 'the key is scoped to the session')
  const headers = { 'idempotency-key': 'both' }
  t.equal(sessionOf(await send(headers)), sessionOf(await send(headers)))
})

t.test('repeated turns and nudges take effect once', async (t) => {
  const { id: session_id } = await s.ok('session.create', { agent_id: agent['id'], mode: 'new' })
  const content = [{ type: 'text', text: 'next' }]
  const start = repeatable('session.start_turn', { session_id, content })
  const one = await start()
  t.equal(one.status, 202)
  t.strictSame((await start()).body['turn'], one.body['turn'])
  const nudge = repeatable('session.nudge', { session_id, content })
  const first = await nudge()
  t.equal((await nudge()).body['nudge_id'], first.body['nudge_id'])
})

t.test('a repeated invocation replays its inline events', async (t) => {
  const events = async () => {
    const answer = await fetch(`${s.url}/v1/projects/default/agents/invoke`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${s.key}`,
        accept: 'text/event-stream',
        'content-type': 'application/json',
        'idempotency-key': 'inline',
      },
      body: JSON.stringify({
        agent_ref: { id: agent['id'] },
        session: { mode: 'new' },
        input: { content: [{ type: 'text', text: 'hello' }] },
      }),
    })
    t.equal(answer.status, 200)
    return [...(await answer.text()).matchAll(/"message_id":"(\w+)"/g)].map(([, id]) => id)
  }
  const [one, two] = [await events(), await events()]
  t.ok(one.length > 0)
  t.strictSame([...new Set(two)], [...new Set(one)])
})

t.test(
  'the client returns the run of an idempotency key in a body, even if it has ended',
  async (t) => {
    const baton = client({ url: s.url, key: s.key })
    const start = { spec: instant() as never, idempotency_key: 'mine' }
    const one = await baton.run.start(start)
    t.match(await ended(s, one.id), { status: 'completed' })
    t.match(await baton.run.start(start), { id: one.id, status: 'completed' })
  },
)

t.test('a repeated rotation of a secret returns the secret of the first request', async (t) => {
  const { id: webhook_id, signing_secret } = await s.ok('webhook.create', {
    name: 'rotated',
    url: 'https://hooks.example.org/x',
    events: ['order.*'],
  })
  const rotate = (key: string) =>
    s.ok('webhook.rotate_secret', { webhook_id }, { headers: { 'idempotency-key': key } })
  const [first, other] = [await rotate('one'), await rotate('two')]
  t.match([first, other], [{ secret_version: 2 }, { secret_version: 3 }])
  t.equal(new Set([signing_secret, first['signing_secret'], other['signing_secret']]).size, 3)
  t.strictSame(await rotate('one'), first)
  t.strictSame(Object.keys(first).sort(), ['secret_ref', 'secret_version', 'signing_secret'])
})

t.test('a repeat gets the first answer after a record that it names has disappeared', async (t) => {
  const helper = (name: string) => s.ok('agent.create', { name, system_prompt: 'x' })
  const user = await s.ok('user.create', { name: 'Ann', email: 'ann@example.org' })
  const [named, spoken, asked] = await Promise.all(['named', 'spoken', 'asked'].map(helper))
  const content = [{ type: 'text', text: 'hello' }]
  const repeats = [
    repeatable('interaction.create', {
      kind: 'request_information',
      target_user_ids: [user['id']],
      message: 'Which?',
      spec: { mode: 'input' },
    }),
    repeatable('channel.create', { name: 'team', member_ids: [user['id']] }),
    repeatable('channel.create', { kind: 'dm', member_ids: [user['id']] }),
    repeatable('loop.create', {
      name: 'Named',
      steps: [{ id: 'a', kind: 'agent', config: { instructions: 'x' } }],
      agent_id: named?.['id'],
    }),
    repeatable('session.create', { agent_id: spoken?.['id'], mode: 'new' }),
    ...[{ mode: 'new' }, { session_key: 'k' }].map((session) =>
      repeatable('agent.invoke', {
        agent_ref: { id: asked?.['id'] },
        session,
        input: { content },
      }),
    ),
  ]
  const first = []
  for (const send of repeats) first.push(await send())
  for (const { status, body } of first) t.ok(status < 300, JSON.stringify(body))
  for (const one of [named, spoken, asked]) await s.call('agent.delete', { id: one?.['id'] })
  await s.call('user.delete', { id: user['id'] })
  for (const [index, send] of repeats.entries()) {
    const { status, body } = await send()
    t.equal(status, first[index]?.status, JSON.stringify(body))
    const { turn, session, user_message } = body as Record<string, object>
    const before = first[index]?.body as Record<string, object>
    if (turn) t.strictSame([turn, user_message], [before['turn'], before['user_message']])
    if (session) t.match(session, { id: (before['session'] as { id: string }).id })
    else t.strictSame(body['id'], before['id'])
    t.match(await send({ title: 'x', topic: 'x', description: 'x' }), { status: /^4/ })
  }
})

t.test('a repeat gets the first answer after its session was deleted', async (t) => {
  const { id: session_id } = await s.ok('session.create', { agent_id: agent['id'], mode: 'new' })
  const content = [{ type: 'text', text: 'next' }]
  const send = repeatable('session.start_turn', { session_id, content })
  const one = await send()
  await s.call('session.delete', { session_id })
  const two = await send()
  t.strictSame([two.status, two.body['turn']], [202, one.body['turn']])
  t.match(await repeatable('session.start_turn', { session_id, content })(), { status: 404 })
})

t.test('a repeated loop gets the first answer after its handle went to another', async (t) => {
  const triggers = [{ kind: 'http', config: { http_handle: 'moving' } }]
  const send = repeatable('loop.create', { name: 'First', steps: instant().steps, triggers })
  const one = await send()
  t.equal(one.status, 201)
  await s.call('loop.delete', { id: one.body['id'] })
  const other = { name: 'Second', steps: instant().steps, triggers }
  await until(
    () => s.call('loop.create', other),
    ({ status }) => status === 201,
  )
  t.strictSame((await send()).body, one.body)
})

t.test('a compaction without a usable agent is refused with a key as without one', async (t) => {
  const { id } = await s.ok('agent.create', { name: 'resting', system_prompt: 'x' })
  const { id: session_id } = await s.ok('session.create', { agent_id: id, mode: 'new' })
  await s.ok('agent.update', { id, status: 'inactive' })
  for (const headers of [{}, { 'idempotency-key': 'compact' }])
    t.match(await s.call('session.compact', { session_id }, { headers }), {
      status: 409,
      body: { error: { code: 'agent_inactive' } },
    })
})
