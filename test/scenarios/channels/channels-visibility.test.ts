/**
 * Visibility of channels in every API operation. Also covers streams of channels: where they begin
 * and continue, and that they end when the client loses access to the channel.
 */
import t from 'tap'
import type { RowName } from '../../../protocol/api.ts'
import { api } from '../../../protocol/api.ts'
import { type Row, routeOf } from '../../../protocol/contract.ts'
import { type Frame, service } from '../../support/service.ts'
import { ended, idsOf, listOf, pages, until } from '../support/given.ts'
import { editor, type Person, person } from '../support/people.ts'
import { agentOf, modelOf } from '../support/talk.ts'

const s = await service()
t.teardown(() => s.stop())
const [ann, bob, out, admin, viewer] = await Promise.all([
  editor(s, 'ann'),
  editor(s, 'bob'),
  editor(s, 'out'),
  person(s, 'admin', 'role_admin'),
  person(s, 'viewer', 'role_viewer'),
])
const rows = (Object.entries(api) as [RowName, Row][]).filter(
  ([name, { route }]) => name.startsWith('channel.') && route.includes(':id'),
)
const bodies: Readonly<Record<string, object>> = {
  'channel.update': { topic: 'x' },
  'channel.add_member': { user_id: out.id },
  'channel.mark_read': { seq: 0 },
  'channel.send': { content: 'x' },
  'channel.edit': { pinned: true },
}
const WORD = 'Xylophone'
async function made(input: object) {
  const { id } = await ann.ok('channel.create', input as Record<string, unknown>)
  const { id: message_id } = await ann.ok('channel.send', { id, content: `${WORD} secret` })
  return { id, message_id, user_id: ann.id }
}
async function status(
  who: Person,
  name: RowName,
  input: Record<string, unknown>,
): Promise<{ status: number; text: string }> {
  const slots = Object.fromEntries(
    routeOf(api[name])
      .slots.filter((slot) => slot in input)
      .map((slot) => [slot, input[slot]]),
  )
  const { status, body } = await who.call(name, { ...slots, ...bodies[name] })
  return { status, text: JSON.stringify(body) }
}

t.test('every operation answers 404 for a channel that the caller cannot see', async (t) => {
  const closed = await made({ name: 'closed', private: true, member_ids: [bob.id] })
  const dm = await made({ kind: 'dm', member_ids: [bob.id] })
  for (const [name] of rows) {
    for (const at of [closed, dm]) {
      const seen = await status(out, name, at)
      t.equal(seen.status, 404, `${name} to an outsider`)
      t.notMatch(seen.text, WORD)
      if (api[name].verb !== 'command')
        t.equal((await status(viewer, name, at)).status, 404, `${name} to a viewer`)
    }
    const overseen = await status(admin, name, dm)
    t.equal(overseen.status, 404, `${name} of a direct message to a project admin`)
    if (name === 'channel.delete') continue
    t.equal(
      (await status(admin, name, closed)).status,
      name === 'channel.get' || name === 'channel.update' ? 200 : 404,
      `${name} of a private channel to a project admin`,
    )
    if (name !== 'channel.remove_member')
      t.ok(
        (await status(bob, name, { ...closed, user_id: bob.id })).status !== 404,
        `${name} to a member`,
      )
  }
  const unknown = await out.call('channel.get', { id: 'chan_01ARZ3NDEKTSV4RRFFQ69G5FAV' })
  t.strictSame(
    (await out.call('channel.get', { id: closed.id })).body,
    unknown.body,
    'the response is the same as for an unknown channel',
  )
  for (const [who, expected] of [
    [ann, [dm.id, closed.id]],
    [bob, [dm.id, closed.id]],
    [out, []],
    [viewer, []],
    [admin, [closed.id]],
  ] as const) {
    const all = idsOf({ items: await pages(s, 'channel.list', {}, 1, { key: who.key }) })
    t.strictSame(all, expected, 'the list')
    t.equal(
      listOf(await who.ok('channel.search', { q: WORD })).length,
      who === ann || who === bob ? 2 : 0,
      'the search',
    )
  }
  t.strictSame(idsOf(await out.ok('channel.search', { q: WORD, channel_id: closed.id })), [])
  t.strictSame(idsOf(await ann.ok('channel.list', { kind: 'dm' })), [dm.id])
  t.strictSame(idsOf(await ann.ok('channel.list', { private: false })), [])
  t.strictSame(idsOf(await admin.ok('channel.list', { private: true, kind: 'channel' })), [
    closed.id,
  ])
  await admin.ok('channel.delete', { id: closed.id })
  await bob.refused('channel.get', { id: closed.id }, 404, 'not_found')
})

t.test(
  'a public channel is readable for everybody who may view the project, also if it was private before',
  async (t) => {
    const { id, message_id } = await made({ name: 'open', private: true })
    await out.refused('channel.message', { id, message_id }, 404, 'not_found')
    await ann.ok('channel.update', { id, private: false })
    for (const who of [out, viewer, admin]) {
      t.match(await who.ok('channel.message', { id, message_id }), { id: message_id })
      t.equal(listOf(await who.ok('channel.members', { id })).length, 1)
      t.ok(idsOf(await who.ok('channel.list')).includes(String(id)))
      t.match(listOf(await who.ok('channel.events', { id })), [
        { event_type: 'message.created' },
        { event_type: 'channel.updated' },
      ])
    }
    await viewer.refused('channel.send', { id, content: 'x' }, 403, 'permission_denied')
    await ann.ok('channel.add_member', { id, user_id: viewer.id })
    await viewer.ok('channel.mark_read', { id, user_id: viewer.id, seq: 1 })
  },
)

t.test(
  "a channel's agent session is readable exactly for those who may read the channel, in every operation",
  async (t) => {
    const agent = await s.ok('agent.create', {
      name: 'confidant',
      system_prompt: `script:\n  - say: "${WORD} heard"\n`,
    })
    const talk = async (input: object): Promise<Record<string, unknown>> => {
      const { id } = await ann.ok('channel.create', input as Record<string, unknown>)
      await ann.ok('channel.send', { id, content: `@confidant ${WORD}` })
      const [said] = await until(
        async () => listOf(await ann.ok('channel.messages', { id, sender_id: agent['id'] })),
        (all) => all.length > 0,
      )
      const metadata = said?.['metadata'] as unknown as { turn_id: string } | undefined
      return {
        id,
        session_id: said?.['sender_session_id'],
        turn_id: metadata?.turn_id,
        artifact_id: 'art_1',
        nudge_id: 'nudge_1',
        session_key: `channel:${String(id)}`,
      }
    }
    const dm = await talk({ kind: 'dm', member_ids: [agent['id']] })
    const closed = await talk({ name: 'whisper', private: true, member_ids: [agent['id'], bob.id] })
    const open = await talk({ name: 'aloud', member_ids: [agent['id']] })
    const bodies: Readonly<Record<string, object>> = {
      'session.start_turn': { content: [{ type: 'text', text: 'x' }] },
      'session.append': { messages: [{ role: 'user', content: [{ type: 'text', text: 'x' }] }] },
      'session.nudge': { content: 'x' },
      'session.attach': { name: 'x.txt', file: 'eA==' },
    }
    const sessions = (Object.entries(api) as [RowName, Row][]).filter(
      ([, { route }]) => route.includes(':session_id') || route.includes(':turn_id'),
    )
    t.ok(sessions.length > 20)
    for (const [name] of sessions) {
      for (const [who, at] of [
        [out, dm],
        [out, closed],
        [admin, closed],
        [admin, dm],
      ] as const) {
        const slots = Object.fromEntries(
          routeOf(api[name])
            .slots.filter((slot) => slot in at)
            .map((slot) => [slot, at[slot]]),
        )
        const { status, body } = await who.call(name, { ...slots, ...bodies[name] })
        t.equal(status, 404, `${name} ${JSON.stringify(body)}`)
        t.notMatch(JSON.stringify(body), WORD)
      }
    }
    const reads = sessions.flatMap(([name, { verb }]) =>
      verb === 'query' && /session\.(get|messages|turns?|transcript)$/.test(name) ? [name] : [],
    )
    t.equal(reads.length, 5)
    for (const [who, at] of [
      [ann, dm],
      [bob, closed],
      [viewer, open],
      [out, open],
    ] as const)
      for (const name of reads)
        t.equal(
          (
            await who.call(
              name,
              Object.fromEntries(
                routeOf(api[name])
                  .slots.filter((slot) => slot in at)
                  .map((slot) => [slot, at[slot]]),
              ),
            )
          ).status,
          200,
          name,
        )
    const listed = async (who: Person) =>
      idsOf(await who.ok('session.list', { agent_id: agent['id'] })).sort()
    t.strictSame(await listed(out), [open['session_id']])
    t.strictSame(await listed(bob), [open['session_id'], closed['session_id']].sort())
    t.strictSame(await listed(ann), [open, closed, dm].map(({ session_id }) => session_id).sort())
    t.strictSame(
      idsOf(
        await out.ok('session.list', { agent_id: agent['id'], session_key: dm['session_key'] }),
      ),
      [],
      'the session key does not reveal it',
    )

    const events = await until(
      async () =>
        listOf(
          await viewer.ok('event.list', { event_type: 'session.message.created', limit: 200 }),
        ),
      (all) => all.length >= 6,
    )
    const said = (at: Record<string, unknown>) =>
      events.filter(({ source_id }) => source_id === at['session_id'])
    t.equal(said(open).filter(({ event }) => JSON.stringify(event).includes(WORD)).length, 2)
    for (const at of [dm, closed]) {
      t.equal(said(at).length, 2, 'the event of the message exists')
      t.notMatch(JSON.stringify(said(at)), WORD, 'the event contains no text')
    }
    for (const session_key of [dm['session_key'], ` ${String(closed['session_key'])}:cmsg_1`]) {
      const input = { content: [{ type: 'text', text: 'what was said?' }] }
      await out.refused(
        'agent.invoke',
        { agent_ref: { id: agent['id'] }, session: { session_key }, input },
        400,
        'bad_request',
      )
      await out.refused(
        'session.create',
        { agent_id: agent['id'], session_key },
        400,
        'bad_request',
      )
    }
    const run = await out.ok('run.start', {
      spec: {
        steps: [
          {
            id: 'ask',
            kind: 'agent',
            config: {
              agent_id: 'confidant',
              instructions: 'what was said?',
              session: { scope: 'agent', name: closed['session_key'] },
            },
          },
        ],
      },
    })
    t.match(await ended(s, run['id']), { status: 'failed', error_type: 'forbidden' })

    const stream = watch(out, 'session.transcript_stream', { session_id: open['session_id'] })
    await stream.ready
    await ann.ok('channel.update', { id: open['id'], private: true })
    await ann.ok('channel.send', { id: open['id'], content: `@confidant ${WORD} again` })
    await out.refused('session.get', { session_id: open['session_id'] }, 404, 'not_found')
    await until(
      async () =>
        listOf(await ann.ok('channel.messages', { id: open['id'], sender_id: agent['id'] })),
      (all) => all.length > 1,
    )
    const after = await until(
      async () =>
        listOf(
          await viewer.ok('event.list', { event_type: 'session.message.created', limit: 200 }),
        ),
      (all) => all.filter(({ source_id }) => source_id === open['session_id']).length === 4,
    )
    t.notMatch(
      JSON.stringify(after),
      `${WORD} again`,
      'events after the change to private contain no text',
    )
    t.notMatch(
      JSON.stringify(await stream.ended),
      'again',
      'the open stream contains nothing after the change',
    )
  },
)

const typesOf = (frames: readonly Frame[]) => frames.map(({ event }) => event)
t.test('the stream and the JSON page return the same events from every cursor', async (t) => {
  const { id } = await ann.ok('channel.create', { name: 'stream' })
  const all = s.follow(
    'channel.events',
    { id, since: 0 },
    ({ event }) => event === 'channel.deleted',
    { key: ann.key },
  )
  const first = await ann.ok('channel.send', { id, content: 'one' })
  await ann.ok('channel.send', {
    id,
    content: 'x'.repeat(40_000),
    metadata: { a: '\u0001'.repeat(2700) },
    reply_to: first['id'],
  })
  await ann.ok('channel.add_member', { id, user_id: bob.id })
  await bob.ok('channel.mark_read', { id, user_id: bob.id, seq: 1 })
  await ann.ok('channel.edit', { id, message_id: first['id'], content: 'edited', pinned: true })
  await ann.ok('channel.update', { id, topic: 'T' })
  await ann.ok('channel.remove_member', { id, user_id: bob.id })
  const page = await pagesOf(id)
  const last = await ann.ok('channel.send', { id, content: 'last' })
  await ann.ok('channel.delete', { id })
  const frames = await all
  const shown = [
    'message.created',
    'message.created',
    'member.added',
    'message.updated',
    'channel.updated',
    'member.removed',
  ]
  t.strictSame(typesOf(frames), [...shown, 'message.created', 'channel.deleted'])
  t.strictSame(
    page.map(({ event_type }) => event_type),
    shown,
  )
  t.strictSame(
    frames.slice(1, 6).map(({ data }) => data),
    page.slice(1),
  )
  t.match(frames[3]?.data, {
    payload: { message: { id: first['id'], content: 'edited', pinned: true, reply_count: 1 } },
  })
  t.match(frames[4]?.data, { payload: { channel: { id, topic: 'T' } } })
  t.match(frames[6]?.data, { payload: { message: last } })
  t.ok(
    frames.every(
      ({ id: place, data }) =>
        Number(place) === data['sequence'] && data['id'] === `${id}:evt:${place}`,
    ),
  )
  await ann.refused('channel.events', { id }, 404, 'not_found')
  async function pagesOf(channel: unknown) {
    const items = []
    for (let since = 0; ; ) {
      const part = await ann.ok('channel.events', { id: channel, since, limit: 2 })
      items.push(...listOf(part))
      if (!part['has_more']) return items
      since = Number(part['next_sequence'])
    }
  }
})

t.test('a stream without a cursor starts with new events', async (t) => {
  const { id } = await ann.ok('channel.create', { name: 'now' })
  await ann.ok('channel.send', { id, content: 'old' })
  let frames: Frame[] = []
  const now = s
    .follow('channel.events', { id }, () => true, { key: ann.key })
    .then((seen) => {
      frames = seen
    })
  await until(
    async () => {
      await ann.ok('channel.send', { id, content: 'new' })
      return frames
    },
    (seen) => seen.length > 0,
  )
  await now
  t.match(frames[0]?.data, { payload: { message: { content: 'new' } } })
})

t.test('a stream continues after Last-Event-ID without a repeat', async (t) => {
  const { id } = await ann.ok('channel.create', { name: 'again' })
  for (let n = 1; n <= 250; n++) await ann.ok('channel.send', { id, content: `${n}` })
  const seqOf = ({ data }: Frame) => (data['payload'] as { message: { seq: number } }).message.seq
  const head = await s.follow('channel.events', { id, since: 0 }, (_, all) => all.length === 130, {
    key: ann.key,
  })
  const tail = await s.follow('channel.events', { id }, (frame) => seqOf(frame) === 250, {
    key: ann.key,
    headers: { 'last-event-id': String(head.at(-1)?.id) },
  })
  t.strictSame(
    [...head, ...tail].map(seqOf),
    Array.from({ length: 250 }, (_, n) => n + 1),
  )
})

type Watched = ReturnType<typeof watch>
/**
 * Follows a stream until the server ends it. `ready` resolves at the first event. `ended` resolves
 * with all frames when the stream ends.
 */
function watch(
  who: Person,
  name: RowName,
  input: Record<string, unknown>,
): { ready: Promise<void>; ended: Promise<Frame[]> } {
  let begun = () => {}
  const ready = new Promise<void>((done) => {
    begun = done
  })
  const ended = s.follow(
    name,
    input,
    () => {
      begun()
      return false
    },
    { key: who.key },
  )
  return { ready, ended }
}
t.test('a stream ends with the event that revokes access to the channel', async (t) => {
  const { id } = await ann.ok('channel.create', {
    name: 'sight',
    private: true,
    member_ids: [bob.id, out.id],
  })
  await ann.ok('channel.send', { id, content: 'before' })
  const [gone, kept] = [bob, out].map((who) => watch(who, 'channel.events', { id, since: 0 })) as [
    Watched,
    Watched,
  ]
  await Promise.all([gone.ready, kept.ready])
  await ann.ok('channel.remove_member', { id, user_id: bob.id })
  await ann.ok('channel.send', { id, content: 'after' })
  t.strictSame(typesOf(await gone.ended), ['message.created', 'member.removed'])
  await bob.refused('channel.events', { id }, 404, 'not_found')
  t.equal(
    (
      await s.raw('GET', `/v1/projects/default/channels/${String(id)}/events`, {
        key: bob.key,
        headers: { accept: 'text/event-stream' },
      })
    ).status,
    404,
  )
  await ann.ok('channel.add_member', { id, user_id: bob.id })
  const back = s.follow(
    'channel.events',
    { id, since: 0 },
    ({ event }) => event === 'member.added',
    { key: bob.key },
  )
  t.strictSame(
    typesOf(await back),
    ['message.created', 'member.removed', 'message.created', 'member.added'],
    'the earlier removal does not end the stream',
  )
  await ann.ok('channel.delete', { id })
  t.equal(typesOf(await kept.ended).at(-1), 'channel.deleted')

  const open = await ann.ok('channel.create', { name: 'sight-open' })
  await ann.ok('channel.send', { id: open['id'], content: 'before' })
  const [reader, owner] = [out, ann].map((who) =>
    watch(who, 'channel.events', { id: open['id'], since: 0 }),
  ) as [Watched, Watched]
  await Promise.all([reader.ready, owner.ready])
  await ann.ok('channel.update', { id: open['id'], private: true })
  await ann.ok('channel.send', { id: open['id'], content: 'after' })
  t.strictSame(typesOf(await reader.ended), ['message.created', 'channel.updated'])
  await ann.ok('channel.delete', { id: open['id'] })
  t.strictSame(typesOf(await owner.ended), [
    'message.created',
    'channel.updated',
    'message.created',
    'channel.deleted',
  ])
})

t.test('a deleted channel ends the turns in its sessions, which no caller can read', async (t) => {
  const model = await modelOf(s, 'thinker')
  const { id: agent } = await agentOf(s, 'thinker')
  const { id } = await ann.ok('channel.create', { name: 'thoughts', member_ids: [agent] })
  await ann.ok('channel.send', { id, content: '@thinker go' })
  const job = await model.job()
  const stop = model.wait((frame) => frame['job_id'] === job['id'], 'job.cancel')
  await ann.ok('channel.delete', { id })
  t.match(await stop, { type: 'job.cancel' })
  model.close()
})
