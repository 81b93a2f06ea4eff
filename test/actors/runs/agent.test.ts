/**
 * Steps and checks that use an agent: the lookup of the turn's definition, the messages to the
 * session, and the result of the step.
 */
import t from 'tap'
import type { RunState } from '../../../actors/runs/state.ts'
import type { Spec, Step } from '../../../protocol/workflows/spec.ts'
import { type Outcome, type Scene, typesOf } from '../../support/given.ts'
import { definition } from '../sessions/story.ts'
import { action, payload, record, sleep, started, step } from './story.ts'

type Open = Record<string, unknown>
const schema = { type: 'object', properties: { word: { type: 'string' } }, required: ['word'] }
const agent = (config: Open = {}, more: Partial<Step> = {}): Step =>
  ({
    id: 'a',
    kind: 'agent',
    config: { agent_id: 'helper', instructions: 'Say ${{ input.what }}', ...config },
    ...more,
  }) as Step
const begun = (steps: readonly Step[] = [agent()], spec: Partial<Spec> = {}) =>
  started(steps, spec, { input: { what: 'hi' } })
/** Sends the turn's definition to the run, as an executor does after the lookup. */
const define = (scene: Scene<RunState>, turn_id = 'turn_1', session_id = 'ses_1') =>
  scene.when('turn.defined', {
    turn_id,
    session_id,
    definition: definition(),
    place: {
      root: session_id,
      generation: 0,
      session_key: 'k',
      agent_id: 'agt_1',
      agent_name: 'Bot',
    },
    seed: {},
  })
const settle = (
  scene: Scene<RunState>,
  more: Open = {},
  turn_id = 'turn_1',
  session_id = 'ses_1',
) => scene.when('turn.settled', { turn_id, session_id, status: 'completed', text: 'done', ...more })
const told = (after: Outcome<RunState>, name: string): Open | undefined =>
  after.effects.flatMap((effect) =>
    'tell' in effect && effect.tell.name === name ? [effect.tell as unknown as Open] : [],
  )[0]

t.test('a turn is looked up, opened in its session, and its answer is the output', async (t) => {
  const asked = begun()
  t.match(record(asked), { status: 'suspended', agent_turns_used: 1 })
  t.match(step(asked, 'a'), {
    status: 'suspended',
    agent_turn_id: 'turn_1',
    inputs: {
      agent: 'helper',
      instructions: 'Say hi',
      session: { scope: 'loop', ref_id: 'run_1', name: 'default' },
    },
    waiting_on: { kind: 'agent' },
  })
  t.match(asked.tells, [
    {
      to: { kind: 'queue', id: '0.$openings' },
      name: 'queue.enqueue',
      input: {
        job: { id: 'job_1', kind: 'opening', run_id: 'run_1', executor_kind: 'server_worker' },
      },
    },
  ])
  t.match(asked.ask('job_spec', { job_id: 'job_1' }), {
    turn_id: 'turn_1',
    agent: 'helper',
    session: { name: 'default' },
    step: {},
  })
  const opened = define(asked)
  t.match(payload(opened, 'turn.opened'), {
    step: 'a',
    agent_id: 'agt_1',
    session_id: 'ses_1',
    turn_id: 'turn_1',
    attempt: 1,
  })
  t.match(told(opened, 'turn.open'), {
    to: { kind: 'session', id: 'ses_1' },
    input: {
      turn_id: 'turn_1',
      owner: { run_id: 'run_1', step_key: 'a' },
      attempt: 1,
      content: [{ type: 'text', text: 'Say hi' }],
      asker: { id: 'user_1', type: 'user' },
    },
  })
  t.equal(opened.ask('job_spec', { job_id: 'job_1' }), null, 'it is looked up once')
  t.match(step(opened, 'a'), { session_id: 'ses_1', agent_id: 'agt_1', status: 'suspended' })
  t.same(define(opened).events, [], 'a second answer changes nothing')
  t.same(settle(opened, {}, 'turn_9').events, [], 'the outcome of another turn is ignored')
  t.same(
    opened.when('job.settled', { job_id: 'job_1', outcome: 'completed', attempt: 1 }).events,
    [],
  )
  const ended = settle(opened)
  t.match(record(ended), { status: 'completed', result: { a: { text: 'done' } } })
  t.same(settle(ended).events, [], 'a repeat changes nothing')
})

t.test("the turn receives the output schema, and its output is the step's output", async (t) => {
  const opened = define(
    begun([agent({ output_schema: schema }), sleep('b', '0')], {
      output: { said: '${{ steps.a.output.word }}' },
    }),
  )
  t.match(told(opened, 'turn.open'), { input: { output_schema: schema } })
  t.match(record(settle(opened, { output: { word: 'yes' }, text: undefined })), {
    status: 'completed',
    result: { said: 'yes' },
  })
})

t.test('the settings of the step limit the turn', async (t) => {
  const asked = begun(
    [
      agent(
        {
          tool_names: ['crm.find'],
          disable_tools: true,
          max_turns: 3,
          model_route: { mode: 'managed', model: 'm' },
          session: { thinking_effort: 'low' },
        },
        { timeout: { duration: '1500ms' } },
      ),
    ],
    { limits: { max_duplicate_tool_calls: 5 } },
  )
  t.same(asked.ask('job_spec', { job_id: 'job_1' }), {
    turn_id: 'turn_1',
    agent: 'helper',
    trigger: 'api',
    asker: 'user_1',
    session: { scope: 'loop', ref_id: 'run_1', name: 'default' },
    step: {
      timeout_seconds: 2,
      thinking_effort: 'low',
      max_duplicate_tool_calls: 5,
      model_route: { mode: 'managed', model: 'm' },
      tool_names: ['crm.find'],
      disable_tools: true,
      max_turns: 3,
    },
  })
  t.equal(asked.deadline(), asked.at + 1500)
  t.match(
    begun([agent()], { limits: { max_duplicate_tool_calls: 0 } }).ask('job_spec', {
      job_id: 'job_1',
    }),
    { step: { max_duplicate_tool_calls: 0 } },
    '0 is no bound, not the default',
  )
})

t.test('the policy of the step names the session', async (t) => {
  const session = (config: Open, spec: Partial<Spec> = {}) =>
    step(begun([agent({ session: config })], spec), 'a')?.inputs?.['session']
  t.same(
    session({
      scope: 'agent',
      name: 'case ${{ input.what }}',
      title: 'For ${{ agent.id }} in ${{ step.id }}',
      visibility: 'private',
    }),
    {
      scope: 'agent',
      ref_id: 'helper',
      name: 'case hi',
      title: 'For helper in a',
      visibility: 'private',
    },
  )
  t.match(session({ name: '${{ run.id }}' }), { scope: 'loop', name: 'run_1' })
  t.match(
    session(
      {},
      {
        defaults: { agent_session: { name: 'shared', compaction_policy: { strategy: 'manual' } } },
      },
    ),
    { name: 'shared', compaction_policy: { strategy: 'manual' } },
  )
  t.match(step(begun([agent()]), 'a')?.inputs?.['session'], { name: 'default' })
  t.match(
    step(started([agent()], {}, { metadata: { channel_id: 'chan_1', thread_id: 'msg_1' } }), 'a')
      ?.inputs?.['session'],
    { name: 'channel:chan_1:msg_1' },
  )
  t.match(record(begun([agent({ session: { name: '${{ "x" + input.what }}'.repeat(300) } })])), {
    status: 'failed',
    error_type: 'session_invalid',
  })
})

t.test("a failed turn is retried by the step's policy, as a new turn", async (t) => {
  const first = settle(define(begun([agent({}, { retry: { max_attempts: 2 } })])), {
    status: 'failed',
    error_type: 'max_iterations',
    error: 'too often',
    text: undefined,
  })
  t.match(record(first), { status: 'suspended', agent_turns_used: 2 })
  t.match(step(first, 'a'), { attempt: 2, agent_turn_id: 'turn_2' })
  t.match(payload(first, 'step.retried'), {
    error_type: 'max_iterations',
    attempt: 2,
    max_attempts: 2,
  })
  t.match(told(define(first, 'turn_2'), 'turn.open'), { input: { attempt: 2 } })
  const second = settle(define(first, 'turn_2'), { status: 'cancelled' }, 'turn_2')
  t.match(record(second), { status: 'failed', error_type: 'turn_cancelled' })
  t.match(record(settle(define(second.when('run.retry', {}), 'turn_3'), {}, 'turn_3')), {
    status: 'completed',
    agent_turns_used: 3,
  })
  const none = begun().when('job.settled', {
    job_id: 'job_1',
    outcome: 'failed',
    attempt: 1,
    error_type: 'agent_not_found',
    error_message: 'no such agent',
  })
  t.match(record(none), {
    status: 'failed',
    error_type: 'agent_not_found',
    error_message: 'no such agent',
  })
})

t.test('a turn whose session was deleted is looked up again', async (t) => {
  const again = settle(define(begun()), { status: 'failed', again: true, error: 'gone' })
  t.match(again.tells, [
    { name: 'queue.enqueue', input: { job: { id: 'job_2', kind: 'opening' } } },
  ])
  t.match(record(again), { status: 'suspended', agent_turns_used: 1 })
  t.same(settle(again, { status: 'failed', again: true }).events, [], 'a repeat changes nothing')
  t.match(record(settle(define(again, 'turn_1', 'ses_2'), {}, 'turn_1', 'ses_2')), {
    status: 'completed',
  })
})

t.test('cancelling stops the turn, and the run ends with it', async (t) => {
  const early = begun().when('run.cancel', { reason: 'enough' })
  t.match(record(early), { status: 'cancelled' })
  t.match(early.tells, [
    { to: { id: '0.$openings' }, name: 'queue.cancel', input: { job_ids: ['job_1'] } },
  ])
  t.same(define(early).events, [], 'a late definition opens no turn')
  const stopping = define(begun()).when('run.cancel', { reason: 'enough' })
  t.match(told(stopping, 'turn.stop'), {
    to: { kind: 'session', id: 'ses_1' },
    input: { turn_id: 'turn_1' },
  })
  t.match(record(stopping), { status: 'suspended', cancel_requested: true })
  t.match(record(settle(stopping, { status: 'cancelled' })), { status: 'cancelled' })
  const late = settle(stopping)
  t.match(
    [record(late).status, step(late, 'a')?.status],
    ['cancelled', 'completed'],
    'the completed step stays completed',
  )
  const full = begun([action('z'), agent()]).when('job.settled', {
    job_id: 'job_1',
    outcome: 'completed',
    attempt: 1,
    result: { text: 'x'.repeat(3.5 * 1024 * 1024) },
  })
  const large = settle(define(full).when('run.cancel'), { text: 'x'.repeat(3.5 * 1024 * 1024) })
  t.match(
    [record(large), step(large, 'a'), typesOf(large).slice(-2)],
    [{ status: 'cancelled' }, { status: 'failed' }, ['step.failed', 'run.cancelled']],
    'an answer that the run cannot retain',
  )
})

t.test('a timeout, a signal or a cancelled branch stops the turn', async (t) => {
  const opened = define(begun([agent({}, { timeout: { duration: '10s' } })]))
  const timed = opened.when('wake', {}, { at: opened.at + 10_000 })
  t.match(
    [record(timed), told(timed, 'turn.stop')],
    [{ status: 'failed', error_type: 'timeout' }, { input: { turn_id: 'turn_1' } }],
  )
  t.same(settle(timed).events, [])
  const signalled = define(begun()).when('run.signal', { step_key: 'a', result: { by: 'hand' } })
  t.match(
    [record(signalled), told(signalled, 'turn.stop')],
    [{ status: 'completed', result: { a: { by: 'hand' } } }, {}],
  )
  const branches = {
    id: 'p',
    kind: 'parallel',
    config: {
      join: 'any',
      branches: [
        { id: 'x', steps: [agent()] },
        { id: 'y', steps: [agent()] },
      ],
    },
  } as unknown as Step
  const racing = define(define(begun([branches]), 'turn_1'), 'turn_2', 'ses_2')
  t.match(step(racing, 'p'), { status: 'suspended' })
  const won = settle(racing, { text: 'first' })
  t.match(record(won), {
    status: 'completed',
    result: { p: { winner: 'x', branches: { x: { a: { text: 'first' } } } } },
  })
  t.match(told(won, 'turn.stop'), { to: { id: 'ses_2' }, input: { turn_id: 'turn_2' } })
  const cancelled = racing.when('run.cancel', {})
  t.match(record(cancelled), { status: 'suspended' })
  t.match(
    record(
      settle(
        settle(cancelled, { status: 'cancelled' }),
        { status: 'cancelled' },
        'turn_2',
        'ses_2',
      ),
    ),
    { status: 'cancelled' },
  )
})

t.test('turns and credits of a run are limited', async (t) => {
  const limited = settle(
    define(begun([agent(), agent({}, { id: 'b' })], { limits: { max_agent_turns: 1 } })),
  )
  t.match(record(limited), {
    status: 'failed',
    stop_reason: 'turn_limit_reached',
    agent_turns_used: 1,
  })
  const opened = define(begun([agent()], { limits: { credit_budget: 2 } }))
  const spend = (scene: Scene<RunState>, id: string, milli: number) =>
    scene.when('usage.record', {
      usage_id: id,
      category: 'llm.tokens',
      quantity: 10,
      credit_cost_milli: milli,
      step_key: 'a',
    })
  const some = spend(opened, 'job_8', 1999)
  t.match(payload(some, 'usage.recorded'), {
    category: 'llm.tokens',
    credit_spent: 1.999,
    step_id: 'run_1:a',
  })
  t.match(record(some), { status: 'suspended' })
  const over = spend(some, 'job_9', 1)
  t.match(
    [record(over), told(over, 'turn.stop')],
    [{ status: 'failed', stop_reason: 'budget_exceeded' }, { input: { turn_id: 'turn_1' } }],
  )
  const stalled = settle(define(begun()), {
    status: 'failed',
    error_type: 'progress_stalled',
    error: 'again and again',
    stalled: { tool: 'crm.find', duplicate_calls: 4, limit: 3 },
  })
  t.match(payload(stalled, 'run.progress_stalled'), {
    step: 'a',
    tool: 'crm.find',
    duplicate_calls: 4,
    limit: 3,
  })
  t.match(record(stalled), { status: 'failed', stop_reason: 'progress_stalled' })
})

t.test('an agent judges a check', async (t) => {
  const check = (
    more: Open = {},
    assertions: readonly Open[] = [
      {
        name: 'kind',
        kind: 'agent',
        agent: 'judge',
        prompt: 'Is ${{ input.what }} kind?',
        evidence: ['z'],
      },
    ],
  ) =>
    ({
      id: 'c',
      kind: 'check',
      config: {
        checks: [{ name: 'sum', kind: 'expr', expr: '1 + 1 == 2' }, ...assertions],
        ...more,
      },
    }) as unknown as Step
  const asked = begun([sleep('z', '0'), check()])
  t.match(step(asked, 'c'), {
    status: 'suspended',
    inputs: {
      agent: 'judge',
      instructions: /^Is hi kind\?[\s\S]*## z[\s\S]*\{\}/,
      session: { name: 'check:run_1:c:1:1' },
    },
    verdict_detail: { checks: [{ pass: true }, { name: 'kind' }] },
  })
  const opened = define(asked)
  t.match(told(opened, 'turn.open'), { input: { output_schema: { required: ['pass', 'reason'] } } })
  const passed = settle(opened, { output: { pass: true, reason: 'It is.' } })
  t.match(step(passed, 'c'), {
    status: 'completed',
    verdict: 'pass',
    verdict_detail: {
      checks: [
        { name: 'sum', pass: true },
        {
          name: 'kind',
          kind: 'agent',
          agent: 'agt_1',
          pass: true,
          reason: 'It is.',
          agent_turn_id: 'turn_1',
        },
      ],
      failed: [],
    },
  })
  t.match(record(settle(opened, { output: { pass: false, reason: 'Rude.' } })), {
    status: 'failed',
    stop_reason: 'check_failed',
  })
  t.match(
    step(settle(opened, { status: 'failed', error_type: 'timeout', error: 'too slow' }), 'c')
      ?.verdict_detail,
    { failed: ['kind'], checks: [{}, { pass: false, error: 'too slow' }] },
    'a judge that fails has not let it pass',
  )

  const two = begun([
    sleep('z', '0'),
    check({ on_fail: 'gate', gate: { targets: ['ada'] } }, [
      { name: 'one', kind: 'agent', prompt: 'One?' },
      { name: 'bad', kind: 'agent', prompt: '${{ input.what - 1 }}' },
      { name: 'three', kind: 'agent', prompt: 'Three?' },
    ]),
  ])
  t.match(two.ask('job_spec', { job_id: 'job_1' }), { turn_id: 'turn_1', agent: undefined })
  const second = settle(define(two), { output: { pass: true, reason: 'yes' } })
  t.match(step(second, 'c'), {
    status: 'suspended',
    agent_turn_id: 'turn_2',
    verdict_detail: {
      checks: [{}, { pass: true }, { pass: false, error: /./ }, { name: 'three' }],
    },
  })
  const gate = settle(define(second, 'turn_2'), { output: { pass: true, reason: 'yes' } }, 'turn_2')
  t.match(payload(gate, 'interaction.requested'), { targets: ['ada'] })
  t.match(record(gate), { status: 'suspended', agent_turns_used: 2 })
  t.match(
    record(
      begun([sleep('z', '0'), check({}, [{ name: 'one', kind: 'agent', prompt: 'One?' }])], {
        limits: { max_agent_turns: 0 },
      }),
    ),
    { status: 'suspended' },
  )
  const bounded = settle(
    define(
      begun(
        [
          sleep('z', '0'),
          check({}, [
            { name: 'one', kind: 'agent', prompt: 'One?' },
            { name: 'two', kind: 'agent', prompt: 'Two?' },
          ]),
        ],
        { limits: { max_agent_turns: 1 } },
      ),
    ),
    { output: { pass: true, reason: 'yes' } },
  )
  t.match(record(bounded), { status: 'failed', stop_reason: 'turn_limit_reached' })
})

t.test('resuming does not change a turn, and a step without an agent fails', async (t) => {
  const resumed = define(begun()).when('run.resume', {})
  t.match(record(resumed), { status: 'suspended' })
  t.match(record(settle(resumed)), { status: 'completed' })
  t.match(record(begun([agent({ agent_id: undefined }), action('b')])), {
    status: 'failed',
    error_type: 'agent_not_found',
  })
  t.match(record(begun([agent({ instructions: '${{ input.nothing }} ' })])), {
    status: 'failed',
    error_type: 'instructions_empty',
  })
})
