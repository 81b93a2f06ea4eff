/**
 * Tool calls: dispatched once, committed together, refused when invalid, approved by people when
 * destructive.
 */
import t from 'tap'
import { ask, begun, definition, type Story, say, tool, use } from './story.ts'

const schema = { type: 'object', required: ['n'], properties: { n: { type: 'integer' } } }
const calls = (s: Story) =>
  [...s.jobs.values()]
    .filter(({ kind }) => kind === 'action_execution')
    .map(({ action_name, tool_call_id, max_attempts }) => [action_name, tool_call_id, max_attempts])
const question = (s: Story, n = 0): string => [...s.questions.keys()][n] ?? ''
const recordOf = (s: Story, id: string) =>
  (
    (s.questions.get(id) as { state: unknown }).state as {
      record: { status: string; target_user_ids: string[]; context?: object }
    }
  ).record
const by = (id: string) => ({ principal: { type: 'user' as const, id } })

t.test(
  'all calls of an answer run concurrently and are committed together, in order',
  async (t) => {
    const s = begun('go', {}, definition([tool('a.one', { idempotent: true }), tool('a.two')]))
    s.answers(say('on it'), use('1', 'a_one', { x: 1 }), use('2', 'a_two'))
    t.strictSame(calls(s), [
      ['a.one', '1', 3],
      ['a.two', '2', 1],
    ])
    const [one, two] = [...s.jobs.values()]
    t.strictSame(s.spec(one as never), { parameters: { x: 1 }, action_name: 'a.one' })
    s.settle(two as never, { outcome: 'completed', result: { ok: 2 } })
    t.strictSame(s.rows(), ['user: go'])
    s.settle(one as never, { outcome: 'failed', error_type: 'Oops', error_message: 'bad' })
    t.strictSame(s.rows(), [
      'user: go',
      'assistant: on it a_one a_two',
      'user: 1={"error_type":"Oops","error_message":"bad"} 2={"ok":2}',
    ])
    t.strictSame(s.types().filter((type) => type === 'message.block').length, 3)
    s.answers(say('done'))
    t.match(s.turn(), { status: 'completed', usage: { calls: 2 } })
    const before = s.log.length
    s.do('job.settled', {
      job_id: (one as { id: string }).id,
      outcome: 'completed',
      attempt: 1,
      result: {},
    })
    t.equal(s.log.length, before, 'a late report changes nothing')
  },
)

t.test('an invalid call gets an error result without a job', async (t) => {
  const s = begun('go', {}, definition([tool('do.it', {}, { input_schema: schema })]))
  s.answers(
    use('1', 'nothing'),
    use('2', 'do_it', {}),
    use('3', 'do_it', { n: 'x' }),
    use('4', 'service_ask_person', {}),
  )
  t.strictSame(calls(s), [])
  const results = s.log
    .filter((event) => event.type === 'message.upsert' && event.status === 'final')
    .at(-1)
  t.match(results, {
    role: 'user',
    content: [
      { is_error: true, content: /no tool "nothing"/ },
      { is_error: true, content: /"n".*is required/ },
      { is_error: true },
      { is_error: true },
    ],
  })
  t.equal(s.job().kind, 'llm_generation', 'the model is asked again')
})

t.test('ids of calls never repeat, even after compaction removed the first use', async (t) => {
  const granted = definition([tool('act')])
  const s = begun('go', {}, granted)
  const act = (n: number) => {
    s.answers(use('c', 'act', { n }))
    s.settle(s.job('action_execution'), { outcome: 'completed', result: {} })
  }
  act(1)
  act(2)
  s.answers(say('done'))
  s.do('session.compact', { session_id: 'ses_1', definition: granted })
  s.answers(say('They acted.'))
  s.invoke('again', {}, granted)
  act(3)
  const final = s.log.flatMap((event) =>
    event.type === 'message.upsert' && event.status === 'final' ? event.content : [],
  )
  t.strictSame(
    final.flatMap((block) => (block.type === 'tool_use' ? [block.id] : [])),
    ['c', 'c_4_2', 'c_9_2'],
  )
  t.strictSame(
    final.flatMap((block) => (block.type === 'tool_result' ? [block.tool_use_id] : [])),
    ['c', 'c_4_2', 'c_9_2'],
  )
})

t.test('routers take a command, and their help describes it', async (t) => {
  const s = begun(
    'go',
    {},
    definition(
      [
        tool('git.log', {}, { description: 'the log', input_schema: schema }),
        tool('git.diff'),
        tool('print'),
      ],
      { tool_presentation: 'meta' },
    ),
  )
  const { request } = s.spec(s.job()) as { request: { tools: { name: string }[] } }
  t.strictSame(
    request.tools.map(({ name }) => name),
    ['git', 'print', 'service_ask_person'],
  )
  s.answers(
    use('1', 'git', { command: 'help', args: { command: 'log' } }),
    use('2', 'git', { command: 'log', args: { n: 1 } }),
    use('3', 'git', { command: 'push' }),
    use('4', 'print', { m: 1 }),
  )
  t.strictSame(calls(s), [
    ['git.log', '2', 1],
    ['print', '4', 1],
  ])
  t.match(
    s.log
      .filter((event) => event.type === 'message.block.patch' && event.resolved_action)
      .map((event) => ('resolved_action' in event ? event.resolved_action : undefined)),
    [
      { name: 'git.log', input: { n: 1 } },
      { name: 'print', input: { m: 1 } },
    ],
  )
})

t.test('repeating the same call stalls the turn', async (t) => {
  const s = begun('go', {}, definition([tool('poll')]))
  for (let n = 1; n <= 3; n++) {
    s.answers(use(`${n}`, 'poll', { a: 1, b: 2 }))
    s.settle(s.job('action_execution'), { outcome: 'completed', result: {} })
  }
  s.answers(use('4', 'poll', { b: 2, a: 1 }))
  t.match(s.turn(), { status: 'failed', error_type: 'progress_stalled' })
  t.strictSame([...s.jobs], [])
})

t.test('ids of calls are unique in the session', async (t) => {
  const s = begun('go', {}, definition([tool('poll')]))
  s.answers(use('c', 'poll'), use('c', 'poll', { n: 2 }))
  for (const job of [...s.jobs.values()]) s.settle(job, { outcome: 'completed', result: {} })
  s.answers(use('c', 'poll', { n: 3 }))
  s.settle(s.job('action_execution'), { outcome: 'completed', result: {} })
  const used = s.log.flatMap((event) =>
    event.type === 'message.upsert' && event.status === 'final'
      ? event.content.flatMap((block) => (block.type === 'tool_use' ? [block.id] : []))
      : [],
  )
  t.equal(new Set(used).size, 3)
})

t.test('a destructive action runs only after a person approves it', async (t) => {
  const drop = definition([tool('db.drop', { destructive: true })])
  const s = begun('go', {}, drop)
  s.answers(use('1', 'db_drop', { table: 'x' }))
  t.strictSame(calls(s), [])
  t.match(s.turn(), { status: 'waiting', wait: { tool_call_id: '1' } })
  t.match(recordOf(s, question(s)), {
    kind: 'request_approval',
    target_user_ids: ['user_1'],
    context: { action: 'db.drop', parameters: { table: 'x' } },
  })
  t.equal(
    s.question(question(s), 'interaction.respond', { value: true, roles: [] }, by('mallory')),
    'forbidden',
  )
  s.question(question(s), 'interaction.respond', { value: true, roles: [] }, by('user_1'))
  t.strictSame(calls(s), [['db.drop', '1', 1]])
  t.match(s.turn(), { status: 'running' })
  s.settle(s.job('action_execution'), { outcome: 'completed', result: { dropped: 1 } })
  s.answers(use('2', 'db_drop', { table: 'y' }))
  s.question(
    question(s, 1),
    'interaction.respond',
    { value: false, comment: 'no!', roles: [] },
    by('user_1'),
  )
  t.match(s.rows().at(-1), /2=.*"approved":false.*no!/)
  t.strictSame(calls(s), [])
})

t.test('an expired approval is an error of its call, a cancelled one is not', async (t) => {
  for (const [end, status, content] of [
    ['wake', 'error', /"status":"expired","approved":false/],
    ['interaction.cancel', 'cancelled', /"status":"cancelled","approved":false/],
  ] as const) {
    const s = begun('go', {}, definition([tool('db.drop', { destructive: true })]))
    s.answers(use('1', 'db_drop', { table: 'x' }))
    if (end === 'wake') s.pass(7 * 86_400_000)
    s.question(question(s), end, {}, by('user_1'))
    t.strictSame(calls(s), [])
    const result = s.log
      .filter((event) => event.type === 'message.upsert' && event.status === 'final')
      .at(-1) as unknown as { content: { is_error?: true }[] }
    t.match(result, { content: [{ tool_use_id: '1', content }] })
    t.equal(result.content[0]?.is_error, end === 'wake' ? true : undefined)
    t.match(s.log.filter((event) => event.type === 'message.block.patch').at(-1), { status })
    s.answers(say('so'))
    t.match(s.turn(), { status: 'completed' })
  }
})

t.test('a question of a run has a depth beyond the limit, so it starts no runs', async (t) => {
  const depth = (s: Story) =>
    (s.questions.get(question(s)) as { state: { depth?: number } }).state.depth
  const free = begun()
  free.answers(ask('q'))
  t.equal(depth(free), 0)
  const s = begun()
  s.answers(say('hello'))
  s.do('turn.open', {
    turn_id: 'turn_r',
    owner: { run_id: 'run_1', step_key: 's' },
    attempt: 1,
    content: [say('x')],
    definition: definition(),
    asker: { id: 'system', type: 'system' },
  })
  s.answers(ask('q'))
  t.equal(depth(s), 9)
  t.notOk('depth' in recordOf(s, question(s)), 'no record shows it')
})

t.test('only administrators and owners approve actions of an agent', async (t) => {
  const s = begun()
  s.answers(say('x'))
  s.do(
    'session.start_turn',
    {
      session_id: 'ses_1',
      content: [say('y')],
      definition: definition([tool('rm', { destructive: true })]),
    },
    { principal: { type: 'agent', id: 'agt_2' } },
  )
  s.answers(use('1', 'rm'))
  t.match(recordOf(s, question(s)), { target_user_ids: ['role:Admin', 'role:Owner'] })
})

t.test('an answered, expired or cancelled question has one result and no error', async (t) => {
  for (const [end, content, status] of [
    ['interaction.respond', /"status":"completed","outcome":true/, 'ok'],
    ['wake', /"status":"expired"/, 'ok'],
    ['interaction.cancel', /"status":"cancelled","reason":"moot"/, 'cancelled'],
  ] as const) {
    const s = begun()
    s.answers(ask('q', { expires_in_seconds: 60 }))
    t.match(s.turn(), {
      status: 'waiting',
      wait: { expires_at: new Date(s.at + 60_000).toISOString() },
    })
    if (end === 'wake') s.pass(60_000)
    s.question(
      question(s),
      end,
      end === 'interaction.respond' ? { value: true, roles: [] } : { reason: 'moot' },
      by('user_1'),
    )
    const results = s.log
      .filter((event) => event.type === 'message.upsert' && event.status === 'final')
      .at(-1)
    t.match(results, { content: [{ tool_use_id: 'q', content }] })
    t.notMatch(results, { content: [{ is_error: true }] })
    t.match(s.log.filter((event) => event.type === 'message.block.patch').at(-1), {
      status,
      progress: null,
    })
    const order = s
      .types()
      .filter((type) => type === 'interaction.upsert' || type === 'turn.upsert')
    t.strictSame(order, [
      'turn.upsert',
      'turn.upsert',
      'interaction.upsert',
      'turn.upsert',
      'interaction.upsert',
      'turn.upsert',
      'turn.upsert',
    ])
    s.answers(say('so'))
    t.match(s.turn(), { status: 'completed' })
  }
})

t.test('a loaded skill restricts the tools for the rest of the turn', async (t) => {
  const skill = (name: string, allowed_tools: string[]) => ({
    name,
    instructions: `do ${name}`,
    allowed_tools,
  })
  const s = begun(
    'go',
    {},
    definition([tool('git.log'), tool('rm.all')], {
      skills: [skill('look', ['git']), skill('free', [])],
    }),
  )
  s.answers(use('1', 'invoke_skill', { name: 'free' }))
  s.answers(use('2', 'invoke_skill', { name: 'look' }))
  t.match(s.rows().at(-1), 'user: 2=do look')
  s.answers(use('3', 'rm_all'), use('4', 'git_log'))
  t.strictSame(calls(s), [['git.log', '4', 1]])
  s.settle(s.job('action_execution'), { outcome: 'completed', result: {} })
  t.match(s.rows().at(-1), /3=The skill look does not allow rm.all/)
})
