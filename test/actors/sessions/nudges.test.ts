/** Turns of a session: nudges, context, outputs and compaction. */
import t from 'tap'
import { limits } from '../../../protocol/sessions/limits.ts'
import type { NudgeAck } from '../../../protocol/sessions/schema.ts'
import { ask, begun, definition, message, type Story, say, tool, use } from './story.ts'

const nudge = (s: Story, content: string, more: Record<string, unknown> = {}): NudgeAck | string =>
  s.do('session.nudge', {
    session_id: 'ses_1',
    content,
    content_hash: content,
    definition: definition(),
    ...more,
  }) ?? (s.last?.reply as NudgeAck)
const statuses = (s: Story) =>
  Object.fromEntries(
    s.log
      .flatMap((event) =>
        event.type === 'nudge.queued' ? [[event.nudge.content, event.nudge.status]] : [],
      )
      .map(([content, status], n) => [
        content,
        s.log
          .filter((event) => event.type === 'nudge.changed')
          .filter(({ id }) => id === `nudge_${n + 1}`)
          .at(-1)?.nudge.status ?? status,
      ]),
  )

t.test('a nudge is delivered at the next boundary, including the end of the turn', async (t) => {
  const s = begun('go', {}, definition([tool('act')]))
  s.answers(use('1', 'act'))
  t.match(nudge(s, 'left'), { delivery: 'current_turn', status: 'pending' })
  s.settle(s.job('action_execution'), { outcome: 'completed', result: {} })
  t.match(s.rows().slice(-1), ['user: user-direction'])
  t.match(nudge(s, 'right'), { delivery: 'current_turn' })
  s.answers(say('fine'))
  t.match(s.turn(), { status: 'running' })
  s.answers(say('right it is'))
  t.match(s.turn(), { status: 'completed' })
  t.strictSame(statuses(s), { left: 'delivered', right: 'delivered' })
  const indexes = s.log.flatMap((event) =>
    event.type === 'message.upsert' && event.status === 'final' ? [event.turn_index] : [],
  )
  t.strictSame(
    indexes,
    indexes.map((_, n) => n),
    'rows of a turn are numbered as they come',
  )
})

t.test(
  'pending nudges of a failed turn become a new turn; those of a cancelled turn are cancelled',
  async (t) => {
    const s = begun('go')
    nudge(s, 'help')
    s.settle(s.job(), { outcome: 'failed', error_type: 'x', error_message: 'y' })
    t.match([s.turn(1).status, s.turn(2).status], ['failed', 'running'])
    t.match(
      s.log.find(
        (event) =>
          event.type === 'message.upsert' && event.metadata?.['session_nudge_id'] === 'nudge_1',
      ),
      { content: [{ type: 'text', text: 'help' }] },
    )
    nudge(s, 'more')
    s.do('session.cancel_turn', { session_id: 'ses_1', turn_id: s.turn(2).id })
    t.strictSame(statuses(s), { help: 'delivered', more: 'cancelled' })
    t.match(nudge(s, 'alone'), { delivery: 'new_turn', status: 'delivered' })
    t.equal(s.invoke('direct'), undefined, "a nudge's turn does not stand in the way")
    t.match(s.turn(4), { status: 'queued' })
  },
)

t.test('a nudge that starts a turn makes an archived session active', async (t) => {
  const s = begun('go')
  s.answers(say('done'))
  s.do('session.update', { session_id: 'ses_1', status: 'archived' })
  t.match(nudge(s, 'again'), { delivery: 'new_turn', session: { status: 'active' } })
  s.do('session.update', { session_id: 'ses_1', status: 'archived' })
  t.match(nudge(s, 'more'), { delivery: 'current_turn', session: { status: 'archived' } })
  s.settle(s.job(), { outcome: 'failed', error_type: 'x', error_message: 'y' })
  t.match(s.turn(3), { status: 'running' })
  t.match(
    s.log.filter(({ type }) => type === 'session.updated').at(-1),
    { session: { status: 'active' } },
    'the nudge became a turn',
  )
})

t.test('a nudge with wake interrupts a question but not an approval', async (t) => {
  const s = begun('go', {}, definition([tool('rm', { destructive: true })]))
  s.answers(ask('q'))
  const first = nudge(s, 'stop', { wake: true, idempotency_key: 'k' }) as NudgeAck
  t.match(first, { delivery: 'current_turn', woke_turn: true })
  t.match(s.rows().slice(-2), [
    'user: q={"interrupted":true,"reason":"user_direction"}',
    'user: user-direction',
  ])
  t.match(s.turn(), { status: 'running' })
  t.match(
    nudge(s, 'stop', { idempotency_key: 'k' }),
    { nudge_id: first.nudge_id, deduped: true, woke_turn: true },
    'a repeat has the answer of the first time',
  )
  s.answers(use('2', 'rm'))
  t.match(nudge(s, 'now', { wake: true }), { woke_turn: false })
  t.match(s.turn(), { status: 'waiting' })
})

t.test('an active turn accepts nudges even if the agent could not start a new one', async (t) => {
  const unfit = { definition: undefined, unfit: { refused: 'agent_inactive' } }
  const s = begun('go')
  s.answers(ask('q'))
  t.match(nudge(s, 'on', { ...unfit, wake: true }), { delivery: 'current_turn', woke_turn: true })
  nudge(s, 'more', unfit)
  s.settle(s.job(), { outcome: 'failed', error_type: 'x', error_message: 'y' })
  t.match(s.turn(2), { status: 'running' }, 'it uses the definition of the nudged turn')
  s.answers(say('x'))
  t.equal(nudge(s, 'again', unfit), 'agent_inactive')
})

t.test(
  'the limit on pending nudges keeps the commit of a failing turn within bounds',
  async (t) => {
    const s = begun('go', {}, definition([tool('act')]))
    s.answers(use('1', 'act'))
    for (let n = 1; n < 50; n++) t.match(nudge(s, `n${n}`), { delivery: 'current_turn' })
    t.equal(nudge(s, 'one too many'), 'conflict')
    s.settle(s.job('action_execution'), { outcome: 'completed', result: {} })
    for (let n = 50; n < 99; n++) t.match(nudge(s, `n${n}`), { delivery: 'current_turn' })
    const delivered = s.log.length
    s.settle(s.job(), { outcome: 'failed', error_type: 'x', error_message: 'y' })
    t.ok(
      s.log.length - delivered < 400,
      `${s.log.length - delivered} events of the 500 that one command may cause`,
    )
    t.match([s.turn(1).status, s.turn(2).status, s.turn(3).status], ['failed', 'running', 'queued'])
    t.match(nudge(s, 'last'), { delivery: 'current_turn' })
    t.equal(nudge(s, 'full'), 'conflict', 'they are as many turns as there may be')
  },
)

t.test('an idempotency key is valid for one nudge', async (t) => {
  const s = begun('go')
  const first = nudge(s, 'a', { idempotency_key: 'k' })
  t.match(nudge(s, 'a', { idempotency_key: 'k' }), {
    nudge_id: (first as NudgeAck).nudge_id,
    deduped: true,
    delivery: 'current_turn',
  })
  t.equal(nudge(s, 'b', { idempotency_key: 'k' }), 'conflict')
  s.answers(say('x'))
  t.match(
    nudge(s, 'a', { idempotency_key: 'k' }),
    { deduped: true, status: 'pending' },
    'the answer is that of the admission',
  )
})

t.test('a valid submitted output ends the turn; an invalid one does not', async (t) => {
  const output = {
    schema: { type: 'object', required: ['n'], properties: { n: { type: 'integer' } } },
  }
  const s = begun('go', { output })
  s.answers(use('1', 'service_submit_output', { n: 'x' }))
  s.answers(use('2', 'service_submit_output', { n: 2 }))
  t.match(s.turn(), { status: 'completed', output: { n: 2 }, output_source: 'tool' })
  const failing = begun('go', { output })
  failing.answers(say('{"n": 1.5}'))
  t.match(failing.turn(), { status: 'failed', error_type: 'output_schema_unsatisfied' })
})

t.test('context is stored when it is new, changed, or removed by a compaction', async (t) => {
  const small = definition([], { compaction: { strategy: 'auto', threshold_tokens: 10 } })
  const rows = (s: Story) =>
    s.log.flatMap((event) =>
      event.type === 'context.stored'
        ? event.message.content.map((block) =>
            block.type === 'reminder' ? `${block.name}=${block.content}` : '',
          )
        : [],
    )
  const s = begun('1', { input: { context: [{ name: 'a', content: 'x' }] } }, small)
  s.answers(say('y'))
  t.match(s.job(), { kind: 'llm_generation', provider: 'local' })
  t.notOk(s.job().agent_turn_id, 'a compaction belongs to no turn')
  t.match(s.types().slice(-2), ['compaction.started', 'session.updated'])
  s.answers(say('summary'))
  t.match(s.log.filter((event) => event.type === 'message.upsert').at(-1), {
    role: 'compaction',
    entry_type: 'compaction',
    covers_through_sequence: 3,
    sequence: 4,
    turn_index: null,
  })
  s.invoke('2', {}, small)
  t.strictSame(rows(s), ['app-a=x', 'app-a=x'])
  t.match(s.spec(s.job()), {
    request: {
      messages: [
        {
          role: 'user',
          content: [{ text: /Summary/ }, { text: 'summary' }, { text: /app-a.*x/s }, say('2')],
        },
      ],
    },
  })
  s.settle(s.job(), {
    outcome: 'completed',
    result: message([say('z')], { usage: { input_tokens: 1, output_tokens: 1 } }),
  })
  s.settle(s.job(), { outcome: 'failed', error_type: 'x', error_message: 'no' })
  t.match(s.log.filter((event) => event.type === 'compaction.failed').at(-1), {
    error_type: 'summarizer_error',
  })
  s.invoke(
    '3',
    {
      input: {
        context: [
          { name: 'a', content: 'x' },
          { name: 'b', content: 'y' },
        ],
      },
    },
    small,
  )
  t.strictSame(rows(s), ['app-a=x', 'app-a=x', 'app-b=y'])
})

t.test(
  'context values last as long as the session, and the number of names is limited',
  async (t) => {
    const all = Array.from({ length: limits.context.names }, (_, n) => ({
      name: `n${n}`,
      content: 'x',
    }))
    const rows = (s: Story, from: number) =>
      s.log
        .slice(from)
        .flatMap((event) =>
          event.type === 'context.stored'
            ? event.message.content.map((block) => ('name' in block ? block.name : ''))
            : [],
        )
    const s = begun(
      'go',
      { input: { context: all.slice(1) } },
      definition([tool('act', {}, { kind: 'http' })]),
    )
    s.answers(use('1', 'act'))
    s.settle(s.job('action_execution'), {
      outcome: 'completed',
      result: {},
      context: [all[0], { name: 'more', content: 'x' }, { name: 'n1', content: 'y' }],
    })
    t.same(
      rows(s, 0).slice(-2),
      ['app-n0', 'app-n1'],
      'an action adds only as many names as allowed',
    )
    s.answers(say('y'))
    t.equal(s.invoke('2', { input: { context: [{ name: 'more', content: 'x' }] } }), 'conflict')
    s.do('session.compact', { session_id: 'ses_1', definition: definition() })
    s.answers(say('summary'))
    const before = s.log.length
    t.equal(s.invoke('3', { input: { context: [{ name: 'n7', content: 'z' }] } }), undefined)
    t.same(
      rows(s, before).sort(),
      all.map(({ name }) => `app-${name}`).sort(),
      'all are stored again',
    )
  },
)

t.test('a compaction times out, and then the session can be compacted again', async (t) => {
  const s = begun('1')
  s.answers(say('2'))
  const compact = () => s.do('session.compact', { session_id: 'ses_1', definition: definition() })
  compact()
  t.equal(compact(), 'conflict')
  t.match(s.session.ask('detail'), {
    compaction: { in_progress: true, through_sequence: 2, message_count: 2 },
  })
  s.pass(30_000)
  s.do('wake', {})
  t.match(s.session.ask('detail'), { compaction: { in_progress: false } })
  t.match(s.log.filter((event) => event.type === 'compaction.failed').at(-1), {
    error_type: 'timeout',
  })
  compact()
  s.answers(say(' '))
  t.match(s.log.filter((event) => event.type === 'compaction.failed').at(-1), {
    error_type: 'empty_summary',
  })
  compact()
  s.answers(say('all'))
  const before = s.log.length
  t.equal(compact(), undefined)
  t.equal(s.log.length, before, 'nothing is new')
})

t.test('a summary replaces an earlier one that was written after the rows it covers', async (t) => {
  const s = begun('1')
  s.answers(say('2'))
  const compact = () => s.do('session.compact', { session_id: 'ses_1', definition: definition() })
  compact()
  s.do('session.append', { messages: [{ role: 'user', content: [say('during the pass')] }] })
  s.invoke('ask me')
  s.answers(say('first summary'))
  s.answers(ask('q'))
  t.match(s.turn(2), { status: 'waiting' }, 'rows of this turn are not covered')
  compact()
  t.match(
    s.session.ask('detail'),
    { compaction: { from_sequence: 3, through_sequence: 3, message_count: 1 } },
    'the pass begins after the rows of the first summary',
  )
  s.answers(say('second summary'))
  t.same(
    s.session.state.window.map(({ sequence, entry_type }) => [sequence, entry_type]),
    [
      [6, 'compaction'],
      [4, 'message'],
    ],
  )
  nudge(s, 'go on', { wake: true })
  const request = JSON.stringify(s.spec(s.job()))
  t.match(request, 'second summary')
  t.notMatch(request, 'first summary')
})

t.test('a summary does not separate appended tool uses from their results', async (t) => {
  const s = begun('1')
  s.answers(say('2'))
  const compact = () => s.do('session.compact', { session_id: 'ses_1', definition: definition() })
  const append = (role: string, ...content: Record<string, unknown>[]) =>
    s.do('session.append', { messages: [{ role, content }] })
  const result = (id: string) => ({ type: 'tool_result', tool_use_id: id, content: 'done' })
  append('assistant', use('a', 'look'), use('b', 'look'))
  append('tool', result('a'))
  compact()
  t.match(s.session.ask('detail'), { compaction: { from_sequence: 1, through_sequence: 2 } })
  append('tool', result('b'))
  s.answers(say('first summary'))
  s.invoke('and now?')
  const { request } = s.spec(s.job()) as { request: { messages: { content: unknown[] }[] } }
  t.match(request.messages, [
    { role: 'user', content: [{}, { text: 'first summary' }] },
    { role: 'assistant', content: [{ id: 'a' }, { id: 'b' }] },
    { role: 'user', content: [result('a'), result('b'), { text: 'and now?' }] },
  ])
  s.answers(say('3'))
  compact()
  t.match(s.session.ask('detail'), { compaction: { from_sequence: 3, through_sequence: 8 } })
})
