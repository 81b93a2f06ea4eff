/** Runs of loops: waiting for a slot, spending, recovery. */
import t from 'tap'
import { run } from '../../../actors/runs/run.ts'
import type { RunState } from '../../../actors/runs/state.ts'
import type { LoopRun } from '../../../protocol/loops/run.ts'
import type { Spec, Step } from '../../../protocol/workflows/spec.ts'
import { given, type Outcome, typesOf } from '../../support/given.ts'
import { action, payload, settle, wait } from './story.ts'

const opening = (
  steps: readonly Step[],
  more: Record<string, unknown> = {},
  spec: Partial<Spec> = {},
): Record<string, unknown> => ({
  loop: { id: 'loop_1', version_id: 'lver_1', version: 3, name: 'Nightly' },
  spec: { steps, ...spec },
  definitions: {},
  event: { n: 1 },
  config: { c: 2 },
  meta: { from: 'x' },
  source: { type: 'api', label: 'ci' },
  depth: 0,
  ...more,
})
const open = (
  steps: readonly Step[],
  more: Record<string, unknown> = {},
  spec: Partial<Spec> = {},
): Outcome<RunState> => given<RunState>(run).when('run.open', opening(steps, more, spec))
const shown = (scene: Pick<Outcome<RunState>, 'ask'>): LoopRun => scene.ask('get') as LoopRun
/** Sends the loop's answer to the failure that the run has reported. The run then ends. */
const fails = (scene: Outcome<RunState>, paused?: Record<string, unknown>) =>
  scene.when('run.end', { ...(paused && { paused }) })
const toLoop = ({ tells }: Pick<Outcome<RunState>, 'tells'>) =>
  tells.filter(({ to }) => to.kind === 'loop').map(({ name, input }) => [name, input])
const spend = (
  scene: Outcome<RunState>,
  id: string,
  milli: number,
  more: Record<string, unknown> = {},
) =>
  scene.when('usage.record', {
    usage_id: id,
    category: 'llm.tokens',
    quantity: 10,
    credit_cost_milli: milli,
    ...more,
  })

t.test('a run that waits for its slot does nothing until it begins', async (t) => {
  const waiting = open([action('a')], { queue_reason: 'loop_policy' })
  t.strictSame(typesOf(waiting), ['run.created'])
  t.match(shown(waiting), {
    status: 'queued',
    queue_reason: 'loop_policy',
    name: 'Nightly',
    loop_version: 3,
    event: { n: 1 },
    meta: { from: 'x', run_id: 'run_1', loop_id: 'loop_1' },
    attempt: 1,
    credit_spent: 0,
  })
  t.notOk(
    'input' in shown(waiting) || 'queue' in shown(waiting) || 'cancel_requested' in shown(waiting),
  )
  t.equal(waiting.deadline(), undefined)
  const begun = waiting.when('run.begin', { later: true })
  t.strictSame([typesOf(begun), shown(begun)['status']], [['run.started', 'run.paused'], 'running'])
  t.notOk('queue_reason' in shown(begun))
  const onward = begun.when('wake', {}, { at: begun.at + 1 })
  t.ok(typesOf(onward).includes('action.called'))
  t.notOk(
    [...begun.events, ...onward.events].some(
      ({ type, payload = {} }) =>
        (type === 'run.suspended' && (payload as { reason?: string }).reason === 'pause') ||
        type === 'run.resumed',
    ),
    'it was suspended by nothing',
  )
  t.strictSame(begun.when('run.begin', {}).events, [], 'once')
  const gone = waiting.when('run.cancel', {})
  t.match(shown(gone), { status: 'cancelled', stop_reason: 'cancelled' })
  t.strictSame(toLoop(gone), [['run.left', { run_id: 'run_1', status: 'cancelled' }]])
  t.strictSame(gone.when('run.begin', {}).events, [])
  t.strictSame(toLoop(gone.when('run.open', opening([]))), [
    ['run.left', { run_id: 'run_1', status: 'known' }],
  ])
})

t.test('the routing fields of the triggering event take precedence in meta', async (t) => {
  const meta = { run_id: 'run_failed', loop_id: 'loop_other' }
  const triggered = open([], { meta, source: { type: 'trigger', trigger_id: 'trig_1' } })
  t.match(shown(triggered), { meta })
  t.match(shown(open([], { meta })), { meta: { run_id: 'run_1', loop_id: 'loop_1' } })
})

t.test('a run that never started needs no cleanup', async (t) => {
  const displaced = open(
    [action('a')],
    { queue_reason: 'loop_policy' },
    { cleanup: [action('tidy') as never] },
  ).when('run.displace', {})
  t.equal(displaced.deadline(), displaced.at + 1)
  const gone = displaced.when('wake', {}, { at: displaced.at + 1 })
  t.strictSame(typesOf(gone), ['run.paused', 'run.cancelled'])
  t.match(shown(gone), { status: 'cancelled', stop_reason: 'replaced' })
})

t.test('a recovered run that waits for its loop does no work when it is cancelled', async (t) => {
  const cleanup = [action('tidy') as never]
  const failed = fails(
    settle(settle(open([action('a')], {}, { cleanup }), 'job_1', 'failed'), 'job_2', 'completed'),
  )
  const waiting = failed.when('run.retry').when('run.hold', { queue_reason: 'loop_policy' })
  t.match(shown(waiting), { status: 'queued', queue_reason: 'loop_policy' })
  const gone = waiting.when('run.cancel', {})
  t.strictSame(typesOf(gone), ['run.cancel_requested', 'run.cancelled'])
  t.strictSame(toLoop(gone), [['run.left', { run_id: 'run_1', status: 'cancelled' }]])
  const displaced = waiting.when('run.displace', {})
  const replaced = displaced.when('wake', {}, { at: displaced.at + 1 })
  t.strictSame(typesOf(replaced), ['run.paused', 'run.cancelled'])
})

t.test('a waiting run whose loop is deleted is cancelled, not replaced', async (t) => {
  const sent = open([action('a')], { queue_reason: 'loop_policy' }).when('run.displace', {
    deleted: true,
  })
  const gone = sent.when('wake', {}, { at: sent.at + 1 })
  t.match(shown(gone), { status: 'cancelled', stop_reason: 'cancelled' })
  t.match(payload(gone, 'run.cancelled'), { reason: 'the loop was deleted' })
})

t.test('usage is counted once and stops the run before its next step', async (t) => {
  const first = open([wait('a'), action('b')], { budget: 5000 }, { limits: { max_agent_turns: 4 } })
  t.match(shown(first), {
    credit_budget: 5,
    credit_spent: 0,
    max_agent_turns: 4,
    agent_turns_used: 0,
  })
  const spent = spend(first, 'u1', 5250, { agent_turns: 2, step_key: 'a' })
  t.match(payload(spent, 'usage.recorded'), {
    category: 'llm.tokens',
    quantity: 10,
    credit_cost: 5.25,
    credit_spent: 5.25,
    step_id: 'run_1:a',
  })
  t.strictSame(toLoop(spent), [['run.spent', { run_id: 'run_1', milli: 5250 }]])
  t.strictSame(spend(spent, 'u1', 5250).events, [])
  t.match(shown(spent), { status: 'suspended', credit_spent: 5.25, agent_turns_used: 2 })
  const over = spent.when('run.signal', { name: 'go' })
  t.match(payload(over, 'run.budget_exceeded'), {
    step: 'b',
    credit_spent: 5.25,
    credit_budget: 5,
    percent_used: 105,
  })
  t.match(shown(fails(over)), {
    status: 'failed',
    stop_reason: 'budget_exceeded',
    error_type: 'budget_exceeded',
  })
  for (const small of [{}, { credit_budget: 5 }, { budget_usd: 0.05 }])
    t.equal(fails(over).when('run.recover', small).refused?.refused, 'limit_not_raised')
  const raised = fails(over).when('run.recover', { credit_budget: 6 })
  t.match(shown(raised), { status: 'queued', credit_budget: 6, attempt: 2 })
  t.strictSame(toLoop(raised), [['run.returns', { run_id: 'run_1' }]])
  t.ok(typesOf(raised.when('run.begin', {})).includes('action.called'))
  t.match(shown(raised.when('run.hold', { queue_reason: 'loop_policy' })), {
    status: 'queued',
    queue_reason: 'loop_policy',
  })
  t.match(
    spend(fails(over), 'late', 1).events,
    [{ type: 'usage.recorded' }],
    'late usage is counted as well',
  )
})

t.test(
  'an exhausted daily budget stops the run at its next step; a turn limit only before agents',
  async (t) => {
    const stopped = open([wait('a'), action('b')])
      .when('run.halt', { used: 9, limit: 10 })
      .when('run.halt', { used: 11.5, limit: 10 })
      .when('run.signal', { name: 'go' })
    t.match(payload(stopped, 'limit.reached'), {
      step: 'b',
      limit_kind: 'daily_budget',
      used: 11.5,
      limit: 10,
    })
    const halted = fails(stopped)
    t.match(payload(halted, 'run.failed'), { step: 'b', error_type: 'budget_exceeded' })
    t.match(shown(halted), {
      status: 'failed',
      stop_reason: 'budget_exceeded',
      error_message: 'The loop has spent its daily budget',
    })
    const turns = spend(
      open([wait('a'), action('b')], {}, { limits: { max_agent_turns: 2 } }),
      'u',
      0,
      { agent_turns: 2 },
    )
    t.match(shown(turns.when('run.signal', { name: 'go' })), { status: 'suspended' })
    const beyond = fails(
      spend(turns, 'v', 0, { agent_turns: 1 }).when('run.signal', { name: 'go' }),
    )
    t.match(shown(beyond), { status: 'failed', stop_reason: 'turn_limit_reached' })
    t.equal(beyond.when('run.retry', { max_agent_turns: 3 }).refused?.refused, 'limit_not_raised')
    t.match(shown(beyond.when('run.retry', { max_agent_turns: 4 })), {
      status: 'queued',
      max_agent_turns: 4,
    })
  },
)

t.test('a halt ends when the daily budget is available again', async (t) => {
  const halted = (until: number) =>
    open([wait('a'), action('b')]).when('run.halt', { used: 10, limit: 10, until })
  const { at } = halted(0)
  const go = (time: number) => halted(at + 1000).when('run.signal', { name: 'go' }, { at: time })
  t.match(shown(fails(go(at + 999))), { status: 'failed', stop_reason: 'budget_exceeded' })
  t.ok(typesOf(go(at + 1000)).includes('action.called'))
  const released = halted(at + 1000).when('run.halt', { used: 10, limit: 20, until: at })
  t.ok(typesOf(released.when('run.signal', { name: 'go' })).includes('action.called'))
  t.strictSame(released.when('run.halt', { used: 10, limit: 20, until: at }).events, [])
})

t.test('a run cannot be recovered while the daily budget of its loop is spent', async (t) => {
  const stopped = open([wait('a'), action('b')])
    .when('run.halt', { used: 10, limit: 10, until: Number.MAX_SAFE_INTEGER })
    .when('run.signal', { name: 'go' })
  const spent_budget = { daily_credit_budget: 10, credit_spent: 11 }
  for (const name of ['run.retry', 'run.recover'])
    t.match(fails(stopped).when(name, { spent_budget }).refused, {
      refused: 'budget_exhausted',
      details: spent_budget,
    })
  const again = fails(stopped)
    .when('run.retry', {})
    .when('run.halt', { used: 10, limit: 10, until: Number.MAX_SAFE_INTEGER })
    .when('run.begin', {})
  t.notOk(typesOf(again).includes('action.called'), 'the budget was spent in the meantime')
  t.match(shown(fails(again)), { status: 'failed', stop_reason: 'budget_exceeded' })
})

t.test('a failure that pauses the loop is recorded before the run ends', async (t) => {
  const failing = settle(open([action('a')]), 'job_1', 'failed', {
    error_type: 'Boom',
    error_message: 'no',
  })
  t.match(toLoop(failing), [['run.left', { run_id: 'run_1', status: 'failed', depth: 1 }]])
  t.notOk(typesOf(failing).includes('run.failed'), 'the loop is asked first')
  const gone = fails(failing, { consecutive_failures: 2, threshold: 2 })
  t.strictSame(typesOf(gone), ['loop.auto_paused', 'run.failed'])
  t.strictSame(
    [payload(gone, 'loop.auto_paused'), toLoop(gone)],
    [{ consecutive_failures: 2, threshold: 2 }, []],
  )
  t.strictSame(fails(gone).events, [], 'once')
  const tidied = settle(
    settle(open([action('a')], {}, { cleanup: [action('tidy') as never] }), 'job_1', 'failed', {
      error_type: 'Boom',
      error_message: 'no',
    }),
    'job_2',
    'completed',
    { result: {} },
  )
  t.match(
    [toLoop(tidied), typesOf(fails(tidied))],
    [[['run.left', { run_id: 'run_1', status: 'failed', depth: 1 }]], ['run.failed']],
    'also after a cleanup',
  )
})

t.test('a run can be recovered only with the current version of its loop', async (t) => {
  const failed = fails(
    settle(open([action('a')]), 'job_1', 'failed', { error_type: 'Boom', error_message: 'no' }),
  )
  t.match(shown(failed), { status: 'failed', stop_reason: 'step_failed' })
  t.match(failed.when('run.retry', { current_version: 4 }).refused, {
    refused: 'run_version_superseded',
    details: { loop_version: 3, current_version: 4 },
  })
  const again = failed.when('run.retry', { current_version: 3 }).when('run.begin', {})
  t.match(payload(again, 'step.retried'), {
    attempt: 2,
    retry_scope: 'run_recovery',
    recovery_action: 'retry',
    error_type: 'Boom',
  })
  const done = settle(again, 'job_2', 'completed', { result: {} })
  t.strictSame(toLoop(done), [['run.left', { run_id: 'run_1', status: 'completed' }]])
})

t.test('a step starts a run of any loop and continues with its answer', async (t) => {
  const asked = open([
    { id: 'call', kind: 'loop', config: { loop_id: 'loop_2', event: { m: '${{ event.n }}' } } },
  ])
  t.match(asked.events.find(({ type }) => type === 'loop.asked')?.['private'], {
    to: { kind: 'loop', id: 'loop_2' },
    name: 'loop.ask',
    input: {
      event: { m: 1 },
      depth: 1,
      from: { run_id: 'run_1', loop_id: 'loop_1', step: 'call', wait_id: 'wait_1' },
    },
  })
  t.match(
    run.react?.['loop.asked']?.(asked.events.find(({ type }) => type === 'loop.asked') as never, {
      project: 'p',
      kind: 'run',
      id: 'run_1',
    }),
    [{ tell: { name: 'loop.ask' } }],
  )
  const fired = open([{ id: 'call', kind: 'loop', config: { loop_id: 'loop_2' } }], {
    source: { type: 'trigger', trigger_id: 'trig_1', id: 'src_1' },
    initiated_by: 'Ann',
  })
  t.match(
    fired.events.find(({ type }) => type === 'loop.asked')?.['private'],
    {
      input: {
        initiated_by: 'Ann',
        source: { type: 'trigger', id: 'src_1', trigger_id: undefined },
      },
    },
    'the initiator, but not the trigger, which belongs to another loop',
  )
  t.match(shown(asked.when('child.answered', { wait_id: 'wait_1', run_id: 'run_9' })), {
    status: 'completed',
    result: { call: { run_id: 'run_9' } },
  })
  t.match(
    shown(
      fails(
        asked.when('child.answered', {
          wait_id: 'wait_1',
          fault: { error_type: 'skipped', error: 'busy' },
        }),
      ),
    ),
    { status: 'failed', error_type: 'skipped' },
  )
  t.strictSame(asked.when('child.answered', { wait_id: 'wait_8', run_id: 'run_9' }).events, [])
  const deep = open([{ id: 'call', kind: 'loop', config: { loop_id: 'loop_2' } }], { depth: 8 })
  t.match(shown(fails(deep)), { status: 'failed', error_type: 'too_deep' })
})

t.test('a recovery forgets that a newer run had replaced the run', async (t) => {
  const cleanup = [action('tidy') as never]
  const failing = settle(open([action('a')], {}, { cleanup }), 'job_1', 'failed')
  const replaced = fails(settle(failing.when('run.displace', {}), 'job_2', 'completed'))
  t.match(shown(replaced), { status: 'failed' })
  const again = replaced.when('run.retry').when('run.begin', {})
  const stopping = settle(again.when('run.cancel', { reason: 'by hand' }), 'job_3', 'cancelled')
  t.match(shown(settle(stopping, 'job_4', 'completed')), {
    status: 'cancelled',
    stop_reason: 'cancelled',
  })
})
