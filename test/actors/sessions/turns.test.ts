/** The sequence of turns: admission, generations, time budgets, cancellation. */
import t from 'tap'
import type { TurnAck } from '../../../protocol/sessions/schema.ts'
import { ask, begun, definition, message, Story, say, tool, use } from './story.ts'

t.test('a message creates session, row, turn and generation in one commit', async (t) => {
  const s = begun('hi')
  t.strictSame(s.types(), [
    'session.created',
    'turn.admitted',
    'turn.extra',
    'message.upsert',
    'turn.upsert',
    'turn.upsert',
    'turn.noted',
    'turn.noted',
    'message.upsert',
    'session.updated',
  ])
  const ack = s.last?.reply as TurnAck
  t.match(ack, {
    deduped: false,
    after_sequence: 1,
    resume_cursor: '0',
    turn: { status: 'queued', effective_timeout_seconds: 600 },
    user_message: { sequence: 1, turn_index: 0 },
    session: { message_count: 1, version: 2 },
  })
  t.notOk('wait' in ack.turn)
  t.match(s.job(), {
    kind: 'llm_generation',
    owner: { kind: 'session', id: 'ses_1' },
    provider: 'local',
    model: 'm',
    max_attempts: 3,
  })
  t.match(s.spec(s.job()), {
    request: {
      messages: [{ role: 'user', content: [say('hi')] }],
      tools: [{ name: 'service_ask_person' }],
    },
  })
  s.answers(say('hello'))
  t.strictSame(s.rows(), ['user: hi', 'assistant: hello'])
  t.match(s.turn(), {
    status: 'completed',
    phase: null,
    usage: { input_tokens: 10, output_tokens: 5, calls: 1 },
  })
  const streamed = s.log.filter((event) => event.type === 'message.upsert')
  t.equal(streamed[1]?.id, streamed[2]?.id, 'the row keeps its id')
  t.match(streamed[1], { status: 'streaming', sequence: null, turn_index: 1, content: [] })
})

t.test('a repeated key returns the first turn; a second concurrent turn is refused', async (t) => {
  const s = begun('hi', { input: { idempotency_key: ' k ' } })
  const before = s.log.length
  t.equal(s.invoke('other', { input: { idempotency_key: 'k' }, config: {} }), undefined)
  t.match(s.last?.reply, { deduped: true, resume_cursor: '0', after_sequence: 1 })
  t.equal(s.invoke('more'), 'session_turn_active')
  t.match(s.last?.refused?.details, { status: 'running' })
  t.equal(s.log.length, before, 'neither wrote anything')
  s.answers(say('x'))
  s.invoke('again', { input: { idempotency_key: 'k' } })
  t.match(s.last?.reply, { deduped: true })
  t.equal(s.invoke('next', { input: { idempotency_key: ' ' } }), undefined)
  t.match(s.last?.reply, { deduped: false, resume_cursor: '6', after_sequence: 3 })
})

t.test('without a definition, known turns are returned and new ones refused', async (t) => {
  const s = begun('hi', { input: { idempotency_key: 'k' } })
  const before = s.log.length
  const unfit = { refused: 'agent_inactive', details: { agent_id: 'agt_1' } }
  t.equal(s.invoke('hi', { input: { idempotency_key: 'k' }, unfit }), undefined)
  t.match(s.last?.reply, { deduped: true, turn: { id: 'turn_1' } })
  t.equal(s.invoke('hi', { input: { idempotency_key: 'other' }, unfit }), 'agent_inactive')
  t.strictSame(s.last?.refused, unfit)
  t.equal(s.log.length, before)
  const none = new Story()
  t.equal(none.invoke('hi', { input: { idempotency_key: 'k' }, unfit }), 'agent_inactive')
  t.strictSame(none.log, [], 'no session was made either')
})

t.test(
  'while a turn is active, another is refused for this reason if no definition is available',
  (t) => {
    const s = begun('hi')
    const down = { refused: 'definition_resolver_unavailable' }
    t.equal(s.invoke('more', { unfit: down }), 'session_turn_active')
    t.equal(s.invoke('more', { unfit: { refused: 'agent_inactive' } }), 'agent_inactive')
    s.answers(say('x'))
    t.equal(s.invoke('more', { unfit: down }), 'definition_resolver_unavailable')
    t.end()
  },
)

t.test(
  'a message with a block of type file is dropped; the turn uses earlier messages or fails',
  async (t) => {
    const dropped = [say('look'), { type: 'file', file_id: 'f' }]
    const s = begun('', { input: { content: dropped } })
    const ack = s.last?.reply as TurnAck
    t.notOk('user_message' in ack)
    t.match(ack, { after_sequence: 0, session: { message_count: 0 } })
    t.match(s.turn(), { status: 'failed', error_type: 'invalid_conversation_state' })
    t.notMatch(JSON.stringify(s.log), 'look')
    const append = (...messages: object[]) =>
      s.do('session.append', { session_id: 'ses_1', messages })
    append({ role: 'user', content: dropped }, { role: 'user', content: [say('hello')] })
    t.strictSame(s.rows(), ['user: hello'])
    s.invoke('', { input: { content: dropped } })
    t.match(s.spec(s.job()), { request: { messages: [{ role: 'user', content: [say('hello')] }] } })
    s.answers(say('hi'))
    t.strictSame(s.rows(), ['user: hello', 'assistant: hi'])
  },
)

t.test('a generation that fails, is invalid or is cut off fails the turn', async (t) => {
  for (const [outcome, error_type] of [
    [{ outcome: 'failed', error_type: 'Boom', error_message: 'no' }, 'Boom'],
    [{ outcome: 'completed', result: { output: 'x' } }, 'InvalidResult'],
    [
      { outcome: 'completed', result: message([{ type: 'tool_result', tool_use_id: 'x' }]) },
      'InvalidResult',
    ],
    [
      { outcome: 'completed', result: message([use('a', 'x')], { stop_reason: 'max_tokens' }) },
      'max_tokens',
    ],
  ] as const) {
    const s = begun()
    s.settle(s.job(), outcome)
    t.match(s.turn(), { status: 'failed', error_type })
    t.notOk('usage' in s.turn())
    t.strictSame(s.rows(), ['user: hello'])
    t.strictSame([...s.jobs], [])
  }
  const s = begun()
  s.settle(s.job(), {
    outcome: 'completed',
    result: message([say('cut')], { stop_reason: 'max_tokens' }),
  })
  t.match(s.turn(), { status: 'completed' })
})

t.test('a retried generation starts its row again', async (t) => {
  const s = begun()
  const before = s.log.length
  s.do('job.retried', { job_id: s.job().id, attempt: 1, max_attempts: 3, reason: 'failure' })
  t.strictSame(s.types(before), ['message.upsert'])
  s.answers(say('x'))
  t.strictSame(s.rows(), ['user: hello', 'assistant: x'])
})

t.test('only running time counts against the budget', async (t) => {
  const s = begun('go', {}, definition([], { timeout_seconds: 10 }))
  t.equal(s.session.deadline(), s.at + 10_000)
  s.pass(4000)
  s.answers(ask('q'))
  t.match(s.turn(), { status: 'waiting', wait: { kind: 'interaction', tool_call_id: 'q' } })
  t.equal(s.session.deadline(), undefined)
  s.pass(3_600_000)
  s.do('wake', {})
  t.match(s.turn(), { status: 'waiting' })
  s.question(
    String(s.turn().wait?.interaction_id),
    'interaction.respond',
    { value: true, roles: [] },
    { principal: { type: 'user', id: 'user_1' } },
  )
  t.match(s.turn(), { status: 'running' })
  t.equal(s.session.deadline(), s.at + 6000)
  s.pass(6000)
  s.do('wake', {})
  t.match(s.turn(), { status: 'failed', error_type: 'timeout' })
  t.match(s.log.filter((event) => event.type === 'turn.extra').at(-1), {
    extra: { error_scope: 'agent_turn' },
  })
  t.strictSame([...s.jobs], [])
})

t.test('a cancelled turn first cancels its jobs and questions', async (t) => {
  const s = begun('go', {}, definition([tool('act')]))
  s.answers(use('a', 'act'), ask('q'))
  t.match(s.turn(), { status: 'running' }, 'a job is under way')
  const question = [...s.questions.keys()][0] ?? ''
  s.do('session.cancel_turn', { session_id: 'ses_1', turn_id: s.turn().id })
  t.strictSame([...s.jobs], [])
  t.match(((s.questions.get(question) as { state: unknown }).state as { record: object }).record, {
    status: 'cancelled',
  })
  t.strictSame(
    s
      .types()
      .filter((type) => type === 'turn.upsert' || type === 'interaction.upsert')
      .slice(-2),
    ['interaction.upsert', 'turn.upsert'],
  )
  t.match(s.turn(), { status: 'cancelled' })
  t.strictSame(s.rows(), ['user: go'])
  const before = s.log.length
  s.do('session.cancel_turn', { session_id: 'ses_1', turn_id: s.turn().id })
  s.do('job.settled', { job_id: 'job_2', outcome: 'completed', attempt: 1, result: {} })
  t.equal(s.log.length, before)
  t.equal(s.invoke('next'), undefined)
})

t.test('a turn that waits for people lets the next one run', async (t) => {
  const s = begun('first')
  s.do('turn.open', {
    turn_id: 'turn_r',
    owner: { run_id: 'run_1', step_key: 'ask' },
    attempt: 1,
    content: [say('step')],
    definition: definition(),
    asker: { id: 'system', type: 'system' },
  })
  t.match(s.turn(2), { status: 'queued' })
  s.answers(ask('q'))
  t.match([s.turn(1).status, s.turn(2).status], ['waiting', 'running'])
})

t.test(
  'turns of runs have separate admission, and clients cancel them only with force',
  async (t) => {
    const s = new Story()
    s.do('session.create', {
      agent_id: 'agt_1',
      place: {
        root: 'ses_1',
        generation: 0,
        session_key: 'k',
        agent_id: 'agt_1',
        agent_name: 'Bot',
      },
    })
    const opening = {
      turn_id: 'turn_r',
      owner: { run_id: 'run_1', step_key: 'ask' },
      attempt: 2,
      content: [say('step')],
      definition: definition(),
      asker: { id: 'system', type: 'system' },
    }
    s.do('turn.open', opening)
    s.do('turn.open', opening)
    t.equal(s.jobs.size, 1)
    t.match(s.turn(), {
      id: 'turn_r',
      run_id: 'run_1',
      step_key: 'ask',
      attempt: 2,
      status: 'running',
    })
    t.match(s.job(), { origin: 'agent_llm_call', run_id: 'run_1', owner: { kind: 'session' } })
    t.equal(s.invoke('direct'), undefined)
    t.match(s.turn(2), { status: 'queued' }, 'one runs at a time')
    t.equal(
      s.do('session.cancel_turn', { session_id: 'ses_1', turn_id: 'turn_r' }),
      'turn_owned_by_run',
    )
    s.do('session.cancel', { session_id: 'ses_1' })
    t.match([s.turn(1).status, s.turn(2).status], ['running', 'cancelled'])
    s.do('session.cancel', { session_id: 'ses_1', force: true })
    t.match(s.turn(1), { status: 'cancelled' })
    s.do('turn.open', opening)
    t.equal(s.jobs.size, 0, 'an ended turn is not opened again')
  },
)

t.test('a session with bounded retention expires after its idle time', async (t) => {
  const s = begun('x', {
    session: { retention: { mode: 'bounded', ttl_seconds: 3600 } },
    input: { idempotency_key: 'k' },
  })
  t.equal(s.session.deadline(), s.at + 600_000, 'not while a turn runs')
  s.pass(1000)
  s.answers(say('y'))
  t.equal(s.session.deadline(), s.at + 3_600_000)
  t.match(s.session.ask('standing'), {
    exists: true,
    gone: false,
    session: { expires_at: new Date(s.at + 3_600_000).toISOString() },
  })
  s.pass(3_600_000)
  t.match(s.session.ask('standing'), { exists: true, gone: false })
  t.equal(
    s.invoke('late', { input: { idempotency_key: 'k' } }),
    'service_unavailable',
    'the edge looks again',
  )
  s.do('wake', {})
  t.strictSame(s.types().slice(-1), ['session.expired'])
  t.match(s.session.ask('standing'), { gone: true, session: { status: 'deleted' } })
  t.equal(s.session.deadline(), undefined)
})

t.test('the message of a queued turn comes last in its request', async (t) => {
  const s = begun('first')
  s.do('turn.open', {
    turn_id: 'turn_r',
    owner: { run_id: 'run_1', step_key: 'ask' },
    attempt: 1,
    content: [say('second')],
    definition: definition(),
    asker: { id: 'system', type: 'system' },
  })
  s.answers(say('one'))
  t.match(s.turn(2), { status: 'running' })
  const { request } = s.spec(s.job()) as { request: { messages: { content: object[] }[] } }
  t.match(request.messages, [
    { content: [say('first')] },
    { content: [say('one')] },
    { content: [say('second')] },
  ])
  s.answers(say('two'))
  t.match(s.turn(2), { status: 'completed' })
})

t.test('the model is not shown the message of a turn that is still queued', async (t) => {
  const s = begun('first', {}, definition([tool('act')]))
  s.answers(use('a', 'act'))
  s.do('turn.open', {
    turn_id: 'turn_r',
    owner: { run_id: 'run_1', step_key: 'ask' },
    attempt: 1,
    content: [say('second')],
    definition: definition(),
    asker: { id: 'system', type: 'system' },
  })
  s.settle(s.job('action_execution'), { outcome: 'completed', result: {} })
  const shown = () =>
    (s.spec(s.job()) as { request: { messages: { content: object[] }[] } }).request.messages
  t.match(shown(), [
    { content: [say('first')] },
    { content: [{ type: 'tool_use', id: 'a' }] },
    { content: [{ type: 'tool_result', tool_use_id: 'a' }] },
  ])
  t.equal(shown().length, 3)
  s.answers(say('one'))
  t.same(shown().at(-1)?.content, [say('second')])
  t.equal(shown().length, 5)
})

t.test('the model is not shown answers without a text or a call', async (t) => {
  const s = begun('1')
  s.answers({ type: 'thinking', thinking: 'hm' })
  t.match(s.turn(1), { status: 'completed' })
  s.invoke('2')
  s.answers({ type: 'thinking', thinking: 'hm' }, say('\n'))
  s.invoke('3')
  s.answers({ type: 'thinking', thinking: 'hm' }, say('answer'))
  t.equal(s.rows().length, 6, 'the transcript contains them')
  s.invoke('4')
  const { request } = s.spec(s.job()) as { request: { messages: object[] } }
  t.same(request.messages, [
    { role: 'user', content: [say('1'), say('2'), say('3')] },
    { role: 'assistant', content: [{ type: 'thinking', thinking: 'hm' }, say('answer')] },
    { role: 'user', content: [say('4')] },
  ])
})
