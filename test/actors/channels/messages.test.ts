/** Messages of a channel: numbers, threads, senders, edits and pins. */
import t from 'tap'
import { limits } from '../../../protocol/channels/schema.ts'
import { START } from '../../support/given.ts'
import { by, CHANNEL, member, opened } from './story.ts'

t.test('messages are numbered from 1; the reply omits what the caller sent', async (t) => {
  const one = opened().when('channel.send', { content: 'a', metadata: { n: 1 } }, by('ann'))
  t.match(one.events, [
    {
      type: 'message.created',
      message: {
        id: 'cmsg_1',
        channel_id: CHANNEL,
        seq: 1,
        content: 'a',
        metadata: { n: 1 },
        pinned: false,
        sender_id: 'ann',
        sender_type: 'user',
      },
    },
  ])
  t.match(one.reply, {
    id: 'cmsg_1',
    seq: 1,
    sender_id: 'ann',
    content: undefined,
    metadata: undefined,
  })
  const two = one.when('channel.send', { content: 'b' }, { ...by('bob'), at: START + 1000 })
  t.match(two.state, { message_seq: 2, last_message_at: '2026-01-01T00:00:01.000Z' })
  t.same(Object.keys(two.state), Object.keys(one.state), 'the state contains no messages')
})
t.test('only members can write, and only while the channel is not archived', async (t) => {
  t.equal(
    opened().when('channel.send', { content: 'a' }, by('eve')).refused?.refused,
    'not_channel_member',
  )
  t.equal(
    opened({ archived_at: '2026-01-01T00:00:00.000Z' }).when(
      'channel.send',
      { content: 'a' },
      by('ann'),
    ).refused?.refused,
    'channel_archived',
  )
  t.equal(
    opened({ archived_at: '2026-01-01T00:00:00.000Z' }).when(
      'channel.edit',
      { pinned: true, target: { id: 'm', seq: 1, sender_id: 'ann' } },
      by('ann'),
    ).refused?.refused,
    'channel_archived',
  )
})
t.test('a reply to a reply belongs to the thread', async (t) => {
  const one = opened()
  const root = { id: 'cmsg_7', seq: 1, sender_id: 'ann' }
  t.match(
    one.when('channel.send', { content: 'a', reply_to: 'cmsg_7', target: root }, by('bob')).reply,
    { reply_to: 'cmsg_7' },
  )
  t.match(
    one.when(
      'channel.send',
      { content: 'a', reply_to: 'cmsg_8', target: { ...root, id: 'cmsg_8', reply_to: 'cmsg_7' } },
      by('bob'),
    ).reply,
    { reply_to: 'cmsg_7' },
  )
  t.match(one.when('channel.send', { content: 'a', reply_to: 'cmsg_9' }, by('bob')).refused, {
    refused: 'bad_request',
    details: { fields: [{ field: 'reply_to' }] },
  })
})
t.test('callers who may invoke an agent of the channel can send messages as it', async (t) => {
  const agent = { id: 'agt_1', kind: 'agent' }
  const one = opened({}, [member('ann', 'admin'), { ...member('agt_1'), kind: 'agent' }])
  const speak = (more: object) =>
    one.when(
      'channel.send',
      { content: 'a', sender_agent_id: 'agt_1', sender_session_id: 'ses_1', ...more },
      by('ann'),
    )
  t.match(speak({ agent, session_agent: 'agt_1', may_invoke: true }).reply, {
    sender_id: 'agt_1',
    sender_type: 'agent',
    sender_agent_id: 'agt_1',
    sender_session_id: 'ses_1',
    sent_by: 'ann',
  })
  t.match(speak({ agent, session_agent: 'agt_1', may_invoke: false }).refused, {
    refused: 'permission_denied',
    details: { permission: 'service.agent.invoke' },
  })
  for (const session_agent of [undefined, 'agt_2'])
    t.match(speak({ agent, session_agent, may_invoke: true }).refused, {
      details: { fields: [{ field: 'sender_session_id' }] },
    })
  t.match(speak({ may_invoke: true }).refused, {
    details: { fields: [{ field: 'sender_agent_id' }] },
  })
  t.match(speak({ agent: { ...agent, id: 'agt_2' }, may_invoke: true }).refused, {
    details: { fields: [{ field: 'sender_agent_id' }] },
  })
})
t.test('only the sender edits content; every member can pin', async (t) => {
  const one = opened().when('channel.send', { content: 'a' }, by('ann'))
  const target = { id: 'cmsg_1', seq: 1, sender_id: 'ann' }
  t.match(
    one.when(
      'channel.edit',
      { content: 'b', metadata: null, target },
      { ...by('ann'), at: START + 5 },
    ).events,
    [
      {
        type: 'message.updated',
        id: 'cmsg_1',
        message: { content: 'b', metadata: null, edited_at: '2026-01-01T00:00:00.005Z' },
      },
    ],
  )
  t.equal(
    one.when('channel.edit', { content: 'b', target }, by('bob')).refused?.refused,
    'forbidden',
  )
  t.equal(one.when('channel.edit', { pinned: true }, by('bob')).refused?.refused, 'not_found')
  t.equal(
    one.when('channel.edit', { pinned: true, target }, by('eve')).refused?.refused,
    'not_channel_member',
  )
  const pinned = one.when('channel.edit', { pinned: true, target }, by('bob'))
  t.same(pinned.state.pinned, { cmsg_1: true })
  t.same(pinned.when('channel.edit', { pinned: false, target }).state.pinned, {})
})
t.test('the number of pinned messages is limited', async (t) => {
  let scene = opened()
  const pin = (n: number) =>
    scene.when(
      'channel.edit',
      { pinned: true, target: { id: `cmsg_${n}`, seq: n, sender_id: 'ann' } },
      by('bob'),
    )
  for (let n = 1; n <= limits.pinned; n++) scene = pin(n)
  t.match(pin(limits.pinned + 1).refused, {
    refused: 'pin_limit_reached',
    details: { limit: limits.pinned },
  })
  t.equal(pin(1).refused, undefined, 'a pinned message may be pinned again')
})
t.test('artifacts learn of the messages that name them', async (t) => {
  const id = `art_${'0'.repeat(26)}`
  const reference = { type: 'artifact', id, mime: 'text/plain', size: 1, sha256: 'ab'.repeat(32) }
  const metadata = { artifacts: [reference, { ...reference, id: 'art_unknown' }] }
  const told = (principal_id: string) => [
    {
      tell: {
        to: { kind: 'artifact', id },
        name: 'artifact.post',
        input: { principal_id, channel_id: 'channel_1', message_id: 'cmsg_1' },
      },
    },
  ]
  const sent = opened().when('channel.send', { content: 'a', metadata }, by('ann'))
  t.same(sent.effects, told('ann'))
  const plain = opened().when('channel.send', { content: 'a', metadata: { id } }, by('ann'))
  t.same(plain.effects, [])
  const target = { id: 'cmsg_1', seq: 1, sender_id: 'ann' }
  const edited = plain.when('channel.edit', { target, metadata }, by('ann'))
  t.same(edited.effects, told('ann'))
  t.same(sent.when('channel.edit', { target, pinned: true }, by('bob')).effects, [])
})
t.test('a message for an agent shares artifacts of its real sender', async (t) => {
  const id = `art_${'0'.repeat(26)}`
  const reference = { type: 'artifact', id, mime: 'text/plain', size: 1, sha256: 'ab'.repeat(32) }
  const agent = { ...member('bot'), kind: 'agent' as const }
  const sent = opened({}, [member('ann', 'admin'), agent]).when(
    'channel.send',
    {
      content: 'a',
      metadata: { reference },
      sender_agent_id: 'bot',
      agent: { id: 'bot', kind: 'agent' },
      may_invoke: true,
    },
    by('ann'),
  )
  t.match(sent.effects, [{ tell: { input: { principal_id: 'ann' } } }])
})
