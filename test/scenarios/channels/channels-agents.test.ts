/** Agents as channel members, over the real stack: mentions, answers, and how exchanges end. */
import t from 'tap'
import { type Frame, service } from '../../support/service.ts'
import { ended, type Found, fieldsOf, idsOf, listOf, until } from '../support/given.ts'
import { editor, person } from '../support/people.ts'

const s = await service()
t.teardown(() => s.stop())
const [ann, bob, op] = await Promise.all([
  editor(s, 'ann'),
  editor(s, 'bob'),
  person(s, 'op', 'role_operator'),
])
const agent = (name: string, script: string, more: Record<string, unknown> = {}) =>
  s.ok('agent.create', { name, system_prompt: script, ...more })
const messages = async (id: unknown, more: Record<string, unknown> = {}): Promise<Found[]> =>
  listOf(await ann.ok('channel.messages', { id, limit: 200, ...more })).reverse()
/** Waits until an agent has sent at least `count` messages, and returns all of them. */
const answers = (id: unknown, sender_id: unknown, count = 1): Promise<Found[]> =>
  until(
    () => messages(id, { sender_id }),
    (all) => all.length >= count,
  )
const seen = (all: readonly Found[]): string[] => all.map(({ content }) => String(content))
const contextOf = ({ metadata }: Found): Record<string, unknown> =>
  metadata as unknown as Record<string, unknown>
let names = 0
const name = () => `agents-${++names}`

t.test(
  'a message on behalf of an agent may refer to a session only if it belongs to that agent',
  async (t) => {
    const [one, two] = await Promise.all([agent('speaker one', ''), agent('speaker two', '')])
    const [mine, other] = await Promise.all(
      [one, two].map((each) => s.ok('session.create', { agent_id: each?.['id'] })),
    )
    const { id } = await ann.ok('channel.create', {
      name: name(),
      member_ids: [one['id'], two['id'], op.id],
    })
    const said = (session: unknown) => ({
      id,
      content: 'x',
      sender_agent_id: one['id'],
      sender_session_id: session,
    })
    t.match(await op.ok('channel.send', said(mine?.['id'])), {
      sender_id: one['id'],
      sender_session_id: mine?.['id'],
      sent_by: op.id,
    })
    for (const session of ['ses_x', other?.['id'], `${String(mine?.['id']).slice(0, -3)}000`])
      t.strictSame(fieldsOf(await op.refused('channel.send', said(session), 400, 'bad_request')), [
        'sender_session_id',
      ])
    const { id: role_id } = await s.ok('role.create', {
      name: 'Writer',
      permissions: ['service.project.view', 'service.channel.write'],
    })
    const writer = await person(s, 'writer', String(role_id))
    await ann.ok('channel.add_member', { id, user_id: writer.id })
    t.match(
      (await writer.refused('channel.send', said(mine?.['id']), 403, 'permission_denied')).details,
      { permission: 'service.agent.invoke' },
    )
  },
)

t.test('agents are added to a channel, listed and removed, also by their deletion', async (t) => {
  const [one, two, idle] = await Promise.all([
    agent('member one', ''),
    agent('member two', ''),
    agent('member idle', ''),
  ])
  await s.ok('agent.update', { id: idle['id'], status: 'inactive' })
  const { id } = await ann.ok('channel.create', { name: name(), member_ids: [one['id'], bob.id] })
  t.match(await ann.ok('channel.add_member', { id, agent_id: two['id'] }), {
    member_id: two['id'],
    agent_id: two['id'],
    kind: 'agent',
    role: 'member',
    last_read_seq: 0,
  })
  await ann.refused('channel.add_member', { id, agent_id: two['id'] }, 409, 'already_member')
  await ann.refused('channel.add_member', { id, agent_id: idle['id'] }, 400, 'bad_request')
  await ann.refused(
    'channel.create',
    { name: name(), member_ids: [idle['id']] },
    400,
    'bad_request',
  )
  const members = async () =>
    listOf(await ann.ok('channel.members', { id }))
      .flatMap(({ kind, member_id }) => (kind === 'agent' ? [member_id] : []))
      .sort()
  t.strictSame(await members(), [one['id'], two['id']].sort())
  t.equal((await ann.call('channel.remove_member', { id, user_id: one['id'] })).status, 204)
  t.strictSame(await members(), [two['id']])
  t.equal((await s.call('agent.delete', { id: two['id'] })).status, 204)
  t.strictSame(await members(), [])
})

t.test('an agent answers a mention as a reply to the message', async (t) => {
  const helper = await agent(
    'helper',
    'script:\n  - when: "*status*"\n    say: "All is well."\n  - say: "You said: {{text}}"\n',
  )
  const { id } = await ann.ok('channel.create', {
    name: name(),
    member_ids: [bob.id, helper['id']],
  })
  await bob.ok('channel.send', { id, content: 'nothing for @helpers or help@helper.example' })
  const asked = await bob.ok('channel.send', { id, content: 'What is the status, @Helper?' })
  const [said] = await answers(id, helper['id'])
  t.match(said, {
    content: 'All is well.',
    seq: 3,
    reply_to: asked['id'],
    sender_type: 'agent',
    sender_agent_id: helper['id'],
    metadata: { channel_exchange_id: /^cex_/, turn_id: /^turn_/ },
  })
  t.match(await bob.ok('channel.message', { id, message_id: asked['id'] }), { reply_count: 1 })
  const session_id = String(said?.['sender_session_id'])
  t.match(await s.ok('session.get', { session_id }), {
    agent_id: helper['id'],
    session_key: `channel:${String(id)}`,
    origin: 'interaction',
    visibility: 'project',
    created_by: bob.id,
  })
  t.match(
    await s.ok('session.turn', { session_id, turn_id: contextOf(said as Found)['turn_id'] }),
    { status: 'completed', channel_exchange_id: contextOf(said as Found)['channel_exchange_id'] },
  )
  const [input] = listOf(await s.ok('session.messages', { session_id }))
  t.match(input, {
    role: 'user',
    content: [
      { text: 'bob: nothing for @helpers or help@helper.example' },
      { text: 'bob: What is the status, @Helper?' },
    ],
    metadata: { channel_context: { provider: 'internal', channel_id: id } },
  })
  t.match(
    listOf(await ann.ok('channel.members', { id })).find(
      ({ member_id }) => member_id === helper['id'],
    ),
    { last_read_seq: 3 },
  )

  await ann.ok('channel.send', { id, content: 'thanks', reply_to: asked['id'] })
  const [, again] = await answers(id, helper['id'], 2)
  t.match(
    again,
    { content: 'All is well.', reply_to: asked['id'] },
    'an agent that was mentioned in a thread receives its replies',
  )
  t.not(again?.['sender_session_id'], session_id)
  const thread = await s.ok('session.get', { session_id: again?.['sender_session_id'] })
  t.match(thread, { session_key: `channel:${String(id)}:${String(asked['id'])}` })
  const [first] = listOf(await s.ok('session.messages', { session_id: thread['id'] }))
  t.match(
    first,
    {
      content: [
        { text: /^bob: What is/ },
        { text: 'helper: All is well.' },
        { text: 'ann: thanks' },
      ],
      metadata: { channel_context: { thread_id: asked['id'] } },
    },
    'the input is the whole thread',
  )
})

t.test('a repeated message starts no second turn', async (t) => {
  const once = await agent('once', 'script:\n  - say: "Once."\n')
  const { id } = await ann.ok('channel.create', { name: name(), member_ids: [once['id']] })
  const send = () =>
    s.call(
      'channel.send',
      { id, content: '@once' },
      { key: ann.key, headers: { 'idempotency-key': 'once-1' } },
    )
  const [a, b] = await Promise.all([send(), send()])
  t.strictSame(a.body, b.body)
  await answers(id, once['id'])
  await send()
  await ann.ok('channel.send', { id, content: '@once more' })
  await answers(id, once['id'], 2)
  t.strictSame(seen(await messages(id)), ['@once', 'Once.', '@once more', 'Once.'])
})

t.test('an agent answers every direct message; an operator may start a conversation', async (t) => {
  const pal = await agent(
    'pal',
    'script:\n  - when: {turn: 2}\n    say: "Again: {{text}}"\n  - say: "Hello, {{text}}"\n',
  )
  const { id } = await op.ok('channel.create', { kind: 'dm', member_ids: [pal['id']] })
  const read = (count: number) =>
    until(
      async () => listOf(await op.ok('channel.messages', { id })).reverse(),
      (all) => all.length >= count,
    )
  const first = await op.ok('channel.send', { id, content: 'I am here' })
  t.match((await read(2))[1], {
    content: 'Hello, I am here',
    sender_agent_id: pal['id'],
    reply_to: first['id'],
  })
  await op.ok('channel.send', { id, content: 'still' })
  t.match((await read(4))[3], { content: 'Again: still' }, 'both turns are in one session')
  await ann.refused('channel.messages', { id }, 404, 'not_found')
  const viewer = await person(s, 'onlooker', 'role_viewer')
  await viewer.refused(
    'channel.create',
    { kind: 'dm', member_ids: [pal['id']] },
    403,
    'permission_denied',
  )
})

t.test(
  'two agents that mention each other stop at the limit, and the channel stream shows every message',
  async (t) => {
    const [ping, pong] = await Promise.all([
      agent('ping', 'script:\n  - say: "@pong"\n'),
      agent('pong', 'script:\n  - say: "@ping"\n'),
    ])
    const { id } = await ann.ok('channel.create', {
      name: name(),
      member_ids: [ping['id'], pong['id']],
    })
    const stream = s.follow('channel.events', { id, since: 0 }, (_, all) => all.length === 9, {
      key: ann.key,
    })
    const asked = await ann.ok('channel.send', { id, content: '@ping begin' })
    const heard = await stream
    await ann.ok('channel.send', { id, content: 'enough' })
    const [last] = await s.follow('channel.events', { id }, () => true, {
      key: ann.key,
      headers: { 'last-event-id': String(heard.at(-1)?.id) },
    })
    const frames = [...heard, ...(last ? [last] : [])].map(
      ({ event, data }: Frame) => [event, (data['payload'] as { message: Found }).message] as const,
    )
    t.strictSame(
      frames.map(([event]) => event),
      Array.from({ length: 10 }, () => 'message.created'),
    )
    t.strictSame(
      frames.map(([, message]) => message['content']),
      [
        '@ping begin',
        ...Array.from({ length: 8 }, (_, n) => (n % 2 === 0 ? '@pong' : '@ping')),
        'enough',
      ],
    )
    t.ok(frames.slice(1, 9).every(([, message]) => message['reply_to'] === asked['id']))
    t.equal((await messages(id)).length, 10, 'the exchange has stopped')
  },
)

t.test('a mention refers to a member, even if other agents have similar names', async (t) => {
  const script = 'script:\n  - say: "Here."\n'
  await agent('Twin', script)
  await agent('data team', script)
  const [twin, data] = [await agent('twin', script), await agent('data', script)]
  const { id } = await ann.ok('channel.create', {
    name: name(),
    member_ids: [twin['id'], data['id']],
  })
  await ann.ok('channel.send', { id, content: '@twin, and you, @data team' })
  t.match(
    [await answers(id, twin['id']), await answers(id, data['id'])],
    [[{ content: 'Here.' }], [{ content: 'Here.' }]],
  )
})

t.test('a failed turn posts no message, and its exchange contains the reason', async (t) => {
  const broken = await agent('broken', 'script:\n  - fail: 400\n')
  const { id } = await ann.ok('channel.create', { name: name(), member_ids: [broken['id']] })
  const failures = (channel: unknown, count = 1) =>
    until(
      async () => listOf(await ann.ok('channel.exchanges', { id: channel, status: 'failed' })),
      (found) => found.length === count,
    )
  const asked = await ann.ok('channel.send', { id, content: '@broken please' })
  const refused = { error_type: 'provider_refused', session_id: /^ses_/ }
  t.match(await failures(id), [{ agent_id: broken['id'], message_id: asked['id'], ...refused }])
  await s.ok('agent.update', { id: broken['id'], status: 'inactive' })
  await ann.ok('channel.send', { id, content: '@broken?' })
  t.match((await failures(id, 2))[0], { error_type: 'agent_inactive', session_id: undefined })
  t.equal(listOf(await ann.ok('channel.messages', { id })).length, 2, 'only the mentions')

  const repeats = await agent('repeats', 'script:\n  - say: "{{text}}"\n')
  const dm = await ann.ok('channel.create', { kind: 'dm', member_ids: [repeats['id']] })
  await s.ok('principal.update', { id: repeats['id'], state: 'disabled' })
  await ann.ok('channel.send', { id: dm['id'], content: 'hello' })
  t.match(
    await failures(dm['id']),
    [{ error_type: 'agent_inactive' }],
    'a disabled agent starts no turn',
  )
  await s.refused('channel.exchanges', { id: dm['id'] }, 404, 'not_found', { key: bob.key })
  await s.ok('principal.update', { id: repeats['id'], state: 'active' })
  await ann.ok('channel.send', { id: dm['id'], content: 'there?' })
  t.match(
    await answers(dm['id'], repeats['id']),
    [{ content: /hello.*there\?/s }],
    'the next turn includes missed messages',
  )
})

t.test('an agent cannot read channels of which it is not a member', async (t) => {
  const spy = await agent('spy', 'script:\n  - say: "{{text}}"\n')
  await s.ok('assignment.create', { principal_id: spy['id'], role_name: 'Operator' })
  await s.ok('agent.assign_toolkits', { id: spy['id'], toolkit_ids: ['kit_system_all'] })
  const key = String((await s.ok('key.create', { name: 'spy', principal_id: spy['id'] }))['key'])
  const closed = await ann.ok('channel.create', {
    name: name(),
    private: true,
    member_ids: [bob.id],
  })
  const { id } = closed
  const told = await ann.ok('channel.send', { id, content: 'Marzipan, @spy' })
  for (const row of [
    'channel.get',
    'channel.messages',
    'channel.members',
    'channel.events',
  ] as const)
    await s.refused(row, { id }, 404, 'not_found', { key })
  await s.refused('channel.message', { id, message_id: told['id'] }, 404, 'not_found', { key })
  await s.refused('channel.send', { id, content: 'x' }, 404, 'not_found', { key })
  await s.refused('channel.add_member', { id, agent_id: spy['id'] }, 404, 'not_found', { key })
  t.strictSame(listOf(await s.ok('channel.search', { q: 'marzipan' }, { key })), [])
  t.notOk(idsOf(await s.ok('channel.list', { limit: 200 }, { key })).includes(String(id)))
  t.notOk(
    listOf(await s.ok('agent.tools', { id: spy['id'] }), 'tools').some((tool) =>
      /channel|message/.test(String(tool['name'])),
    ),
    'no tool of the service reads channels',
  )
  const open = await ann.ok('channel.create', { name: name(), member_ids: [spy['id']] })
  await ann.ok('channel.send', { id: open['id'], content: '@spy what was said?' })
  t.match(await answers(open['id'], spy['id']), [{ content: /what was said\?$/ }])
  const sessions = listOf(await s.ok('session.list', { agent_id: spy['id'] }))
  t.equal(sessions.length, 1, 'the mention in a channel without the agent started no turn')
  t.notMatch(
    JSON.stringify(await s.ok('session.messages', { session_id: sessions[0]?.['id'] })),
    'Marzipan',
  )
})

t.test('each session message is one source event, which resumes waits', async (t) => {
  const source = await agent('source', 'script:\n  - say: "Heard."\n')
  const run = await s.ok('run.start', {
    spec: {
      steps: [
        {
          id: 'hear',
          kind: 'wait_for_event',
          config: {
            event_type: 'session.message.created',
            condition: `meta.role == 'assistant' && event.agent_id == '${String(source['id'])}'`,
          },
        },
      ],
      output: { key: '${{ steps.hear.output.event.session_key }}' },
    },
  })
  const { id } = await ann.ok('channel.create', { name: name(), member_ids: [source['id']] })
  await s.follow('run.events', { id: run['id'] }, ({ event }) => event === 'wait.opened')
  await ann.ok('channel.send', { id, content: '@source' })
  const [said] = await answers(id, source['id'])
  t.match(await ended(s, run['id']), { result: { key: `channel:${String(id)}` } })
  const session_id = said?.['sender_session_id']
  const heard = await until(
    async () =>
      listOf(
        await s.ok('event.list', { event_type: 'session.message.created', source_id: session_id }),
      ).reverse(),
    (all) => all.length >= 2,
  )
  t.match(heard, [
    {
      source_kind: 'session',
      meta: { role: 'user', agent_id: source['id'] },
      event: { sequence: 1 },
    },
    {
      meta: { role: 'assistant' },
      event: { sequence: 2, content: [{ text: 'Heard.' }], session_key: `channel:${String(id)}` },
    },
  ])
  t.equal(heard.length, 2)
})
