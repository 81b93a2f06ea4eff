/** Channels as a whole: names, direct messages, creation, settings and visibility. */
import t from 'tap'
import { defineActor } from '../../../actors/actor.ts'
import { channelName } from '../../../actors/channels/name.ts'
import { given, START, typesOf } from '../../support/given.ts'
import { by, CHANNEL, member, opened, settings } from './story.ts'

const name = () => given(defineActor(channelName))
const creation = (people: string[] = [], more: object = {}) => ({
  name: 'ops',
  creation: { name: 'ops', people: people.map((id) => ({ id, kind: 'user' })) },
  ...more,
})

t.test('a name creates its channel in the same commit, with all members', async (t) => {
  const made = name().when('channel.create', creation(['bob'], { topic: '' }), by('ann'))
  t.same(made.events, [{ type: 'name.taken', channel: 'chan_1' }])
  t.match(made.tells, [
    {
      to: { kind: 'channel', id: 'chan_1' },
      name: 'channel.open',
      input: {
        holder: 'channel_name_1',
        members: [
          { member_id: 'ann', role: 'admin' },
          { member_id: 'bob', role: 'member' },
        ],
      },
    },
  ])
  t.match(made.reply, {
    id: 'chan_1',
    name: 'ops',
    display_name: 'ops',
    private: false,
    kind: 'channel',
    member_count: 2,
    message_seq: 0,
    created_by: 'ann',
  })
  t.notOk('topic' in (made.reply as object))
  t.match(made.when('channel.create', creation()).refused, {
    refused: 'already_exists',
    details: { field: 'name', name: 'ops' },
  })
  t.same(made.when('name.free', { channel: 'chan_9' }).events, [], 'only its channel gives it back')
  const freed = made.when('name.free', { channel: 'chan_1' })
  t.same(typesOf(freed), ['name.freed'])
  t.match(freed.when('channel.create', creation()).reply, { id: 'chan_2' })
})
t.test('reserved channel names and more than 10 agents are refused', async (t) => {
  for (const odd of ['dm-0123456789abcdef'])
    t.match(
      name().when('channel.create', { name: odd, creation: { name: odd, people: [] } }).refused,
      { refused: 'bad_request' },
    )
  t.match(
    name().when(
      'channel.create',
      creation(
        Array.from({ length: 11 }, (_, n) => `agt_${n}`),
        {},
      ),
    ).refused,
    undefined,
  )
  const agents = {
    name: 'a',
    people: Array.from({ length: 11 }, (_, n) => ({ id: `agt_${n}`, kind: 'agent' })),
  }
  t.match(name().when('channel.create', { name: 'a', creation: agents }).refused, {
    refused: 'bad_request',
  })
})
t.test(
  'a direct message has two to nine administrators and is reopened instead of created again',
  async (t) => {
    const dm = (people: string[]) =>
      name().when('channel.create', creation(people, { kind: 'dm' }), by('ann'))
    for (const people of [[], ['1', '2', '3', '4', '5', '6', '7', '8', '9']])
      t.match(dm(people).refused, {
        refused: 'bad_request',
        details: { fields: [{ field: 'member_ids' }] },
      })
    const made = dm(['bob'])
    t.match(made.tells[0]?.input, {
      channel: { kind: 'dm', private: true, display_name: undefined },
      members: [{ role: 'admin' }, { role: 'admin' }],
    })
    const again = made.when('channel.create', creation(['ann'], { kind: 'dm' }), by('bob'))
    t.same(again.events, [])
    t.match(
      [again.reply, again.tells],
      [
        { id: 'chan_1', status_code: 200 },
        [
          {
            to: { id: 'chan_1' },
            name: 'channel.reopen',
            input: {
              members: [
                { channel_id: 'chan_1', member_id: 'bob', role: 'admin' },
                { member_id: 'ann', role: 'admin' },
              ],
            },
          },
        ],
      ],
    )
  },
)

t.test('a channel is created once', async (t) => {
  const one = opened()
  t.same(typesOf(one), ['channel.created', 'confirmation.begun'])
  t.same(one.when('channel.open', { channel: settings(), members: [], holder: 'x' }).events, [])
  const gone = one.when('channel.delete', { project_admin: false }, by('ann'))
  t.match(gone.tells, [
    { to: { kind: 'channel_name', id: 'chn_1' }, name: 'name.free', input: { channel: CHANNEL } },
    { name: 'queue.cancel', input: { job_ids: ['job_1'] } },
  ])
  t.equal(gone.tells.length, 2)
  t.same(
    gone.when('channel.open', { channel: settings(), members: [], holder: 'x' }).events,
    [],
    'and never again',
  )
  for (const command of [
    'channel.delete',
    'channel.update',
    'channel.send',
    'channel.edit',
    'channel.add_member',
    'channel.remove_member',
    'channel.mark_read',
  ])
    t.equal(gone.when(command, { project_admin: true }).refused?.refused, 'not_found', command)
})
t.test('administrators change the settings', async (t) => {
  const one = opened({ topic: 'T' })
  const update = (input: object, who = 'ann', project_admin = false) =>
    one.when('channel.update', { ...input, project_admin }, { ...by(who), at: START + 1000 })
  t.match(update({ topic: null, display_name: 'Ops' }).reply, {
    topic: undefined,
    display_name: 'Ops',
    updated_at: '2026-01-01T00:00:01.000Z',
    member_count: 2,
  })
  t.same(update({ topic: null }).events[0]?.['changes'], { topic: { from: 'T' } })
  t.same(update({ topic: 'T', display_name: null }).events, [], 'nothing changes')
  t.match(update({ archived_at: '2026-01-01T00:05:00+01:00' }).reply, {
    archived_at: '2025-12-31T23:05:00.000Z',
  })
  t.match(update({ archived_at: '2026-01-01T00:05:01Z' }).reply, {
    archived_at: '2026-01-01T00:05:01.000Z',
  })
  t.match(update({ archived_at: '2026-01-01T00:05:02Z' }).refused, {
    details: { fields: [{ field: 'archived_at' }] },
  })
  t.match(update({ archived_at: 'now' }).refused, {
    details: { fields: [{ field: 'archived_at' }] },
  })
  t.notOk(
    'archived_at' in
      (update({ archived_at: '2026-01-01T00:00:00Z' }).when('channel.update', { archived_at: null })
        .reply as object),
  )
  t.equal(update({ topic: 'x' }, 'bob').refused?.refused, 'forbidden')
  t.equal(update({ topic: 'x' }, 'eve').refused?.refused, 'forbidden')
  t.match(update({ private: true }, 'eve', true).reply, { private: true })
  t.equal(
    one.when('channel.delete', { project_admin: false }, by('bob')).refused?.refused,
    'forbidden',
  )
})
t.test(
  'a private channel is hidden from all but members and project administrators; a direct message also from those',
  async (t) => {
    const closed = opened({ private: true })
    t.equal(
      closed.when('channel.update', { topic: 'x', project_admin: false }, by('eve')).refused
        ?.refused,
      'not_found',
    )
    t.match(closed.when('channel.update', { topic: 'x', project_admin: true }, by('eve')).reply, {
      topic: 'x',
    })
    for (const command of [
      'channel.send',
      'channel.edit',
      'channel.add_member',
      'channel.remove_member',
      'channel.mark_read',
    ])
      t.equal(
        closed.when(command, { project_admin: true, user_id: 'eve' }, by('eve')).refused?.refused,
        'not_found',
        command,
      )
    const dm = opened({ private: true, kind: 'dm' }, [
      member('ann', 'admin'),
      member('bob', 'admin'),
    ])
    for (const command of ['channel.update', 'channel.delete'])
      t.equal(
        dm.when(command, { project_admin: true }, by('eve')).refused?.refused,
        'not_found',
        command,
      )
    t.match(
      dm.when(
        'channel.update',
        { display_name: 'x', private: true, project_admin: false },
        by('ann'),
      ).refused,
      { details: { fields: [{ field: 'display_name' }, { field: 'private' }] } },
    )
    const archived = dm.when(
      'channel.update',
      { archived_at: '2026-01-01T00:00:00Z', project_admin: false },
      by('ann'),
    )
    const members = [member('bob', 'admin'), member('ann', 'admin')]
    t.match(archived.when('channel.reopen', { members }).events, [
      { type: 'channel.updated', channel: { archived_at: null } },
    ])
    t.same(dm.when('channel.reopen', { members }).events, [])
    t.match(
      dm.when('channel.expel', { member_id: 'bob' }).when('channel.reopen', { members }).events,
      [{ type: 'member.added', id: 'chan_1:bob', member: members[0] }],
      'an expelled member is added again',
    )
    t.same(typesOf(dm.when('channel.delete', { project_admin: false }, by('bob'))), [
      'channel.deleted',
    ])
  },
)

t.test('a deleted channel cancels the turns of its agents', async (t) => {
  const agent = { ...member('agt_1'), kind: 'agent' as const }
  const asked = opened({}, [member('ann', 'admin'), agent]).when(
    'channel.send',
    { content: '@one', mentioned: ['agt_1'] },
    by('ann'),
  )
  const gone = asked.when('channel.delete', { project_admin: false }, by('ann'))
  const [turn] = Object.values(asked.state.talks).map(({ exchange }) => exchange)
  t.match(gone.tells?.at(-1), { name: 'queue.enqueue', input: { job: { kind: 'errand' } } })
  t.strictSame(gone.ask('job_spec', { job_id: gone.state.ending?.job_id }), {
    errand: 'end_turns',
    channel_id: CHANNEL,
    turns: [{ agent_id: 'agt_1', turn_id: turn?.turn_id }],
  })
})
