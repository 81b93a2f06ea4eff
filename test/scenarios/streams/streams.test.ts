/**
 * The multiplexed stream over HTTP: each topic, refusals of individual subscriptions, the end of
 * access, record changes, clients that do not read, and other gateways.
 */
import t from 'tap'
import { client } from '../../../client/client.ts'
import { followStreams, type StreamMessage } from '../../../client/streams/follow.ts'
import { readTranscript, Transcript, type TranscriptFrame } from '../../../client/transcript.ts'
import type { StreamSubscription } from '../../../protocol/streams/rows.ts'
import { type Frame, service } from '../../support/service.ts'
import { listOf, until, waiting } from '../support/given.ts'
import { editor, person } from '../support/people.ts'
import { tableOf } from '../support/tables.ts'

const s = await service({ BATON_STREAM_IDLE: '0' })
t.teardown(() => s.stop())
await s.ok('project.create', { name: 'Other', handle: 'other' })
const admin = await person(s, 'admin', 'role_admin')
const foreign = await person(s, 'foreign', 'role_admin', 'other')
const [ann, bob] = await Promise.all([editor(s, 'ann'), editor(s, 'bob')])

type Spec = Omit<StreamSubscription, 'id' | 'project'> & {
  readonly id?: string
  readonly project?: string | undefined
}
/** Adds ids and the default project to subscriptions. */
const all = (specs: readonly Spec[]): StreamSubscription[] =>
  specs.map((one, index) => {
    const { project, ...rest } = { project: 'default', id: String(index), ...one }
    return project === undefined ? rest : { ...rest, project }
  })
const messageOf = ({ data }: Frame): StreamMessage => data as unknown as StreamMessage
/** Follows subscriptions until a message satisfies the predicate, and returns the messages. */
const follow = async (
  specs: readonly Spec[],
  over: (last: StreamMessage, all: readonly StreamMessage[]) => boolean,
  options: { key?: string; url?: string } = {},
): Promise<StreamMessage[]> =>
  (
    await s.follow(
      'stream.follow',
      { subscriptions: all(specs) },
      (frame, frames) => over(messageOf(frame), frames.map(messageOf)),
      options,
    )
  ).map(messageOf)
/** Collects the messages of subscriptions in the background. */
function collect(specs: readonly Spec[], options: { key?: string; url?: string } = {}) {
  const messages: StreamMessage[] = []
  const stop = new AbortController()
  const { transport } = client({ url: options.url ?? s.url, key: options.key ?? s.key })
  t.teardown(() => stop.abort())
  const over = (async () => {
    for await (const message of followStreams({ transport }, all(specs), {
      signal: stop.signal,
    }))
      messages.push(message)
  })()
  return {
    messages,
    over,
    until: (satisfied: (all: readonly StreamMessage[]) => boolean) =>
      until(async () => messages, satisfied),
    stop: async () => {
      stop.abort()
      await over
    },
  }
}
const of = (messages: readonly StreamMessage[], id: string): StreamMessage[] =>
  messages.filter(({ subscription }) => subscription === id)
const eventsOf = (messages: readonly StreamMessage[], id: string): string[] =>
  of(messages, id).map(({ event }) => event)
const named = (messages: readonly StreamMessage[]): string[] =>
  messages.flatMap(({ event, data }) =>
    event === 'changes'
      ? listOf(data, 'changes').map(({ kind, id }) => (id ? `${kind} ${id}` : String(kind)))
      : [],
  )
const begun = (messages: readonly StreamMessage[], count: number): boolean =>
  messages.filter(({ event }) => event === 'subscription.started').length === count

t.test('each subscription has the frames and cursors of the single stream', async (t) => {
  const run = await s.ok('run.start', { spec: waiting() })
  const channel = await ann.ok('channel.create', { name: 'general' })
  const agent = await s.ok('agent.create', {
    name: 'talker',
    system_prompt: `script:\n  - when: {after: '*'}\n    say: "hello"\n`,
  })
  const { id: session_id } = await s.ok('session.create', { agent_id: agent['id'] })
  const live = collect([
    { id: 'run', topic: 'run', target: String(run['id']) },
    { id: 'runs', topic: 'runs' },
    { id: 'channel', topic: 'channel', target: String(channel['id']) },
    { id: 'session', topic: 'session', target: String(session_id) },
  ])
  await live.until((messages) => begun(messages, 4))
  await ann.ok('channel.send', { id: channel['id'], content: 'one\u2028line' })
  await s.ok('session.start_turn', { session_id, content: [{ type: 'text', text: 'hi' }] })
  await s.ok('run.signal', { id: run['id'], name: 'go' })
  await live.until(
    (messages) =>
      eventsOf(messages, 'run').includes('subscription.ended') &&
      eventsOf(messages, 'channel').includes('message.created') &&
      of(messages, 'runs').some(({ data }) => JSON.stringify(data).includes('completed')) &&
      of(messages, 'session').some(
        ({ event, data }) => event === 'turn.upsert' && data['status'] === 'completed',
      ),
  )
  await live.stop()
  const single = await s.follow('run.events', { id: run['id'] }, () => false)
  t.strictSame(
    of(live.messages, 'run').map(({ event, cursor, data }) => ({ event, cursor, data })),
    [
      { event: 'subscription.started', cursor: 0, data: {} },
      ...single.map(({ event, id, data }) => ({ event, cursor: Number(id), data })),
      { event: 'subscription.ended', cursor: undefined, data: { reason: 'completed' } },
    ],
  )
  const [, posted] = of(live.messages, 'channel')
  t.match(posted, { cursor: Number, data: { payload: { message: { content: 'one\u2028line' } } } })
  t.ok(
    of(live.messages, 'runs').every(
      ({ event, cursor, data }) => event === 'subscription.started' || cursor === data['seq'],
    ),
  )
  const folded = new Transcript()
  for (const { data, cursor } of of(live.messages, 'session').slice(1))
    folded.apply(data as TranscriptFrame, cursor === undefined ? undefined : String(cursor))
  const fresh = await readTranscript({ url: s.url, key: s.key, session_id: String(session_id) })
  t.strictSame(folded.messages(), fresh.messages())

  const { cursor } = of(live.messages, 'run')[2] ?? {}
  const rest = await follow(
    [{ topic: 'run', target: String(run['id']), after: Number(cursor) }],
    () => false,
  )
  t.strictSame(
    rest.slice(1, -1).map(({ data }) => data),
    single.slice(2).map(({ data }) => data),
    'a subscription resumes after its cursor, and the stream ends with its last subscription',
  )
})

t.test('a refused subscription does not affect the others', async (t) => {
  const run = await s.ok('run.start', { spec: waiting() })
  const closed = await ann.ok('channel.create', { name: 'closed', private: true })
  const target = String(run['id'])
  const specs: readonly (readonly [Spec, string])[] = [
    [{ topic: 'run', target }, 'run.started'],
    [{ topic: 'run', target: 'run_unknown' }, 'not_found'],
    [{ topic: 'run', project: 'other', target }, 'not_found'],
    [{ topic: 'runs', project: 'nowhere' }, 'not_found'],
    [{ topic: 'channel', target: String(closed['id']) }, 'not_found'],
    [{ topic: 'session', target: 'ses_unknown' }, 'not_found'],
    [{ topic: 'logs', target: 'run_unknown' }, 'not_found'],
    [{ topic: 'environment_log', target: 'env_unknown' }, 'not_found'],
  ]
  const frames = await follow(
    specs.map(([spec]) => spec),
    (_, all) =>
      specs.every(
        (_, index) =>
          of(all, String(index)).length > 1 || (index > 0 && of(all, String(index)).length > 0),
      ),
  )
  for (const [index, [, expected]] of specs.entries())
    t.match(
      of(frames, String(index)).at(-1),
      expected === 'run.started'
        ? { event: /^run|^step/ }
        : { event: 'subscription.refused', data: { error: { code: expected } } },
      `${index}`,
    )
  for (const [spec, code] of [
    [{ topic: 'run', target }, 'forbidden'],
    [{ topic: 'runs' }, 'forbidden'],
    [{ topic: 'channel', target: String(closed['id']) }, 'forbidden'],
    [{ topic: 'changes' }, 'forbidden'],
    [{ topic: 'changes', project: undefined }, 'forbidden'],
    [{ topic: 'run', project: 'other', target }, 'not_found'],
  ] as readonly (readonly [Spec, string])[]) {
    const [frame, ...more] = await follow([spec], () => false, { key: foreign.key })
    t.match(frame, { event: 'subscription.refused', data: { error: { code } } }, spec.topic)
    t.strictSame(more, [], 'the stream ends when no subscription is left')
  }
  const { id } = await s.ok('session.create', {
    agent_id: (await s.ok('agent.create', { name: 'quiet', system_prompt: 'x' }))['id'],
  })
  const [bad] = await follow(
    [{ topic: 'session', target: String(id), after: 'wrong' }],
    () => false,
  )
  t.match(bad, { event: 'subscription.refused', data: { error: { code: 'bad_request' } } })
})

t.test('requests that are not valid are refused as a whole', async (t) => {
  const bad: readonly (readonly [unknown, string])[] = [
    [[], 'subscriptions'],
    [all(Array.from({ length: 101 }, () => ({ topic: 'runs' as const }))), 'subscriptions'],
    [all([{ topic: 'run' }]), 'subscriptions[0].target'],
    [all([{ topic: 'runs', target: 'x' }]), 'subscriptions[0].target'],
    [all([{ topic: 'runs', after: 'x' }]), 'subscriptions[0].after'],
    [all([{ topic: 'session', target: 'x', after: 1 }]), 'subscriptions[0].after'],
    [[{ id: 'a', topic: 'runs' }], 'subscriptions[0].project'],
    [all([{ topic: 'runs', filter: { level: 'warn' } }]), 'subscriptions[0].filter.level'],
    [
      all([{ topic: 'environment_log', target: 'x', filter: { contains: 'a' } }]),
      'subscriptions[0].filter.contains',
    ],
    [all([{ topic: 'environment_log', target: 'x', after: 1 }]), 'subscriptions[0].after'],
    [
      all([
        { topic: 'runs', id: 'a' },
        { topic: 'runs', id: 'a' },
      ]),
      'subscriptions[1].id',
    ],
  ]
  for (const [subscriptions, field] of bad) {
    const { details } = await s.refused('stream.follow', { subscriptions }, 400, 'bad_request')
    t.match(listOf(details, 'fields')[0], { field }, field)
  }
  await s.refused(
    'stream.follow',
    { subscriptions: all([{ topic: 'runs' }]) },
    401,
    'unauthorized',
    {
      key: null,
    },
  )
})

t.test('access that ends later ends the subscription, with the reason', async (t) => {
  const channel = await ann.ok('channel.create', { name: 'leaving', private: true })
  const id = channel['id']
  await ann.ok('channel.add_member', { id, user_id: bob.id })
  const lost = collect(
    [
      { id: 'channel', topic: 'channel', target: String(id) },
      { id: 'runs', topic: 'runs' },
    ],
    { key: bob.key },
  )
  await lost.until((messages) => begun(messages, 2))
  await ann.ok('channel.remove_member', { id, user_id: bob.id })
  await lost.until((messages) => eventsOf(messages, 'channel').includes('subscription.ended'))
  t.match(of(lost.messages, 'channel').slice(-2), [
    { event: 'member.removed' },
    { event: 'subscription.ended', data: { reason: 'access_lost', error: { code: 'not_found' } } },
  ])
  t.notOk(eventsOf(lost.messages, 'runs').includes('subscription.ended'))

  const { id: principal } = await s.ok('principal.create', {
    name: 'gone',
    role_ids: ['role_viewer'],
  })
  const key = await s.ok('key.create', { name: 'gone', principal_id: principal })
  const revoked = collect([{ topic: 'runs' }, { topic: 'changes' }], { key: String(key['key']) })
  await revoked.until((messages) => begun(messages, 2))
  await s.ok('key.revoke', { id: key['id'] })
  await revoked.over
  t.match(
    revoked.messages.filter(({ event }) => event === 'subscription.ended'),
    [0, 1].map(() => ({ data: { reason: 'access_lost', error: { code: 'unauthorized' } } })),
  )
  await lost.stop()
})

t.test('subscriptions end when their project is deleted', async (t) => {
  const project = 'ending'
  await s.ok('project.create', { name: project })
  const { id } = await s.ok('channel.create', { project, name: 'ops' })
  const followed = collect([
    { id: 'channel', project, topic: 'channel', target: String(id) },
    { id: 'runs', project, topic: 'runs' },
  ])
  await followed.until((messages) => begun(messages, 2))
  t.equal((await s.call('project.delete', { project })).status, 204)
  await followed.over
  for (const subscription of ['channel', 'runs'])
    t.match(of(followed.messages, subscription).at(-1), {
      event: 'subscription.ended',
      data: { reason: 'access_lost', error: { code: 'not_found' } },
    })
})

t.test('changes name the records that a caller may read', async (t) => {
  const mine = collect([{ topic: 'changes' }], { key: ann.key })
  const others = collect([{ topic: 'changes' }], { key: bob.key })
  const theirs = collect([{ topic: 'changes', project: 'other' }], { key: foreign.key })
  const root = collect([{ topic: 'changes', project: undefined }])
  for (const one of [mine, others, theirs, root]) await one.until((messages) => begun(messages, 1))
  const loud = await ann.ok('channel.create', { name: 'loud' })
  const quiet = await ann.ok('channel.create', { name: 'quiet', private: true })
  const table = await tableOf(s)
  const asked = await s.ok('interaction.create', {
    kind: 'request_approval',
    title: 'ok?',
    target_user_ids: [ann.id],
  })
  const agent = await s.ok('agent.create', { name: 'changing', system_prompt: 'x' })
  const session = await ann.ok('session.create', {
    agent_id: agent['id'],
    session_key: 'secret',
    visibility: 'private',
  })
  await s.ok('project.create', { name: 'Third', handle: 'third' })
  const open = [
    `channel ${loud['id']}`,
    `table ${table['id']}`,
    `interaction ${asked['id']}`,
    `agent ${agent['id']}`,
  ]
  const closed = [`channel ${quiet['id']}`, `session ${session['id']}`]
  const heard = (expected: readonly string[]) => (messages: readonly StreamMessage[]) =>
    expected.every((one) => named(messages).includes(one))
  await mine.until(heard([...open, ...closed]))
  await others.until(heard(open))
  await root.until((messages) => named(messages).some((one) => one.startsWith('project prj_')))
  t.notMatch(JSON.stringify(others.messages), new RegExp(`${quiet['id']}|${session['id']}`))
  t.notOk(
    named(mine.messages).some((one) => one.startsWith('key')),
    'needs access.manage',
  )

  await ann.ok('channel.add_member', { id: quiet['id'], user_id: bob.id })
  await others.until(heard([`channel ${quiet['id']}`, 'session']))
  const before = others.messages.length
  await ann.ok('channel.remove_member', { id: quiet['id'], user_id: bob.id })
  await others.until((messages) => heard([`channel ${quiet['id']}`])(messages.slice(before)))
  const after = others.messages.length
  await ann.ok('channel.send', { id: quiet['id'], content: 'unseen' })
  await ann.ok('channel.delete', { id: loud['id'] })
  await others.until((messages) => heard(['channel'])(messages.slice(after)))
  t.notMatch(JSON.stringify(others.messages.slice(after)), new RegExp(String(quiet['id'])))
  t.strictSame(named(theirs.messages), [], 'nothing of another project')

  const cursor = others.messages.at(-1)?.cursor as number
  await others.stop()
  await s.ok('table.delete', { id: table['id'] })
  const resumed = await follow(
    [{ topic: 'changes', after: cursor }],
    (_, all) => named(all).length > 0,
    { key: bob.key },
  )
  t.strictSame(named(resumed), [`table ${table['id']}`], 'resumed without a gap')
  const [, old] = await follow([{ topic: 'changes', after: 1 }], (_, all) => all.length > 1)
  t.match(old, { event: 'changes', data: { changes: [{ kind: '*' }] } }, 'an older cursor')
  const roles = mine.messages.length
  await s.ok('assignment.create', { principal_id: ann.id, role_id: 'role_admin' })
  await mine.until((messages) => named(messages.slice(roles)).includes('*'))
  for (const one of [mine, theirs, root]) await one.stop()
})

t.test('a burst of changes results in at most four frames per second', async (t) => {
  const live = collect([{ topic: 'changes' }], { key: admin.key })
  await live.until((messages) => begun(messages, 1))
  const started = performance.now()
  for (let n = 0; n < 60; n++)
    await s.ok('agent.create', { name: `burst-${n}`, system_prompt: 'x' })
  await live.until(
    (messages) => named(messages).filter((one) => one.startsWith('agent ')).length === 60,
  )
  const frames = live.messages.filter(({ event }) => event === 'changes').length
  t.ok(frames <= 2 + ((performance.now() - started) / 1000) * 4, `${frames} frames`)
  await live.stop()
})

t.test('100 subscriptions continue at another gateway when the first one stops', async (t) => {
  const other = await s.add({ BATON_NODE_ID: 'second', BATON_ROLES: 'gateway' })
  const runs = await Promise.all(
    Array.from({ length: 99 }, () => s.ok('run.start', { spec: waiting() })),
  )
  const specs: Spec[] = [
    { topic: 'changes', id: 'changes' },
    ...runs.map((run, index) => ({
      topic: 'run' as const,
      id: String(index),
      target: String(run['id']),
    })),
  ]
  const live = collect(specs, { url: other.url ?? '' })
  await live.until((messages) => begun(messages, 100))
  for (const run of runs.slice(0, 50)) await s.ok('run.signal', { id: run['id'], name: 'go' })
  const held = collect(specs.slice(1))
  await Promise.all([other.stop(), held.until((messages) => begun(messages, 99))])
  for (const run of runs.slice(50)) await s.ok('run.signal', { id: run['id'], name: 'go' })
  await held.over
  await live.stop()
  for (const [index, run] of runs.entries()) {
    const expected = listOf(await s.ok('run.events', { id: run['id'], limit: 200 })).map(
      ({ sequence }) => Number(sequence),
    )
    const got = of(held.messages, String(index)).map(({ cursor }) => cursor)
    t.strictSame(got.slice(1, -1), expected, 'nothing is missed or repeated')
  }
})
