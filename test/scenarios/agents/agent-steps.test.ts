/** Agent steps of workflows and loops, over real HTTP with the scripted model. */
import t from 'tap'
import { service } from '../../support/service.ts'
import { ended, type Found, fieldsOf, idsOf, listOf, timelineOf, until } from '../support/given.ts'
import { placeOf } from '../support/talk.ts'

const models = JSON.stringify({
  providers: [
    {
      provider: 'priced',
      kind: 'scripted',
      models: [
        { id: 'dear', context_window_tokens: 100_000, price: { input: 1000, output: 1000 } },
      ],
    },
  ],
  default: 'service/scripted',
})
const s = await service({ BATON_MODELS: models })
t.teardown(() => s.stop())

type Open = Record<string, unknown>
const agentWith = (name: string, script: string, more: Open = {}): Promise<Found> =>
  s.ok('agent.create', { name, system_prompt: script, tool_presentation: 'flat', ...more })
const asking = (config: Open, more: Open = {}): Open => ({
  id: 'ask',
  kind: 'agent',
  config,
  ...more,
})
const start = (steps: readonly Open[], more: Open = {}, input: Open = {}): Promise<Found> =>
  s.ok('run.start', { spec: { steps, ...more }, input })
const stepOf = async (run: Found, key: string): Promise<Found> =>
  listOf(await s.ok('run.steps', { id: run['id'] })).find(
    (step) => String(step['step_key']) === key,
  ) as Found
const turnOf = async (step: Found): Promise<Found> =>
  s.ok('session.turn', { session_id: step['session_id'], turn_id: step['agent_turn_id'] })

t.test('a workflow uses the output of an agent in a later step', async (t) => {
  const writer = await agentWith(
    'writer',
    'script:\n  - when: "count * letters of *"\n    call: {submit: {word: "{{2}}", letters: 3}}\n',
  )
  const schema = {
    type: 'object',
    properties: { word: { type: 'string' }, letters: { type: 'integer', minimum: 1 } },
    required: ['word', 'letters'],
    additionalProperties: false,
  }
  const workflow = await s.ok('workflow.create', {
    name: 'Letters',
    spec: {
      input: { word: { required: true } },
      steps: [
        asking({
          agent_id: 'writer',
          instructions: 'Count the letters of ${{ input.word }}',
          output_schema: schema,
        }),
        {
          id: 'sure',
          kind: 'check',
          config: {
            checks: [{ name: 'three', kind: 'expr', expr: 'steps.ask.output.letters == 3' }],
          },
        },
      ],
      output: { text: '${{ steps.ask.output.word }} has ${{ steps.ask.output.letters }}' },
    },
  })
  const begun = await s.ok('workflow.run', { id: workflow['id'], input: { word: 'fox' } })
  const run = await ended(s, begun['id'])
  t.match(run, { status: 'completed', result: { text: 'fox has 3' } })
  const step = await stepOf(run, 'ask')
  t.match(step, {
    status: 'completed',
    agent_id: writer['id'],
    session_id: /^ses_/,
    agent_turn_id: /^turn_/,
    result: { word: 'fox', letters: 3 },
    inputs: { agent: 'writer' },
  })
  t.match(await turnOf(step), {
    status: 'completed',
    run_id: run['id'],
    step_key: 'ask',
    attempt: 1,
    output: { word: 'fox' },
    output_source: 'tool',
    agent_id: writer['id'],
  })
  t.match(await s.ok('session.get', { session_id: step['session_id'] }), {
    origin: 'loop',
    scope: 'loop',
    scope_ref_id: workflow['id'],
    session_key: 'default',
    visibility: 'project',
  })
  t.strictSame(await timelineOf(s, run['id']), [
    'run.started',
    'step.started',
    'step.suspended',
    'wait.opened',
    'run.suspended',
    'turn.opened',
    'usage.recorded',
    'wait.resumed',
    'step.resumed',
    'step.completed',
    'run.resumed',
    'step.started',
    'check.passed',
    'step.completed',
    'run.completed',
  ])
  t.match(
    listOf(await s.ok('run.jobs', { id: run['id'] })),
    [{ kind: 'llm_generation', origin: 'agent_llm_call', run_id: run['id'], step_key: 'ask' }],
    'the list of jobs contains no lookups',
  )
  await s.refused(
    'session.cancel_turn',
    { session_id: step['session_id'], turn_id: 'turn_x' },
    404,
    'not_found',
  )
})

t.test('runs of a loop share one session, or use one session each', async (t) => {
  await agentWith(
    'memo',
    'script:\n  - when: {turn: 1}\n    say: first\n  - say: "again, turn {{turn}}"\n',
  )
  const loop = await s.ok('loop.create', {
    name: 'Memo',
    agent_id: 'memo',
    steps: [
      asking({
        instructions: 'Note ${{ event.n }}',
        session: { title: 'Notes of ${{ loop.name }}' },
      }),
    ],
  })
  const results: unknown[] = []
  for (const n of [1, 2])
    results.push(
      (await ended(s, (await s.ok('loop.start', { id: loop['id'], event: { n } }))['id']))[
        'result'
      ],
    )
  t.strictSame(results, [{ ask: { text: 'first' } }, { ask: { text: 'again, turn 2' } }])
  const [session] = listOf(await s.ok('session.list', { agent_name: 'memo', scope: 'loop' })) as [
    Found,
  ]
  t.match(session, { title: 'Notes of Memo', scope_ref_id: loop['id'], message_count: 4 })
  const found = async (more: Open = {}) =>
    idsOf(await s.ok('session.list', { agent_name: 'memo', session_key: 'default', ...more }))
  t.strictSame(
    [await found(), await found({ scope: 'loop' })],
    [[], [session['id']]],
    'a key without a scope refers to a session of the agent scope',
  )
  await s.ok('loop.update', {
    id: loop['id'],
    steps: [asking({ instructions: 'Note', session: { name: 'run ${{ run.id }}' } })],
  })
  const fresh = await ended(s, (await s.ok('loop.start', { id: loop['id'] }))['id'])
  t.match(fresh, { result: { ask: { text: 'first' } }, agent_turns_used: 1 })
  await s.ok('loop.update', {
    id: loop['id'],
    steps: [asking({ instructions: 'Note', session: { scope: 'agent', name: 'desk' } })],
  })
  const shared = await ended(s, (await s.ok('loop.start', { id: loop['id'] }))['id'])
  const direct = await s.ok('agent.invoke', {
    agent_ref: { name: 'memo' },
    session: { session_key: 'desk' },
    input: { content: [{ type: 'text', text: 'hello' }] },
  })
  t.equal(
    placeOf(direct).session_id,
    (await stepOf(shared, 'ask'))['session_id'],
    'the step and the invocation use the same session',
  )
})

t.test('a failed turn fails the attempt, and a retry starts a new turn', async (t) => {
  const output_schema = {
    type: 'object',
    properties: { done: { type: 'boolean' } },
    required: ['done'],
  }
  await agentWith(
    'moody',
    'script:\n  - when: {turn: 1}\n    say: Later.\n  - call: {submit: {done: true}}\n',
  )
  const run = await ended(
    s,
    (
      await start([
        asking(
          { agent_id: 'moody', instructions: 'Work', output_schema },
          { retry: { max_attempts: 2, delay: '10ms' } },
        ),
      ])
    )['id'],
  )
  t.match(run, { status: 'completed', result: { ask: { done: true } } })
  const step = await stepOf(run, 'ask')
  t.match(step, { attempt: 2 })
  t.strictSame(
    listOf(await s.ok('session.turns', { session_id: step['session_id'] })).map(
      ({ status, attempt, error_type }) => [status, attempt, error_type],
    ),
    [
      ['failed', 1, 'output_schema_unsatisfied'],
      ['completed', 2, undefined],
    ],
  )
  const failed = await ended(
    s,
    (
      await start([
        asking({
          agent_id: 'moody',
          instructions: 'Work',
          output_schema,
          session: { name: '${{ run.id }}' },
        }),
      ])
    )['id'],
  )
  t.match(failed, { status: 'failed', error_type: 'output_schema_unsatisfied' })
  t.match(await ended(s, (await s.ok('run.retry', { id: failed['id'] }))['id']), {
    status: 'completed',
  })
})

t.test('cancelling a run cancels its turn', async (t) => {
  await agentWith('slow', 'script:\n  - delay: 1m\n    say: too late\n')
  const run = await start([asking({ agent_id: 'slow', instructions: 'Wait' })])
  const step = await until(
    () => stepOf(run, 'ask'),
    (found) => found?.['session_id'] !== undefined,
  )
  await until(
    () =>
      s.call('session.turn', { session_id: step['session_id'], turn_id: step['agent_turn_id'] }),
    ({ body }) => body['status'] === 'running',
  )
  t.match(
    await s.refused(
      'session.cancel_turn',
      { session_id: step['session_id'], turn_id: step['agent_turn_id'] },
      409,
      'turn_owned_by_run',
    ),
    { details: { run_id: run['id'] } },
  )
  t.match(await s.ok('run.get', { id: run['id'] }), {
    status: 'suspended',
    paths: [{ waiting_on: { kind: 'agent' } }],
  })
  await s.ok('run.cancel', { id: run['id'] })
  t.match(await ended(s, run['id']), { status: 'cancelled' })
  t.match(await turnOf(step), { status: 'cancelled' })
})

t.test('a step limits the tools, turns and cost of its agent', async (t) => {
  const toolkit = await s.ok('toolkit.create', {
    name: 'Both',
    actions: [
      { selector_type: 'exact', selector: 'crm.find' },
      { selector_type: 'exact', selector: 'crm.drop' },
    ],
  })
  const busy = await agentWith(
    'busy',
    'script:\n  - when: {step: 1}\n    call: [{crm.drop: {}}, {crm.find: {}}]\n' +
      '  - say: "{{results.0}} / {{results.1}}"\n',
  )
  await s.ok('agent.assign_toolkits', { id: busy['id'], toolkit_ids: [toolkit['id']] })
  const worker = await s.worker({ action_names: ['crm.find', 'crm.drop'] })
  const run = await start([
    asking({ agent_id: 'busy', instructions: 'Look', tool_names: ['crm.find'] }),
  ])
  const job = await worker.job()
  t.match(job, { action_name: 'crm.find', origin: 'agent_tool_call', run_id: run['id'] })
  await worker.report(job, { status: 'completed', result: { found: 1 } })
  t.match(await ended(s, run['id']), {
    status: 'completed',
    result: { ask: { text: /no tool|not|unknown|drop/i } },
  })
  worker.close()
  await agentWith('endless', 'script:\n  - call: {crm.find: {n: "{{step}}"}}\n')
  t.match(
    await ended(
      s,
      (
        await start([
          asking({ agent_id: 'endless', instructions: 'Go', disable_tools: true, max_turns: 2 }),
        ])
      )['id'],
    ),
    { status: 'failed', error_type: 'max_iterations' },
  )
  t.match(
    await ended(
      s,
      (
        await start(
          [
            asking({ agent_id: 'memo', instructions: 'One' }),
            asking({ agent_id: 'memo', instructions: 'Two' }, { id: 'two' }),
          ],
          { limits: { max_agent_turns: 1 } },
        )
      )['id'],
    ),
    { status: 'failed', error_type: 'turn_limit_reached' },
  )
  const loop = await s.ok('loop.create', {
    name: 'Dear',
    limits: { credit_budget: 1 },
    steps: [
      asking({
        agent_id: 'memo',
        instructions: 'Spend',
        model_route: { mode: 'managed', provider: 'priced', model: 'dear' },
      }),
      asking({ agent_id: 'memo', instructions: 'More' }, { id: 'more' }),
    ],
  })
  const spent = await ended(s, (await s.ok('loop.start', { id: loop['id'] }))['id'])
  t.match(spent, { status: 'failed', stop_reason: 'budget_exceeded', agent_turns_used: 1 })
  t.ok(Number(spent['credit_spent']) >= 1, `${spent['credit_spent']} credits`)
  t.match(
    listOf(await s.ok('run.steps', { id: spent['id'] })),
    [{ step_key: 'ask', status: 'completed', result: { text: /./ } }],
    'the answer that exceeded the budget is stored',
  )
  await s.ok('loop.update', {
    id: loop['id'],
    steps: [
      asking({
        agent_id: 'memo',
        instructions: 'Spend',
        model_route: { mode: 'managed', provider: 'priced', model: 'dear' },
      }),
    ],
  })
  t.match(
    await ended(s, (await s.ok('loop.start', { id: loop['id'] }))['id']),
    { status: 'completed' },
    'the budget is checked only before a further step',
  )
})

t.test('an agent judges a check', async (t) => {
  await agentWith(
    'judge',
    'script:\n  - when: "*kind words*\\"text\\": \\"first\\"*"\n' +
      '    call: {submit: {pass: true, reason: It says first.}}\n  - call: {submit: {pass: false, reason: No.}}\n',
  )
  const steps = (prompt: string) => [
    asking({ agent_id: 'memo', instructions: 'Speak', session: { name: '${{ run.id }}' } }),
    {
      id: 'sure',
      kind: 'check',
      config: {
        checks: [
          { name: 'kind', kind: 'agent', agent: 'judge', prompt, evidence: ['ask'] },
          { name: 'sum', kind: 'expr', expr: '1 + 1 == 2' },
        ],
      },
    },
  ]
  const passed = await ended(s, (await start(steps('Are these kind words?')))['id'])
  t.match(passed, {
    status: 'completed',
    result: {
      sure: {
        verdict: 'pass',
        checks: [{ name: 'kind', pass: true, reason: 'It says first.' }, { pass: true }],
      },
    },
  })
  t.match(await ended(s, (await start(steps('Is it short?')))['id']), {
    status: 'failed',
    error_type: 'check_failed',
    error_message: 'Failed: kind',
  })
  const own = await ended(
    s,
    (
      await start([
        {
          id: 'sure',
          kind: 'check',
          config: {
            on_fail: 'continue',
            checks: [{ name: 'own', kind: 'agent', prompt: 'Is it so?' }],
          },
        },
      ])
    )['id'],
  )
  t.match(
    own,
    {
      status: 'completed',
      result: {
        sure: {
          verdict: 'fail',
          checks: [{ agent: 'service-reviewer', pass: false, error: /schema|output/ }],
        },
      },
    },
    'the scripted reviewer gives no verdict',
  )
})

t.test('a definition is rejected with the field that names an unknown agent', async (t) => {
  const nobody = asking({ agent_id: 'nobody', instructions: 'Do' })
  const judged = {
    kind: 'check',
    config: { checks: [{ name: 'a', kind: 'agent', agent: 'nobody', prompt: 'Well?' }] },
  }
  t.strictSame(
    fieldsOf(
      await s.refused(
        'workflow.create',
        {
          name: 'Nobody',
          spec: {
            steps: [
              nobody,
              { id: 'p', kind: 'parallel', config: { branches: [{ id: 'x', steps: [judged] }] } },
            ],
          },
        },
        400,
        'bad_request',
      ),
    ),
    [
      'spec.steps[0].config.agent_id',
      'spec.steps[1].config.branches[0].steps[0].config.checks[0].agent',
    ],
  )
  t.strictSame(
    fieldsOf(await s.refused('run.start', { spec: { steps: [nobody] } }, 400, 'bad_request')),
    ['spec.steps[0].config.agent_id'],
  )
  t.strictSame(
    fieldsOf(
      await s.refused(
        'loop.create',
        { name: 'Nobody', agent_id: 'nobody', steps: [asking({ instructions: 'Do' })] },
        400,
        'bad_request',
      ),
    ),
    ['agent_id'],
  )
  t.strictSame(
    fieldsOf(
      await s.refused(
        'loop.create',
        { name: 'Nobody', steps: [asking({ instructions: 'Do' })] },
        400,
        'bad_request',
      ),
    ),
    ['steps[0].config.agent_id'],
  )
  t.strictSame(
    fieldsOf(
      await s.refused(
        'run.start',
        {
          spec: {
            steps: [
              asking({
                agent_id: 'memo',
                instructions: ' ',
                output_schema: { type: 'array' },
                session: {
                  name: '${{ odd }}',
                  compaction_policy: { threshold: 'xs', threshold_tokens: 5 },
                },
                model_route: { mode: 'worker' },
              }),
            ],
          },
        },
        400,
        'bad_request',
      ),
    ),
    [
      'spec.steps[0].config.instructions',
      'spec.steps[0].config.output_schema.type',
      'spec.steps[0].config.session.name',
      'spec.steps[0].config.session.compaction_policy.threshold_tokens',
      'spec.steps[0].config.model_route.provider',
    ],
  )
  const gone = await agentWith('gone', '')
  const loop = await s.ok('loop.create', {
    name: 'Gone',
    agent_id: gone['id'],
    steps: [asking({ instructions: 'Do' })],
  })
  t.strictSame(
    fieldsOf(await s.refused('loop.update', { id: loop['id'], agent_id: '' }, 400, 'bad_request')),
    ['steps[0].config.agent_id'],
  )
  await s.ok('agent.update', { id: gone['id'], status: 'inactive' })
  t.match(await ended(s, (await s.ok('loop.start', { id: loop['id'] }))['id']), {
    status: 'failed',
    error_type: 'agent_inactive',
  })
  await s.ok('agent.delete', { id: gone['id'] })
  t.match(await ended(s, (await s.ok('loop.start', { id: loop['id'] }))['id']), {
    status: 'failed',
    error_type: 'agent_not_found',
  })
})
