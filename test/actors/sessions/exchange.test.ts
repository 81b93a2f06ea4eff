/** Turns for channels in a session, and the source events that are published for its messages. */
import t from 'tap'
import type { ExchangeOpening } from '../../../protocol/channels/exchange.ts'
import { begun, definition, Story, say, tool, use } from './story.ts'

const opening = (n = 1, more: Partial<ExchangeOpening> = {}) => ({
  place: {
    root: 'ses_1',
    generation: 0,
    session_key: 'channel:chan_1',
    agent_id: 'agt_1',
    agent_name: 'Bot',
  },
  exchange_id: `cex_${n}`,
  turn_id: `turn_c${n}`,
  asker: { id: 'ann', type: 'user' as const },
  definition: definition(),
  content: [{ type: 'text' as const, text: 'ann: @bot hi' }],
  channel: { id: 'chan_1', names: { agt_2: 'Two' } },
  title: '#ops',
  private: false,
  ...more,
})
const told = (s: Story) =>
  s.last?.effects.flatMap((effect) =>
    'tell' in effect && effect.tell.to.kind === 'channel' ? [effect.tell] : [],
  ) ?? []

t.test(
  'an exchange creates a session with a turn, and the channel receives the answer',
  async (t) => {
    const s = new Story()
    s.do('exchange.open', opening())
    t.strictSame(s.last?.reply, { session_id: 'ses_1' })
    t.match(s.session.state.record, {
      origin: 'interaction',
      visibility: 'project',
      title: '#ops',
      session_key: 'channel:chan_1',
    })
    t.match(s.turn(), { id: 'turn_c1', status: 'running', channel_exchange_id: 'cex_1' })
    t.match(
      s.log.find((event) => event.type === 'message.upsert'),
      { metadata: { channel_context: { provider: 'internal', channel_id: 'chan_1' } } },
    )
    t.equal(s.do('exchange.open', opening()), undefined)
    t.strictSame(s.last?.events, [], 'a repeat changes nothing')
    s.answers(say('Hello, @two!'))
    t.strictSame(told(s), [
      {
        to: { kind: 'channel', id: 'chan_1' },
        name: 'exchange.settled',
        input: {
          exchange_id: 'cex_1',
          session_id: 'ses_1',
          turn_id: 'turn_c1',
          status: 'completed',
          text: 'Hello, @two!',
          mentioned: ['agt_2'],
        },
      },
    ])
    s.do('exchange.open', opening())
    t.strictSame(s.last?.events, [], 'nor does a repeat after the turn')
  },
)

t.test("an exchange waits in its session's queue and does not block direct turns", async (t) => {
  const s = new Story()
  s.do('exchange.open', opening())
  s.do('exchange.open', opening(2, { private: true, root: 'cmsg_1' }))
  t.equal(s.turn(2).status, 'queued')
  t.equal(s.invoke('direct'), undefined)
  s.answers(say('one'))
  t.equal(s.turn(2).status, 'running')
  t.match(told(s), [{ input: { exchange_id: 'cex_1', text: 'one' } }])
})

t.test('the last text is the answer; a failure is reported with its error type', async (t) => {
  const s = new Story()
  s.do('exchange.open', opening(1, { definition: definition([tool('look')]) }))
  s.answers(say('I look.'), use('c1', 'look'))
  s.settle(s.job('action_execution'), { outcome: 'completed', result: {} })
  s.answers(say('Seen.'))
  t.match(told(s), [{ input: { text: 'Seen.' } }])
  s.do('exchange.open', opening(2))
  s.settle(s.job(), { outcome: 'failed', error_type: 'provider_refused', error_message: 'no' })
  t.strictSame(
    told(s).map(({ input }) => input),
    [
      {
        exchange_id: 'cex_2',
        session_id: 'ses_1',
        turn_id: 'turn_c2',
        status: 'failed',
        error_type: 'provider_refused',
        error_message: 'no',
      },
    ],
  )
  s.do('exchange.open', opening(3))
  s.do('session.cancel_turn', { turn_id: 'turn_c3' })
  t.match(told(s), [{ input: { exchange_id: 'cex_3', status: 'cancelled' } }])
  s.do('exchange.open', opening(4))
  s.answers(say('x'.repeat(50_000)))
  t.match(told(s), [{ input: { text: `${'x'.repeat(39_999)}…` } }])
  s.do('exchange.open', opening(5))
  s.answers(say('😀'.repeat(25_000)))
  const [{ input: { text = '' } = {} } = {}] = told(s) as { input?: { text?: string } }[]
  t.ok(text.isWellFormed(), 'a character of two units is not cut in half')
})

t.test(
  'a deleted session refuses an exchange, so that the caller finds the next one',
  async (t) => {
    const s = new Story()
    s.do('exchange.open', opening())
    s.answers(say('bye'))
    s.do('session.delete', {})
    t.equal(s.do('exchange.open', opening(2)), 'service_unavailable')
    t.equal(
      s.do('exchange.open', opening(3, { place: { ...opening().place, agent_id: 'agt_9' } })),
      'service_unavailable',
    )
  },
)

t.test('each message of a person or the agent publishes one source event', async (t) => {
  const s = begun('hi', { input: { context: [{ name: 'board', content: 'x' }] } })
  const published = () =>
    s.last?.effects.flatMap((effect) =>
      'tell' in effect && effect.tell.name === 'source.publish' ? [effect.tell] : [],
    ) ?? []
  t.match(published(), [
    {
      to: { kind: 'events', id: 'prj_1' },
      input: {
        event_type: 'session.message.created',
        source_kind: 'session',
        source_id: 'ses_1',
        depth: 0,
      },
    },
  ])
  const { event, meta } = (published()[0]?.input ?? {}) as { event: object; meta: object }
  t.match(event, {
    session_id: 'ses_1',
    agent_id: 'agt_1',
    role: 'user',
    sequence: 2,
    content: [say('hi')],
    session_key: 'default',
    turn_id: 'turn_1',
  })
  t.strictSame(Object.keys(meta), ['session_id', 'agent_id', 'message_id', 'role'])
  s.answers(say('hello'))
  t.match(
    published(),
    [{ input: { event: { role: 'assistant', sequence: 3 } } }],
    'a streamed row is published once it is final',
  )
  s.do('session.append', {
    messages: [
      { role: 'user', content: [say('a')] },
      { role: 'system', content: [say('b')] },
    ],
  })
  t.equal(published().length, 1)
  t.notOk(
    s.session.state.window.some((row) => 'said' in row),
    'the data for source events is not in the window',
  )
  const run = new Story()
  run.invoke()
  run.do('turn.open', {
    turn_id: 'turn_r',
    owner: { run_id: 'run_1', step_key: 's' },
    attempt: 1,
    content: [say('x')],
    definition: definition(),
    asker: { id: 'system', type: 'system' },
  })
  t.match(
    run.last?.effects.flatMap((effect) => ('tell' in effect ? [effect.tell.input] : [])),
    [{ depth: 9 }],
  )
})
