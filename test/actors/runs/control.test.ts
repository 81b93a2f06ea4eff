/** Control of a run by clients: cancelling, resuming and retrying. */
import t from 'tap'
import { run } from '../../../actors/runs/run.ts'
import type { RunState } from '../../../actors/runs/state.ts'
import type { Spec, Step } from '../../../protocol/workflows/spec.ts'
import { given, START, typesOf } from '../../support/given.ts'
import {
  type After,
  action,
  failed,
  payload,
  record,
  settle,
  sleep,
  started,
  step,
  wait,
} from './story.ts'

t.test('commands to a run that was never started are refused', async (t) => {
  for (const name of ['run.cancel', 'run.resume', 'run.recover', 'run.retry', 'run.signal'])
    t.match(given(run).when(name, { name: 'go' }).refused, { refused: 'not_found' }, name)
  for (const name of ['wake', 'job.settled', 'job.retried'])
    t.strictSame(given(run).when(name, { job_id: 'job_1' }).events, [], name)
})

t.test('cancelling a run that waits for no job ends it at once', async (t) => {
  const after = started([wait('a'), sleep('b')]).when(
    'run.cancel',
    { reason: 'mistake' },
    { at: START + 5 },
  )
  t.strictSame(typesOf(after), [
    'run.cancel_requested',
    'wait.closed',
    'step.cancelled',
    'run.cancelled',
  ])
  t.strictSame(payload(after, 'run.cancelled'), { status: 'cancelled', reason: 'mistake' })
  t.match(after.reply, {
    status: 'cancelled',
    cancel_requested: true,
    cancel_requested_at: '2026-01-01T00:00:00.005Z',
    completed_at: '2026-01-01T00:00:00.005Z',
  })
  t.match(step(after, 'a'), { status: 'cancelled' })
  t.notOk(step(after, 'a')?.waiting_on)
})

t.test(
  'cancelling a run with a job notifies the queue, and the run ends with the job',
  async (t) => {
    const asked = started([action('a'), sleep('b')], { limits: { wall_clock_timeout: '1h' } }).when(
      'run.cancel',
      { reason: 'mistake' },
    )
    t.strictSame(typesOf(asked), ['run.cancel_requested'])
    t.strictSame(asked.tells, [
      {
        to: { kind: 'queue', id: '0.default' },
        name: 'queue.cancel',
        input: { job_ids: ['job_1'], reason: 'mistake' },
      },
    ])
    t.match(asked.reply, { status: 'suspended', cancel_requested: true })
    t.equal(
      asked.deadline(),
      undefined,
      'the job ends within its lease; the run has no timers of its own',
    )
    t.strictSame(asked.when('wake', {}, { at: START + 9e6 }).events, [])
    const stopped = settle(asked, 'job_1', 'cancelled')
    t.strictSame(typesOf(stopped), ['wait.closed', 'step.cancelled', 'run.cancelled'])
    t.strictSame(payload(stopped, 'run.cancelled'), { status: 'cancelled', reason: 'mistake' })
  },
)

t.test('after a cancellation, any outcome of the job cancels the run', async (t) => {
  const asked = started([action('a'), sleep('b')]).when('run.cancel')
  const done = settle(asked, 'job_1', 'completed', { result: { n: 1 } })
  t.strictSame(typesOf(done), [
    'action.completed',
    'wait.resumed',
    'step.resumed',
    'step.completed',
    'run.cancelled',
  ])
  t.match(
    [record(done).status, step(done, 'a')],
    ['cancelled', { status: 'completed', result: { n: 1 } }],
  )
  const broken = settle(asked, 'job_1', 'failed', { error_type: 'Boom' })
  t.strictSame(typesOf(broken), ['action.failed', 'wait.closed', 'step.cancelled', 'run.cancelled'])
})

t.test('a cancelled run whose last output is too large ends once, as cancelled', async (t) => {
  const large = { text: 'x'.repeat(3.5 * 1024 * 1024) }
  const last = (second: Step, spec: Partial<Spec> = {}, input = {}): After =>
    settle(started([action('a'), second], spec, input), 'job_1', 'completed', { result: large })
  const ended = settle(last(action('b')).when('run.cancel'), 'job_2', 'completed', {
    result: large,
  })
  t.strictSame(typesOf(ended), [
    'action.completed',
    'wait.resumed',
    'step.resumed',
    'step.failed',
    'run.cancelled',
  ])
  t.match(record(ended), { status: 'cancelled', stop_reason: 'cancelled' })
  t.match(step(ended, 'b'), { status: 'failed', error_type: 'outputs_too_large' })
  const cleaning = settle(
    last(action('b'), { cleanup: [action('tidy') as never] }).when('run.cancel'),
    'job_2',
    'completed',
    { result: large },
  )
  t.match(step(cleaning, 'cleanup.tidy'), { status: 'suspended', job_id: 'job_3' })
  const tidied = settle(cleaning, 'job_3', 'completed')
  t.equal(typesOf(tidied).at(-1), 'run.cancelled')
  const child = {
    id: 'b',
    kind: 'loop',
    config: { workflow_id: 'sub', wait: true },
  } as unknown as Step
  const calling = last(
    child,
    {},
    {
      definitions: { sub: { id: 'wfd_1', version: 1, spec: { steps: [sleep('z')] } } },
    },
  )
  const [told] = calling.tells
  const orphaned = calling.when('run.cancel').when('child.settled', {
    run_id: told?.to.id,
    status: 'completed',
    result: large,
  })
  t.strictSame(typesOf(orphaned).slice(-2), ['step.failed', 'run.cancelled'], 'also of a child')
  const branch = {
    id: 'p',
    kind: 'parallel',
    config: { branches: [{ id: 'x', steps: [action('b')] }] },
  }
  const inside = settle(last(branch as Step).when('run.cancel'), 'job_2', 'completed', {
    result: large,
  })
  t.match(record(inside), { status: 'cancelled' })
  t.equal(typesOf(inside).filter((type) => type.startsWith('run.')).length, 1)
})

t.test('a child that fails in the cleanup of a cancelled run is not started again', async (t) => {
  const tidy = { id: 'tidy', kind: 'action', config: { action_name: 'workflow.sub' } }
  const stopped = settle(
    started(
      [action('a')],
      { cleanup: [tidy as never] },
      {
        definitions: { 'workflow.sub': { id: 'wfd_1', version: 1, spec: { steps: [sleep('z')] } } },
      },
    ).when('run.cancel'),
    'job_1',
    'cancelled',
  )
  const [told] = stopped.tells
  t.equal(told?.name, 'child.start')
  const ended = stopped.when('child.settled', { run_id: told?.to.id, status: 'failed' })
  t.strictSame(ended.tells, [])
  t.match(step(ended, 'cleanup.tidy'), { status: 'failed', error_type: 'child_failed' })
  t.match(record(ended), { status: 'cancelled' })
})

t.test('a cancellation does not change a step that ended in an earlier attempt', async (t) => {
  const ended = ['job_1', 'job_2'].reduce<After>(
    (scene, job) => settle(scene, job, 'completed', { result: { v: job } }),
    started([action('a'), action('b'), action('c')]),
  )
  const again = settle(ended, 'job_3', 'failed').when('run.retry', { from_step: 'a' })
  const after = settle(again.when('run.cancel'), 'job_4', 'completed')
  t.strictSame(typesOf(after).slice(-2), ['step.completed', 'run.cancelled'])
  t.match(step(after, 'b'), { status: 'completed', result: { v: 'job_2' } })
})

t.test('cancelling twice, or a run that has ended, changes nothing', async (t) => {
  const asked = started([action('a')]).when('run.cancel')
  const again = asked.when('run.cancel')
  t.strictSame([again.events, again.tells, again.reply], [[], [], asked.reply])
  const ended = failed().when('run.cancel')
  t.strictSame(ended.events, [])
  t.match(ended.reply, { status: 'failed', cancel_requested: false })
})

t.test('a cancelled run with a running job cannot be resumed or completed by hand', async (t) => {
  const asked = started([action('a')]).when('run.cancel')
  t.strictSame(asked.when('run.resume').events, [])
  t.match(asked.when('run.signal', { step_key: 'a' }).refused, { refused: 'conflict' })
})

t.test('resume ends a sleep, a wait or a retry delay now', async (t) => {
  const after = started([sleep('a'), wait('b')]).when('run.resume', { reason: 'hurry' })
  t.strictSame(typesOf(after), [
    'wait.resumed',
    'step.resumed',
    'step.completed',
    'run.resumed',
    'step.started',
    'step.suspended',
    'wait.opened',
    'run.suspended',
  ])
  t.strictSame(payload(after, 'run.resumed'), { step: 'b', reason: 'hurry' })
  t.match(after.when('run.resume').reply, { status: 'completed', result: { a: {}, b: {} } })
  const delayed = started([
    sleep('a', '1s', { if: '[1] - 1', retry: { max_attempts: 2, delay: '1h' } }),
  ])
  t.match(payload(delayed, 'run.suspended'), {
    step: 'a',
    wait_kind: 'timer',
    reason: 'retry',
    deadline: '2026-01-01T01:00:00.000Z',
  })
  t.match(delayed.when('run.resume').reply, { status: 'failed', error_type: 'expression_error' })
})

t.test('resuming a run that waits for a worker does not change its job', async (t) => {
  const after = started([action('a')]).when('run.resume')
  t.strictSame(typesOf(after), ['run.resumed', 'run.suspended'])
  t.strictSame(after.tells, [])
  t.match(record(settle(after, 'job_1', 'completed')), { status: 'completed' })
})

t.test('only a suspended run can be resumed', async (t) => {
  t.match(failed().when('run.resume').refused, {
    refused: 'run_not_suspended',
    details: { status: 'failed' },
  })
})

t.test('a retry runs the failed step again and keeps completed steps', async (t) => {
  const broken = settle(
    settle(
      started([action('a'), action('b', { parameters: { from: '${{ steps.a.output.n }}' } })]),
      'job_1',
      'completed',
      { result: { n: 7 } },
    ),
    'job_2',
    'failed',
    { error_type: 'Boom', error_message: 'no' },
  )
  const after = broken.when('run.retry', { reason: 'fixed' }, { at: START + 5 })
  t.strictSame(typesOf(after), [
    'run.resumed',
    'step.retried',
    'action.called',
    'step.suspended',
    'wait.opened',
    'run.suspended',
  ])
  t.strictSame(payload(after, 'run.resumed'), {
    recovery_action: 'retry',
    attempt: 2,
    step: 'b',
    reason: 'fixed',
  })
  t.strictSame(
    (after.events as unknown as { run?: { status?: string } }[]).flatMap(
      (event) => event.run?.status ?? [],
    ),
    ['queued', 'running', 'suspended'],
  )
  t.strictSame(payload(after, 'step.retried'), {
    step: 'b',
    kind: 'action',
    attempt: 2,
    max_attempts: 2,
    retry_scope: 'run_recovery',
    recovery_action: 'retry',
    error: 'no',
    error_type: 'Boom',
  })
  for (const field of ['error_type', 'error_message', 'completed_at'])
    t.notHas(after.reply, { [field]: String })
  t.match(step(after, 'b'), {
    status: 'suspended',
    attempt: 2,
    job_id: 'job_3',
    inputs: { from: '7' },
  })
  t.strictSame(settle(after, 'job_2', 'completed').events, [], 'the job of the failed attempt')
  t.match(record(settle(after, 'job_3', 'completed')), {
    status: 'completed',
    result: { a: { n: 7 }, b: {} },
  })
})

t.test("a retry restores all attempts of the step's policy", async (t) => {
  const after = failed([action('a', { retry: { max_attempts: 3 } })]).when('run.retry')
  t.match(after.tells[0]?.input, { job: { max_attempts: 3 } })
  t.match(settle(after, 'job_2', 'failed').when('run.retry').events[0], { payload: { attempt: 3 } })
})

t.test('a retry of a run that failed in its output computes the output again', async (t) => {
  const after = started([sleep('a', '0s')], { output: { x: '${{ [1] - 1 }}' } }).when('run.retry')
  t.strictSame(typesOf(after), ['run.resumed', 'run.failed'])
})

t.test('a recovery is marked in the resumed event; a suspended run is only resumed', async (t) => {
  t.match(payload(failed().when('run.recover'), 'run.resumed'), {
    recovery_action: 'resume',
    attempt: 2,
  })
  t.match(started([sleep('a')]).when('run.recover').reply, { status: 'completed' })
})

t.test('only a failed run can be retried', async (t) => {
  t.match(started([sleep('a')]).when('run.retry').refused, {
    refused: 'run_not_failed',
    details: { status: 'suspended' },
  })
  t.match(started([sleep('a', '0s')]).when('run.recover').refused, {
    refused: 'run_not_failed',
    details: { status: 'completed' },
  })
})

t.test('a retry with another input: later steps see it, earlier outputs stay', async (t) => {
  const using = (id: string): Step => ({
    id,
    kind: 'action',
    config: { action_name: 'x', parameters: { n: '${{ input.n }}' } },
  })
  const declared: Partial<Spec> = { input: { n: { type: 'integer', required: true } } }
  const broken = settle(
    settle(started([using('a'), using('b')], declared, { input: { n: 1 } }), 'job_1', 'completed', {
      result: { r: 1 },
    }),
    'job_2',
    'failed',
  )
  t.match(record(broken), { status: 'failed', input: { n: 1 } })
  t.match(broken.when('run.retry', { input: { n: 'two' } }).refused, {
    refused: 'bad_request',
    details: { fields: [{ field: 'input.n' }] },
  })
  const again = broken.when('run.retry', { input: { n: 2 } })
  t.match(payload(again, 'run.resumed'), { step: 'b', input_changed: true })
  t.match(record(again), { input: { n: 2 } })
  t.match(step(again, 'a'), { result: { r: 1 }, attempt: 1, inputs: { n: 1 } })
  t.match(step(again, 'b'), { attempt: 2, inputs: { n: 2 } })
  const from = broken.when('run.retry', { input: { n: 3 }, from_step: 'a' })
  t.match(step(from, 'a'), { attempt: 2, inputs: { n: 3 } })
  const same = payload(broken.when('run.retry', {}), 'run.resumed') as Record<string, unknown>
  t.notOk(same['input_changed'])
})

t.test('a retry with another input evaluates conditions and items anew', async (t) => {
  const skipping = started(
    [{ ...action('a'), if: 'input.n == 2' }, action('b')],
    {},
    { input: { n: 1 } },
  )
  const failing = settle(skipping, 'job_1', 'failed')
  t.match(step(failing, 'a'), { status: 'skipped' })
  const both = failing.when('run.retry', { input: { n: 2 }, from_step: 'a' })
  t.ok(typesOf(both).includes('step.started'), 'a step that was skipped starts')
  t.match(step(both, 'a'), { status: 'suspended', attempt: 1 })
  t.notOk(step(both, 'a')?.completed_at)

  const each: Step = {
    id: 'each',
    kind: 'for_each',
    config: { items: 'input.list', steps: [action('x')] },
  } as Step
  const items = started([each], {}, { input: { list: [1, 2] } })
  const half = settle(settle(items, 'job_1', 'completed'), 'job_2', 'failed')
  t.equal(record(half).status, 'failed')
  const whole = half.when('run.retry', { input: { list: [7, 8, 9] } })
  t.equal(whole.state.join?.count, 3)
  t.equal(half.when('run.retry', {}).state.join?.done, 1, 'otherwise, only failed items repeat')
})

t.test('a retry with another input is refused where the input is fixed', async (t) => {
  const call = given<RunState>(run).when('action.invoke', { action_name: 'x', input: { n: 1 } })
  const over = settle(call, 'job_1', 'failed')
  t.match(over.when('run.retry', { input: { n: 2 } }).refused, {
    refused: 'bad_request',
    details: { fields: [{ field: 'input', message: /direct call/ }] },
  })
  t.notOk(over.when('run.retry', {}).refused)
})
