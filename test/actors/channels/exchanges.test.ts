/** Agents in a channel: which messages begin an exchange with an agent, and how exchanges end. */
import * as fc from 'fast-check'
import t from 'tap'
import { channelActor } from '../../../actors/channels/channel.ts'
import type { ChannelState } from '../../../actors/channels/state.ts'
import { type Exchange, MAX_STREAK } from '../../../protocol/channels/exchange.ts'
import type { ChannelMessage } from '../../../protocol/channels/schema.ts'
import type { Outcome } from '../../support/given.ts'
import { typesOf } from '../../support/given.ts'
import { by, CHANNEL, member, opened } from './story.ts'

const agent = (id: string) => ({ ...member(id), kind: 'agent' as const })
const group = (more: object = {}) =>
  opened(more, [member('ann', 'admin'), member('bob'), agent('agt_1'), agent('agt_2')])
type Scene = Outcome<ChannelState>
const begun = (scene: Scene): Exchange[] =>
  scene.events.flatMap((event) =>
    event.type === 'exchange.begun' ? [event['exchange'] as Exchange] : [],
  )
const said = (scene: Scene): ChannelMessage[] =>
  scene.events.flatMap((event) =>
    event.type === 'message.created' ? [event['message'] as ChannelMessage] : [],
  )
const target = (id: string, more: object = {}) => ({
  reply_to: id,
  target: { id, seq: 1, sender_id: 'ann', ...more },
})
const ends = (scene: Scene, exchange: Exchange | undefined, more: object = {}) =>
  scene.when(
    'exchange.settled',
    {
      exchange_id: exchange?.id,
      session_id: 'ses_1',
      turn_id: exchange?.turn_id,
      status: 'completed',
      text: 'Done.',
      ...more,
    },
    { principal: { type: 'system', id: 'system' } },
  )

t.test('a message that mentions an agent wakes it in the same commit', async (t) => {
  const scene = group().when(
    'channel.send',
    { content: '@one go', mentioned: ['agt_1', 'agt_9'] },
    by('ann'),
  )
  t.match(scene.events, [
    { type: 'message.created', message: { id: 'cmsg_1', seq: 1 }, wakes: ['agt_1'] },
    {
      type: 'exchange.begun',
      exchange: {
        id: 'cex_1',
        agent_id: 'agt_1',
        message_id: 'cmsg_1',
        root: undefined,
        after_seq: 0,
        through_seq: 1,
        job_id: 'job_2',
        turn_id: 'turn_1',
        asker: { id: 'ann', type: 'service_account' },
      },
    },
  ])
  t.match(scene.tells, [
    {
      to: { kind: 'queue', id: '0.$errands' },
      name: 'queue.enqueue',
      input: {
        job: {
          id: 'job_2',
          kind: 'errand',
          executor_kind: 'server_worker',
          owner: { kind: 'channel', id: CHANNEL },
        },
      },
    },
  ])
  t.match(scene.ask('job_spec', { job_id: 'job_2' }), {
    errand: 'exchange',
    exchange: { id: 'cex_1' },
    channel: { id: CHANNEL, name: 'ops', kind: 'channel', private: false },
    agents: ['agt_1', 'agt_2'],
    alone: false,
  })
  t.strictSame(scene.ask('job_spec', { job_id: 'job_9' }), { errand: 'none' })
  t.equal(
    scene.state.members['agt_1']?.last_read_seq,
    1,
    'an agent has read the messages that it was shown',
  )
  t.strictSame(typesOf(group().when('channel.send', { content: 'to all' }, by('ann'))), [
    'message.created',
  ])
})

t.test(
  'messages that an agent missed because it had no turn are shown with the next call',
  async (t) => {
    const call = (scene: Scene, more: object = {}) =>
      scene.when('channel.send', { content: '@one', mentioned: ['agt_1'], ...more }, by('ann'))
    const fails = (scene: Scene, job_id: string) =>
      scene.when('job.settled', {
        job_id,
        outcome: 'failed',
        attempt: 20,
        error_type: 'agent_inactive',
      })
    const first = fails(call(group()), 'job_2')
    t.match(begun(call(first)), [{ after_seq: 0, through_seq: 2 }])
    const again = fails(call(call(group())), 'job_2')
    t.match(begun(again), [{ after_seq: 0, through_seq: 2 }], 'also when it was called meanwhile')
    const shown = ends(call(group()), { id: 'cex_1', turn_id: 'turn_1' } as Exchange)
    const later = fails(call(shown), 'job_3')
    t.match(
      begun(call(later)),
      [{ after_seq: 1, through_seq: 4 }],
      'messages shown before are not shown again',
    )
  },
)

t.test('an exchange without its answer in an archived channel is cancelled', async (t) => {
  const asked = group().when('channel.send', { content: '@one', mentioned: ['agt_1'] }, by('ann'))
  const archived_at = '2026-01-01T00:00:00Z'
  const closed = asked.when('channel.update', { archived_at, project_admin: false }, by('ann'))
  t.match(ends(closed, begun(asked)[0]).events, [
    { type: 'exchange.ended', status: 'cancelled', error_type: 'channel_archived' },
  ])
})

t.test("the answer is posted as the agent's reply, with its session and turn", async (t) => {
  const asked = group().when('channel.send', { content: '@one', mentioned: ['agt_1'] }, by('ann'))
  const [exchange] = begun(asked)
  const done = ends(asked, exchange)
  t.strictSame(typesOf(done), ['exchange.ended', 'message.created'])
  t.match(said(done), [
    {
      seq: 2,
      content: 'Done.',
      reply_to: 'cmsg_1',
      sender_id: 'agt_1',
      sender_type: 'agent',
      sender_agent_id: 'agt_1',
      sender_session_id: 'ses_1',
      metadata: { channel_exchange_id: 'cex_1', turn_id: 'turn_1' },
    },
  ])
  t.strictSame(done.state.talks, {})
  t.strictSame(ends(done, exchange).events, [], 'a repeated outcome is posted once')
  const inThread = done.when(
    'channel.send',
    { content: 'and now?', ...target('cmsg_1'), thread: ['agt_1'] },
    by('bob'),
  )
  t.match(
    begun(inThread),
    [{ root: 'cmsg_1', message_id: 'cmsg_3', after_seq: 0, through_seq: 3 }],
    'an agent called in a thread receives its replies',
  )
  t.match(said(ends(inThread, begun(inThread)[0])), [{ reply_to: 'cmsg_1' }])
  t.strictSame(
    typesOf(ends(asked, exchange, { text: undefined })),
    ['exchange.ended'],
    'without a text nothing is posted',
  )
})

t.test(
  'a turn that failed or was cancelled posts nothing, and its exchange stores the reason',
  async (t) => {
    const asked = group().when('channel.send', { content: '@one', mentioned: ['agt_1'] }, by('ann'))
    const [exchange] = begun(asked)
    const failed = ends(asked, exchange, {
      status: 'failed',
      text: 'Half of an answer',
      error_type: 'timeout',
      error_message: 'It took too long.',
    })
    t.strictSame(typesOf(failed), ['exchange.ended'])
    t.match(failed.events, [
      { status: 'failed', error_type: 'timeout', error_message: 'It took too long.' },
    ])
    t.strictSame(typesOf(ends(asked, exchange, { status: 'cancelled', text: 'Half' })), [
      'exchange.ended',
    ])
    const settled = (outcome: string, more: object = {}) =>
      asked.when('job.settled', { job_id: 'job_2', outcome, attempt: 1, ...more })
    t.strictSame(settled('completed').events, [], 'then the session has the turn')
    const unbegun = settled('failed', {
      error_type: 'agent_inactive',
      error_message: 'The agent is inactive.',
    })
    t.strictSame(typesOf(unbegun), ['exchange.ended'])
    t.match(unbegun.events, [{ error_type: 'agent_inactive', unheard: true }])
    t.strictSame(
      asked.when('job.settled', { job_id: 'job_9', outcome: 'failed', attempt: 1 }).events,
      [],
    )
  },
)

t.test(
  'calls during an exchange are answered by one next exchange with all messages since',
  async (t) => {
    const one = group().when('channel.send', { content: '@one', mentioned: ['agt_1'] }, by('ann'))
    const two = one.when('channel.send', { content: '@one also', mentioned: ['agt_1'] }, by('bob'))
    t.match(two.events, [
      { type: 'message.created', wakes: ['agt_1'] },
      { type: 'exchange.deferred', id: 'cex_1' },
    ])
    t.strictSame(two.tells, [])
    const three = two
      .when('channel.send', { content: '@one and', mentioned: ['agt_1'] }, by('ann'))
      .when('channel.send', { content: 'aside' }, by('ann'))
    const done = ends(three, begun(one)[0])
    t.match(begun(done), [
      { id: 'cex_2', message_id: 'cmsg_3', after_seq: 1, through_seq: 5, asker: { id: 'ann' } },
    ])
    t.match(said(done), [{ seq: 5, reply_to: 'cmsg_1' }])
    t.strictSame(
      typesOf(ends(done, begun(done)[0])),
      ['exchange.ended', 'message.created'],
      'two more calls lead to one more exchange',
    )
  },
)

t.test('in direct messages, every message of a person wakes the agents', async (t) => {
  const dm = opened({ kind: 'dm', private: true }, [member('ann', 'admin'), agent('agt_1')])
  const asked = dm.when('channel.send', { content: 'hello' }, by('ann'))
  t.match(begun(asked), [{ agent_id: 'agt_1' }])
  t.match(asked.ask('job_spec', { job_id: 'job_2' }), { alone: true })
  t.strictSame(begun(ends(asked, begun(asked)[0])), [], 'its own words are not')
  const speaks = dm.when(
    'channel.send',
    { content: 'I', mentioned: ['agt_1'] },
    { principal: { type: 'agent', id: 'agt_1' } },
  )
  t.strictSame(typesOf(speaks), ['message.created'], 'an agent cannot call itself')
})

t.test('agents that call each other stop at a limit; a person starts a new streak', async (t) => {
  let scene = group().when(
    'channel.send',
    { content: '@one @two', mentioned: ['agt_1', 'agt_2'] },
    by('ann'),
  )
  const open = begun(scene)
  for (let n = 0; open.length > 0 && n < 100; n++) {
    const exchange = open.shift() as Exchange
    scene = ends(scene, exchange, {
      mentioned: [exchange.agent_id === 'agt_1' ? 'agt_2' : 'agt_1'],
    })
    open.push(...begun(scene))
  }
  t.strictSame(open, [])
  const answers = scene.history.filter((event) => event.type === 'message.created').length - 1
  t.equal(answers, MAX_STREAK)
  t.strictSame(scene.state.talks, {})
  const again = scene.when(
    'channel.send',
    { content: 'go on', ...target('cmsg_1'), thread: ['agt_1'] },
    by('bob'),
  )
  const next = ends(again, begun(again)[0], { mentioned: ['agt_2'] })
  t.match(begun(next), [{ agent_id: 'agt_2', root: 'cmsg_1' }])
})

t.test(
  'an agent posts nothing after it left or after its channel was archived or deleted',
  async (t) => {
    const asked = group().when('channel.send', { content: '@one', mentioned: ['agt_1'] }, by('ann'))
    const [exchange] = begun(asked)
    const left = asked.when('channel.expel', { member_id: 'agt_1' })
    t.strictSame([left.state.talks, left.state.heard], [{}, {}])
    t.strictSame(ends(left, exchange).events, [])
    t.strictSame(left.ask('job_spec', { job_id: 'job_2' }), { errand: 'none' })
    t.strictSame(
      typesOf(
        ends(
          asked.when(
            'channel.update',
            { archived_at: '2026-01-01T00:00:00Z', project_admin: false },
            by('ann'),
          ),
          exchange,
        ),
      ),
      ['exchange.ended'],
    )
    const gone = asked.when('channel.delete', { project_admin: false }, by('ann'))
    t.match(gone.tells, [
      { name: 'name.free' },
      { to: { id: '0.$errands' }, name: 'queue.cancel', input: { job_ids: ['job_2'] } },
      { to: { id: '0.$errands' }, name: 'queue.enqueue', input: { job: { kind: 'errand' } } },
    ])
    t.strictSame(ends(gone, exchange).events, [])
  },
)

t.test('the state of an older release can be recovered', async (t) => {
  const { talks: _, heard: __, streaks: ___, ...old } = group().state
  const { recover } = channelActor({ brand: 'Service' })
  t.strictSame(recover?.(old as ChannelState, 0), group().state)
})

t.test(
  'in any order of messages and answers, agents have one exchange per thread and answer every call',
  (t) => {
    interface Step {
      readonly who: 'ann' | 'bob' | 'agt_1'
      readonly calls: readonly string[]
      readonly thread: boolean
      readonly end?: number
      readonly fail: boolean
    }
    const step: fc.Arbitrary<Step> = fc
      .record(
        {
          who: fc.constantFrom('ann' as const, 'bob' as const, 'agt_1' as const),
          calls: fc.subarray(['agt_1', 'agt_2']),
          thread: fc.boolean(),
          fail: fc.boolean(),
        },
        { requiredKeys: ['who', 'calls', 'thread', 'fail'] },
      )
      .chain((one) =>
        fc
          .option(fc.nat(5), { nil: undefined })
          .map((end) => ({ ...one, ...(end !== undefined && { end }) })),
      )
    void fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        let scene: Scene = group().when('channel.send', { content: 'root' }, by('ann'))
        const open: Exchange[] = []
        const wanted: { agent: string; seq: number }[] = []
        const note = (next: Scene) => {
          scene = next
          for (const event of next.events)
            if (event.type === 'message.created')
              for (const agent of (event['wakes'] ?? []) as string[])
                wanted.push({ agent, seq: (event['message'] as ChannelMessage).seq })
          open.push(...begun(next))
        }
        const settle = (at: number, fail: boolean) => {
          const [exchange] = open.splice(at % open.length, 1)
          note(
            ends(
              scene,
              exchange,
              fail
                ? { status: 'failed', text: undefined, error_type: 'x' }
                : { mentioned: ['agt_1', 'agt_2'] },
            ),
          )
        }
        for (const { who, calls, thread, end, fail } of steps) {
          if (end !== undefined && open.length > 0) settle(end, fail)
          else
            note(
              scene.when(
                'channel.send',
                { content: 'x', mentioned: calls, ...(thread && target('cmsg_1')) },
                { principal: { type: who === 'agt_1' ? 'agent' : 'service_account', id: who } },
              ),
            )
          const keys = open.map(({ agent_id, root }) => `${agent_id} ${root ?? ''}`)
          if (
            new Set(keys).size !== keys.length ||
            keys.length !== Object.keys(scene.state.talks).length
          )
            throw new Error(`talks ${keys.join()} and ${Object.keys(scene.state.talks).join()}`)
        }
        for (let n = 0; open.length > 0; n++) {
          if (n > 500) throw new Error('it does not end')
          settle(0, false)
        }
        const shown = scene.history.flatMap((event) =>
          event.type === 'exchange.begun'
            ? [(event as unknown as { exchange: Exchange }).exchange]
            : [],
        )
        for (const { agent, seq } of wanted)
          if (!shown.some(({ agent_id, through_seq }) => agent_id === agent && through_seq >= seq))
            throw new Error(`the call of ${agent} by ${seq} was never heard`)
        const seqs = scene.history.flatMap((event) =>
          event.type === 'message.created'
            ? [(event as unknown as { message: ChannelMessage }).message.seq]
            : [],
        )
        if (seqs.some((seq, index) => seq !== index + 1)) throw new Error(`numbers ${seqs.join()}`)
      }),
      { numRuns: 150 },
    )
    t.end()
  },
)
