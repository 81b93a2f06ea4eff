/** Channels over the real stack: the effects of every operation, and why each can be refused. */
import t from 'tap'
import { service } from '../../support/service.ts'
import { fieldsOf, ids, idsOf, listOf, pages, until } from '../support/given.ts'
import { editor, person } from '../support/people.ts'

const s = await service()
t.teardown(() => s.stop())
const [ann, bob, cyd, admin] = await Promise.all([
  editor(s, 'ann'),
  editor(s, 'bob'),
  editor(s, 'cyd'),
  person(s, 'admin', 'role_admin'),
])
let made = 0
const channel = (input: Record<string, unknown> = {}) =>
  ann.ok('channel.create', { name: `made-${++made}`, ...input })

t.test(
  'a channel is created together with its members; its name is unique until it is deleted',
  async (t) => {
    const { status, body } = await ann.call('channel.create', {
      name: 'ops',
      display_name: 'Ops',
      topic: 'On call',
      member_ids: [bob.id, bob.id, ann.id],
    })
    t.equal(status, 201)
    t.match(body, {
      id: /^chan_/,
      name: 'ops',
      display_name: 'Ops',
      topic: 'On call',
      kind: 'channel',
      private: false,
      member_count: 2,
      message_seq: 0,
      created_by: ann.id,
    })
    const id = body['id']
    t.match(await ann.ok('channel.get', { id, include: ['unread_count'] }), {
      ...body,
      unread_count: 0,
    })
    t.match(
      listOf(await ann.ok('channel.members', { id }))
        .map(({ member_id, role, kind, added_by, last_read_seq }) => [
          member_id,
          role,
          kind,
          added_by,
          last_read_seq,
        ])
        .sort(),
      [
        [ann.id, 'admin', 'user', ann.id, 0],
        [bob.id, 'member', 'user', ann.id, 0],
      ].sort(),
    )
    t.match(await bob.refused('channel.create', { name: 'ops' }, 409, 'already_exists'), {
      details: { field: 'name', name: 'ops' },
    })
    t.strictSame(
      fieldsOf(
        await ann.refused(
          'channel.create',
          { name: 'new', member_ids: [bob.id, 'svc_nobody'] },
          400,
          'bad_request',
        ),
      ),
      ['member_ids[1]'],
    )
    for (const name of ['Ops', 'a--b', '-a', 'x'.repeat(81), 'dm-0123456789abcdef', ''])
      await ann.refused('channel.create', { name }, 400, 'bad_request')
    t.strictSame(fieldsOf(await ann.refused('channel.create', {}, 400, 'bad_request')), ['name'])
    await ann.ok('channel.create', { name: 'new' })
    await ann.ok('channel.delete', { id })
    for (const row of [
      'channel.get',
      'channel.messages',
      'channel.members',
      'channel.events',
    ] as const)
      await ann.refused(row, { id }, 404, 'not_found')
    await ann.refused('channel.delete', { id }, 404, 'not_found')
    await ann.refused('channel.update', { id, topic: 'x' }, 404, 'not_found')
    const again = await bob.ok('channel.create', { name: 'ops' })
    t.not(again['id'], id, 'the name is free at once for a new channel')
    const same = await Promise.all(
      [1, 2, 3, 4].map(() => cyd.call('channel.create', { name: 'race' })),
    )
    t.strictSame(same.map(({ status }) => status).sort(), [201, 409, 409, 409])
  },
)

t.test('a request with an idempotency key takes effect once', async (t) => {
  const headers = { 'idempotency-key': 'k1' }
  const first = await s.ok('channel.create', { name: 'once' }, { headers })
  t.strictSame(await s.ok('channel.create', { name: 'once' }, { headers }), first)
  await s.refused('channel.create', { name: 'twice' }, 409, 'idempotency_key_conflict', { headers })
  const { id } = first
  const send = (content: string) =>
    s.call(
      'channel.send',
      { id, content, metadata: { n: 1 } },
      { headers: { 'idempotency-key': 'm1' } },
    )
  const [a, b] = [await send('hello'), await send('hello')]
  t.strictSame(a.body, b.body)
  t.match(a.body, { seq: 1, content: 'hello', metadata: { n: 1 } })
  t.equal((await send('other')).status, 409)
  t.equal(listOf(await s.ok('channel.messages', { id })).length, 1)
})

t.test('there is one direct message for each exact set of members', async (t) => {
  const { status, body } = await ann.call('channel.create', { kind: 'dm', member_ids: [bob.id] })
  t.equal(status, 201)
  t.match(body, { kind: 'dm', private: true, name: /^dm-[0-9a-f]{16}$/, member_count: 2 })
  t.notOk('display_name' in body)
  const again = await bob.call('channel.create', {
    kind: 'dm',
    member_ids: [ann.id, bob.id],
    include: ['unread_count'],
  })
  t.match(again, { status: 200, body: { id: body['id'], unread_count: 0 } })
  t.match(
    listOf(await bob.ok('channel.members', { id: body['id'] })).map(({ role }) => role),
    ['admin', 'admin'],
  )
  const three = await ann.ok('channel.create', { kind: 'dm', member_ids: [bob.id, cyd.id] })
  t.not(three['id'], body['id'])
  const { id } = body
  await ann.ok('channel.update', { id, archived_at: '2026-01-01T00:00:00Z' })
  await ann.refused('channel.send', { id, content: 'x' }, 409, 'channel_archived')
  t.notOk(
    'archived_at' in (await bob.ok('channel.create', { kind: 'dm', member_ids: [ann.id] })),
    'opening it again unarchives it',
  )
  for (const change of [{ private: false }, { display_name: 'x' }])
    await ann.refused('channel.update', { id, ...change }, 400, 'bad_request')
  t.match(await ann.ok('channel.update', { id, topic: 'Lunch' }), { topic: 'Lunch' })
  await ann.refused('channel.add_member', { id, user_id: cyd.id }, 400, 'bad_request')
  await ann.refused('channel.remove_member', { id, user_id: bob.id }, 400, 'bad_request')
  for (const input of [
    { member_ids: [] },
    { member_ids: [ann.id] },
    { member_ids: [bob.id], name: 'x' },
    { member_ids: [bob.id], private: false },
    { member_ids: [bob.id], display_name: 'x' },
  ]) {
    await ann.refused('channel.create', { kind: 'dm', ...input }, 400, 'bad_request')
  }
  const race = await Promise.all(
    [bob, cyd, bob, cyd].map((one) =>
      one.call('channel.create', { kind: 'dm', member_ids: [bob.id, cyd.id] }),
    ),
  )
  t.equal(new Set(race.map((answer) => answer.body['id'])).size, 1)
  t.strictSame(race.map((answer) => answer.status).sort(), [200, 200, 200, 201])
  await bob.ok('channel.delete', { id })
  t.not((await ann.ok('channel.create', { kind: 'dm', member_ids: [bob.id] }))['id'], id)
})

t.test('admins update channel settings; an archived channel is read-only', async (t) => {
  const { id, name } = await channel({ member_ids: [bob.id], topic: 'T' })
  t.match(await ann.ok('channel.update', { id, display_name: 'Shown', topic: null }), {
    display_name: 'Shown',
    topic: undefined,
  })
  t.match(await ann.ok('channel.update', { id, display_name: null }), { display_name: name })
  const { updated_at } = await ann.ok('channel.get', { id })
  t.match(
    await ann.ok('channel.update', { id, display_name: name }),
    { updated_at },
    'an update without a change keeps updated_at',
  )
  for (const one of [bob, cyd])
    await one.refused('channel.update', { id, topic: 'x' }, 403, 'forbidden')
  await bob.refused('channel.delete', { id }, 403, 'forbidden')
  t.match(await admin.ok('channel.update', { id, topic: 'by the project admin' }), {
    topic: 'by the project admin',
  })
  const sent = await bob.ok('channel.send', { id, content: 'x' })
  t.match(await ann.ok('channel.update', { id, archived_at: '2026-01-02T03:04:05+01:00' }), {
    archived_at: '2026-01-02T02:04:05.000Z',
  })
  await ann.refused(
    'channel.update',
    { id, archived_at: '2199-01-01T00:00:00Z' },
    400,
    'bad_request',
  )
  await ann.refused('channel.update', { id, archived_at: 'yesterday' }, 400, 'bad_request')
  await bob.refused('channel.send', { id, content: 'x' }, 409, 'channel_archived')
  await bob.refused(
    'channel.edit',
    { id, message_id: sent['id'], pinned: true },
    409,
    'channel_archived',
  )
  await ann.refused('channel.add_member', { id, user_id: cyd.id }, 409, 'channel_archived')
  await ann.refused('channel.remove_member', { id, user_id: bob.id }, 409, 'channel_archived')
  t.match(listOf(await bob.ok('channel.messages', { id })), [{ content: 'x' }])
  t.ok(
    ids(await pages(s, 'channel.list', {}, 50, { key: ann.key })).includes(String(id)),
    'archived channels are listed',
  )
  t.notOk('archived_at' in (await ann.ok('channel.update', { id, archived_at: null })))
  await bob.ok('channel.send', { id, content: 'y' })
})

t.test('members are added, listed and removed', async (t) => {
  const { id } = await channel()
  t.match(await bob.ok('channel.add_member', { id, user_id: bob.id }), {
    member_id: bob.id,
    user_id: bob.id,
    kind: 'user',
    role: 'member',
    added_by: bob.id,
  })
  await bob.refused('channel.add_member', { id, user_id: bob.id }, 409, 'already_member')
  await bob.refused('channel.add_member', { id, user_id: cyd.id }, 403, 'forbidden')
  await cyd.refused('channel.add_member', { id, user_id: cyd.id, role: 'admin' }, 403, 'forbidden')
  t.match(await ann.ok('channel.add_member', { id, member_id: cyd.id, role: 'admin' }), {
    role: 'admin',
  })
  for (const input of [
    { agent_id: 'agt_x' },
    { agent_id: bob.id },
    { user_id: 'nobody' },
    {},
    { user_id: bob.id, member_id: bob.id },
  ])
    await ann.refused('channel.add_member', { id, ...input }, 400, 'bad_request')
  t.strictSame(
    (await pages(s, 'channel.members', { id }, 1, { key: bob.key })).map(
      ({ member_id }) => member_id,
    ),
    [ann.id, bob.id, cyd.id],
    'in the order they joined',
  )
  await bob.refused('channel.remove_member', { id, user_id: cyd.id }, 403, 'forbidden')
  await ann.refused('channel.remove_member', { id, user_id: 'svc_nobody' }, 404, 'not_found')
  await cyd.ok('channel.remove_member', { id, user_id: cyd.id })
  await ann.refused('channel.remove_member', { id, user_id: ann.id }, 409, 'last_admin')
  await ann.ok('channel.remove_member', { id, user_id: bob.id })
  await bob.refused('channel.send', { id, content: 'x' }, 403, 'not_channel_member')
  await ann.ok('channel.remove_member', { id, user_id: ann.id })
  t.match(await ann.ok('channel.get', { id }), { member_count: 0 })
})

t.test('a member without write permission may only leave', async (t) => {
  const eve = await person(s, 'eve', 'role_viewer')
  const { id } = await channel({ member_ids: [eve.id, bob.id] })
  t.match(
    (await eve.refused('channel.remove_member', { id, user_id: bob.id }, 403, 'permission_denied'))
      .details,
    { permission: 'service.channel.write' },
  )
  t.equal((await eve.call('channel.remove_member', { id, user_id: eve.id })).status, 204)
  await eve.refused('channel.remove_member', { id, user_id: eve.id }, 404, 'not_found')
})

t.test('read markers only move forward, and only the member moves them', async (t) => {
  const { id } = await channel({ member_ids: [bob.id] })
  for (let n = 1; n <= 5; n++) await ann.ok('channel.send', { id, content: `m${n}` })
  const unread = async (who: typeof bob) =>
    (await who.ok('channel.get', { id, include: ['unread_count'] }))['unread_count']
  t.equal(await unread(bob), 5)
  t.equal(await unread(ann), 0, 'the sender has read the messages')
  t.equal(await unread(cyd), undefined)
  t.match(await bob.ok('channel.mark_read', { id, user_id: bob.id, seq: 3 }), { last_read_seq: 3 })
  t.match(await bob.ok('channel.mark_read', { id, user_id: bob.id, seq: 1 }), { last_read_seq: 3 })
  t.equal(await unread(bob), 2)
  t.match(
    listOf(await bob.ok('channel.list', { limit: 200, include: ['unread_count'] })).find(
      (one) => one['id'] === id,
    ),
    { unread_count: 2 },
  )
  await bob.refused('channel.mark_read', { id, user_id: bob.id, seq: 6 }, 400, 'bad_request')
  await bob.refused('channel.mark_read', { id, user_id: ann.id, seq: 1 }, 403, 'forbidden')
  await cyd.refused('channel.mark_read', { id, user_id: cyd.id, seq: 1 }, 404, 'not_found')
})

t.test('messages are numbered, threads have one level, and lists are filtered', async (t) => {
  const { id } = await channel({ member_ids: [bob.id] })
  const root = await ann.ok('channel.send', { id, content: '# Root', metadata: { a: [1] } })
  t.match(root, {
    id: /^cmsg_/,
    channel_id: id,
    seq: 1,
    content: '# Root',
    metadata: { a: [1] },
    pinned: false,
    sender_id: ann.id,
    sender_type: 'user',
  })
  const reply = await bob.ok('channel.send', { id, content: 'reply', reply_to: root['id'] })
  const second = await ann.ok('channel.send', {
    id,
    content: 'reply to the reply',
    reply_to: reply['id'],
  })
  t.equal(second['reply_to'], root['id'], 'stored with the root of the thread')
  const loose = await bob.ok('channel.send', { id, content: 'apart' })
  t.match(await bob.ok('channel.message', { id, message_id: root['id'] }), {
    ...root,
    reply_count: 2,
  })
  t.strictSame(
    (await pages(s, 'channel.messages', { id }, 3, { key: bob.key })).map(({ seq }) => seq),
    [4, 3, 2, 1],
  )
  t.strictSame(idsOf(await bob.ok('channel.messages', { id, reply_to: root['id'] })), [
    second['id'],
    reply['id'],
  ])
  t.strictSame(idsOf(await bob.ok('channel.messages', { id, sender_id: bob.id })), [
    loose['id'],
    reply['id'],
  ])
  t.strictSame(
    idsOf(
      await bob.ok('channel.messages', {
        id,
        sender_id: bob.id,
        reply_to: root['id'],
        pinned: false,
      }),
    ),
    [reply['id']],
  )
  const elsewhere = await channel()
  t.strictSame(
    fieldsOf(
      await ann.refused(
        'channel.send',
        { id: elsewhere['id'], content: 'x', reply_to: root['id'] },
        400,
        'bad_request',
      ),
    ),
    ['reply_to'],
  )
  await ann.refused(
    'channel.message',
    { id: elsewhere['id'], message_id: root['id'] },
    404,
    'not_found',
  )
  for (const input of [
    { content: '' },
    { content: ' \n\t' },
    { content: 'x'.repeat(40_001) },
    { content: 'x', metadata: { a: 'x'.repeat(16_384) } },
    { content: 'x', sender_session_id: 'ses_1' },
    { content: 'x', sender_agent_id: 'agt_1' },
  ]) {
    await ann.refused('channel.send', { id, ...input }, 400, 'bad_request')
  }
  await cyd.refused('channel.send', { id, content: 'x' }, 403, 'not_channel_member')
  const long = await ann.ok('channel.send', {
    id,
    content: '漢'.repeat(40_000),
    metadata: { a: '漢'.repeat(5000) },
  })
  t.match(await bob.ok('channel.message', { id, message_id: long['id'] }), long)
  t.strictSame(idsOf(await bob.ok('channel.messages', { id, limit: 1 })), [long['id']])
})

t.test('only the sender edits a message, and every member may pin it', async (t) => {
  const { id } = await channel({ member_ids: [bob.id] })
  const { id: message_id } = await ann.ok('channel.send', {
    id,
    content: 'one',
    metadata: { a: 1 },
  })
  const edited = await ann.ok('channel.edit', { id, message_id, content: 'two' })
  t.match(edited, { content: 'two', metadata: { a: 1 }, edited_at: /Z$/, seq: 1 })
  t.strictSame(await bob.ok('channel.message', { id, message_id }), edited)
  t.notOk('metadata' in (await ann.ok('channel.edit', { id, message_id, metadata: null })))
  for (const change of [{ content: 'x' }, { metadata: {} }, { content: 'x', pinned: true }])
    await bob.refused('channel.edit', { id, message_id, ...change }, 403, 'forbidden')
  for (const change of [{}, { content: ' ' }, { pinned: null }, { seq: 2 }])
    await ann.refused('channel.edit', { id, message_id, ...change }, 400, 'bad_request')
  await ann.refused('channel.edit', { id, message_id: 'cmsg_x', pinned: true }, 404, 'not_found')
  await cyd.refused('channel.edit', { id, message_id, pinned: true }, 403, 'not_channel_member')
  t.match(await bob.ok('channel.edit', { id, message_id, pinned: true }), {
    pinned: true,
    content: 'two',
  })
  t.strictSame(idsOf(await bob.ok('channel.messages', { id, pinned: true })), [message_id])
  const more = await Promise.all(
    Array.from({ length: 100 }, (_, n) => ann.ok('channel.send', { id, content: `p${n}` })),
  )
  for (const one of more.slice(0, 99))
    await ann.ok('channel.edit', { id, message_id: one['id'], pinned: true })
  t.match(
    await ann.refused(
      'channel.edit',
      { id, message_id: more[99]?.['id'], pinned: true },
      409,
      'pin_limit_reached',
    ),
    { details: { limit: 100 } },
  )
  await bob.ok('channel.edit', { id, message_id, pinned: false })
  await ann.ok('channel.edit', { id, message_id: more[99]?.['id'], pinned: true })
  t.equal(
    (await pages(s, 'channel.messages', { id, pinned: true }, 40, { key: ann.key })).length,
    100,
  )
  t.strictSame(
    (await pages(s, 'channel.messages', { id }, 50, { key: ann.key })).map(({ seq }) => seq),
    Array.from({ length: 101 }, (_, n) => 101 - n),
    'no sequence number is missing',
  )
})

t.test('search finds words, and input is never interpreted as query syntax', async (t) => {
  const { id } = await channel({ member_ids: [bob.id] })
  const [a, b] = [
    await ann.ok('channel.send', { id, content: 'Deploy of **Zürich** done' }),
    await bob.ok('channel.send', { id, content: 'zurich waits for the deploy' }),
  ]
  const found = async (q: string, more: object = {}) =>
    idsOf(await bob.ok('channel.search', { q, ...more }))
  t.strictSame(
    await found('ZURICH deploy'),
    [b['id'], a['id']],
    'newest first, without case and accents',
  )
  t.strictSame(await found('zürich done'), [a['id']])
  t.strictSame(await found('zurich', { channel_id: id }), [b['id'], a['id']])
  t.strictSame(await found('zurich', { channel_id: 'chan_x' }), [])
  for (const odd of [
    '"',
    '*',
    'zurich OR',
    'place:p1',
    'content : x',
    '(',
    'NEAR(a b)',
    '-zurich"',
    'p1',
    '{place}: p1',
    '^',
  ])
    t.equal((await bob.call('channel.search', { q: odd })).status, 200, odd)
  t.strictSame(await found('zurich OR nothing'), [], 'OR is an ordinary word')
  await ann.ok('channel.edit', { id, message_id: a['id'], content: 'Deploy of Geneva' })
  t.strictSame(await found('zurich'), [b['id']])
  t.strictSame(await found('geneva'), [a['id']])
  for (let n = 0; n < 7; n++) await ann.ok('channel.send', { id, content: `many ${n}` })
  t.strictSame(
    (await pages(s, 'channel.search', { q: 'many' }, 2, { key: bob.key })).map(
      ({ content }) => content,
    ),
    [6, 5, 4, 3, 2, 1, 0].map((n) => `many ${n}`),
  )
  await bob.refused('channel.search', { q: '' }, 400, 'bad_request')
  await bob.refused('channel.search', {}, 400, 'bad_request')
  await ann.ok('channel.delete', { id })
  t.strictSame(await found('geneva'), [], 'messages of a deleted channel are not found')
})

t.test('changes of channels and memberships are audited, messages are not', async (t) => {
  const { id } = await channel({ member_ids: [bob.id] })
  await ann.ok('channel.add_member', { id, user_id: cyd.id })
  await ann.ok('channel.send', { id, content: 'secret' })
  await ann.ok('channel.update', { id, topic: 'T' })
  await ann.ok('channel.remove_member', { id, user_id: cyd.id })
  await ann.ok('channel.delete', { id })
  const log = [
    ...listOf(await s.ok('audit.list', { resource_id: id })),
    ...listOf(await s.ok('audit.list', { resource_id: `${id}:${cyd.id}` })),
  ]
  t.strictSame(
    log.map(({ resource_type, action, actor_id }) => [resource_type, action, actor_id]),
    [
      ['channel', 'delete', ann.id],
      ['channel', 'update', ann.id],
      ['channel', 'create', ann.id],
      ['channel_member', 'delete', ann.id],
      ['channel_member', 'create', ann.id],
    ],
  )
  t.match(log[1], { changes: { topic: { to: 'T' } } })
  t.notMatch(JSON.stringify(await s.ok('audit.list', { limit: 200 })), 'secret')
})

t.test('a deleted principal is no longer a member', async (t) => {
  const dan = await editor(s, 'dan')
  const { id } = await channel({ member_ids: [dan.id] })
  const dm = await ann.ok('channel.create', { kind: 'dm', member_ids: [dan.id] })
  await s.ok('principal.update', { id: dan.id, state: 'disabled' })
  t.strictSame(
    listOf(await ann.ok('channel.members', { id })).map(({ member_id }) => member_id),
    [ann.id],
  )
  t.match(
    await ann.ok('channel.get', { id: dm['id'] }),
    { member_count: 2 },
    'direct messages keep their members',
  )
  await ann.refused('channel.add_member', { id, user_id: dan.id }, 400, 'bad_request')
  await ann.refused('channel.create', { kind: 'dm', member_ids: [dan.id] }, 400, 'bad_request')
  await s.ok('principal.update', { id: dan.id, state: 'active' })
  await until(
    () => dan.call('channel.get', { id: dm['id'] }),
    ({ status }) => status === 200,
  )
  for (const [who, other] of [
    [dan, ann],
    [ann, dan],
  ] as const)
    t.match(await who.call('channel.create', { kind: 'dm', member_ids: [other.id] }), {
      status: 200,
      body: { id: dm['id'], member_count: 2 },
    })
  await dan.ok('channel.send', { id: dm['id'], content: 'here again' })
  await ann.ok('channel.add_member', { id, user_id: dan.id })
})
