/** Members of a channel: who can add and remove them, and their read markers. */
import t from 'tap'
import { limits } from '../../../protocol/channels/schema.ts'
import { typesOf } from '../../support/given.ts'
import { by, CHANNEL, member, opened } from './story.ts'

const found = (id: string, kind = 'user') => ({ person: { id, kind } })
t.test(
  'administrators add members; others can only join a public channel themselves',
  async (t) => {
    const one = () => opened()
    const added = one().when(
      'channel.add_member',
      { user_id: 'cyd', role: 'admin', ...found('cyd') },
      by('ann'),
    )
    t.match(added.reply, {
      channel_id: CHANNEL,
      member_id: 'cyd',
      user_id: 'cyd',
      kind: 'user',
      role: 'admin',
      added_by: 'ann',
      last_read_seq: 0,
    })
    t.match(added.events, [{ type: 'member.added', id: `${CHANNEL}:cyd` }])
    t.match(added.when('channel.add_member', { user_id: 'cyd', ...found('cyd') }).refused, {
      refused: 'already_member',
      details: { member_id: 'cyd' },
    })
    t.match(
      one().when('channel.add_member', { member_id: 'cyd', ...found('cyd') }, by('cyd')).reply,
      { role: 'member' },
    )
    t.equal(
      one().when(
        'channel.add_member',
        { user_id: 'cyd', role: 'admin', ...found('cyd') },
        by('cyd'),
      ).refused?.refused,
      'forbidden',
    )
    t.equal(
      one().when('channel.add_member', { user_id: 'cyd', ...found('cyd') }, by('bob')).refused
        ?.refused,
      'forbidden',
    )
    t.equal(
      opened({ private: true }).when(
        'channel.add_member',
        { user_id: 'cyd', ...found('cyd') },
        by('cyd'),
      ).refused?.refused,
      'not_found',
    )
  },
)
t.test('a new member must exist and have the stated kind; a channel can be full', async (t) => {
  const one = opened()
  const field = (input: object) =>
    (
      one.when('channel.add_member', input, by('ann')).refused?.details?.['fields'] as
        | { field: string }[]
        | undefined
    )?.[0]?.field
  t.equal(field({ user_id: 'x' }), 'user_id')
  t.equal(field({ agent_id: 'x', ...found('x') }), 'agent_id')
  t.equal(field({ user_id: 'x', ...found('x', 'agent') }), 'user_id')
  t.match(
    one.when('channel.add_member', { agent_id: 'agt_1', ...found('agt_1', 'agent') }, by('ann'))
      .reply,
    { kind: 'agent', agent_id: 'agt_1', user_id: undefined },
  )
  const agents = Array.from({ length: limits.agents }, (_, n) => ({
    ...member(`agt_${n}`),
    kind: 'agent' as const,
  }))
  t.equal(
    opened({}, [member('ann', 'admin'), ...agents]).when(
      'channel.add_member',
      { agent_id: 'a', ...found('a', 'agent') },
      by('ann'),
    ).refused?.refused,
    'conflict',
  )
  const many = [
    member('ann', 'admin'),
    ...Array.from({ length: limits.members - 1 }, (_, n) => member(`u${n}`)),
  ]
  t.equal(
    opened({}, many).when('channel.add_member', { user_id: 'a', ...found('a') }, by('ann')).refused
      ?.refused,
    'conflict',
  )
})
t.test('the last administrator cannot leave while other members remain', async (t) => {
  const one = opened()
  t.equal(
    one.when('channel.remove_member', { user_id: 'ann' }, by('ann')).refused?.refused,
    'last_admin',
  )
  t.equal(
    one.when('channel.remove_member', { user_id: 'ann' }, by('bob')).refused?.refused,
    'forbidden',
  )
  t.equal(
    one.when('channel.remove_member', { user_id: 'eve' }, by('ann')).refused?.refused,
    'not_found',
  )
  const alone = one.when('channel.remove_member', { user_id: 'bob' }, by('bob'))
  t.same(typesOf(alone), ['member.removed'])
  const empty = alone.when('channel.remove_member', { user_id: 'ann' }, by('ann'))
  t.same(empty.state.members, {})
  const two = opened({}, [member('ann', 'admin'), member('bob', 'admin')]).when(
    'channel.remove_member',
    { user_id: 'ann' },
    by('bob'),
  )
  t.same(Object.keys(two.state.members), ['bob'])
})
t.test('the exchanges of an agent end when it leaves', async (t) => {
  const agent = (id: string) => ({ ...member(id), kind: 'agent' as const })
  const asked = opened({}, [member('ann', 'admin'), agent('agt_1'), agent('agt_2')]).when(
    'channel.send',
    { content: '@one @two', mentioned: ['agt_1', 'agt_2'] },
    by('ann'),
  )
  for (const left of [
    asked.when('channel.remove_member', { user_id: 'agt_1' }, by('ann')),
    asked.when('channel.expel', { member_id: 'agt_1' }),
  ]) {
    t.match(left.events, [
      { type: 'exchange.ended', id: 'cex_1', status: 'cancelled', error_type: 'member_removed' },
      { type: 'member.removed' },
    ])
    t.equal(left.events.length, 2)
    t.strictSame(
      Object.values(left.state.talks).map(({ exchange: { agent_id } }) => agent_id),
      ['agt_2'],
      'the exchanges of other agents continue',
    )
  }
})
t.test('memberships of archived channels and of direct messages are fixed', async (t) => {
  const archived = opened({ archived_at: '2026-01-01T00:00:00.000Z' })
  t.equal(
    archived.when('channel.add_member', { user_id: 'c', ...found('c') }, by('ann')).refused
      ?.refused,
    'channel_archived',
  )
  t.equal(
    archived.when('channel.remove_member', { user_id: 'bob' }, by('bob')).refused?.refused,
    'channel_archived',
  )
  const dm = opened({ kind: 'dm', private: true })
  for (const command of ['channel.add_member', 'channel.remove_member'])
    t.equal(
      dm.when(command, { user_id: 'bob', ...found('bob') }, by('ann')).refused?.refused,
      'bad_request',
      command,
    )
  for (const scene of [archived, dm])
    t.same(
      typesOf(scene.when('channel.expel', { member_id: 'ann' })),
      ['member.removed'],
      'but a deleted principal is removed',
    )
  t.same(dm.when('channel.expel', { member_id: 'eve' }).events, [])
  t.same(typesOf(archived.when('channel.expel', { member_id: 'ann', disabled: true })), [
    'member.removed',
  ])
  t.same(
    dm.when('channel.expel', { member_id: 'ann', disabled: true }).events,
    [],
    'a disabled principal stays in a direct message',
  )
})
t.test('only the member moves its read marker, forward and up to the newest message', async (t) => {
  const one = opened()
    .when('channel.send', { content: 'a' }, by('ann'))
    .when('channel.send', { content: 'b' }, by('ann'))
  t.equal(one.state.members['ann']?.last_read_seq, 2, 'the sender has read its own message')
  const read = one.when('channel.mark_read', { user_id: 'bob', seq: 2 }, by('bob'))
  t.match([read.reply, read.state.members['bob']], [{ last_read_seq: 2 }, { last_read_seq: 2 }])
  t.match(read.when('channel.mark_read', { user_id: 'bob', seq: 1 }), {
    events: [],
    reply: { last_read_seq: 2 },
  })
  t.equal(
    one.when('channel.mark_read', { user_id: 'bob', seq: 3 }, by('bob')).refused?.refused,
    'bad_request',
  )
  t.equal(
    one.when('channel.mark_read', { user_id: 'ann', seq: 1 }, by('bob')).refused?.refused,
    'forbidden',
  )
  t.equal(
    one.when('channel.mark_read', { user_id: 'eve', seq: 1 }, by('eve')).refused?.refused,
    'not_found',
  )
})

t.test('an errand of the same commit confirms new members', async (t) => {
  const none = { errand: 'none' }
  const one = opened()
  const spec = (scene: typeof one, job_id: string) => scene.ask('job_spec', { job_id })
  t.match(one.tells, [{ name: 'queue.enqueue', input: { job: { id: 'job_1', kind: 'errand' } } }])
  t.same(spec(one, 'job_1'), { errand: 'confirm', channel_id: CHANNEL, member_ids: ['ann', 'bob'] })
  const added = one.when('channel.add_member', { user_id: 'cyd', ...found('cyd') }, by('ann'))
  t.match(added.tells, [{ name: 'queue.enqueue', input: { job: { id: 'job_2' } } }])
  t.same(spec(added, 'job_2'), { errand: 'confirm', channel_id: CHANNEL, member_ids: ['cyd'] })

  const done = added.when('job.settled', { job_id: 'job_2', outcome: 'completed' })
  t.same(spec(done, 'job_2'), none)
  t.same(Object.keys(done.state.confirmations), ['job_1'])
  t.same(done.when('job.settled', { job_id: 'job_2', outcome: 'completed' }).events, [], 'once')

  const failed = added.when('job.settled', { job_id: 'job_2', outcome: 'failed' })
  t.match(failed.tells, [{ name: 'queue.enqueue', input: { job: { id: 'job_3' } } }])
  t.same(spec(failed, 'job_2'), none)
  t.match(spec(failed, 'job_3'), { errand: 'confirm', member_ids: ['cyd'] }, 'it is begun again')

  const gone = added.when('channel.delete', { project_admin: false }, by('ann'))
  t.match(gone.tells.at(-1), { name: 'queue.cancel', input: { job_ids: ['job_1', 'job_2'] } })
  t.same(spec(gone, 'job_2'), none)
  t.same(gone.when('job.settled', { job_id: 'job_2', outcome: 'failed' }).events, [])
})
