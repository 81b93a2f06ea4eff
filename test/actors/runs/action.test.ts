/** Action steps: the job, its outcomes and retries, and how they appear in the timeline. */
import t from 'tap'
import { run } from '../../../actors/runs/run.ts'
import { sizes } from '../../../protocol/workers/socket.ts'
import { START, typesOf } from '../../support/given.ts'
import { action, failed, payload, record, settle, sleep, started, step } from './story.ts'

t.test(
  'an action becomes a job in the queue of its own shard, and the run waits for it',
  async (t) => {
    const after = started(
      [
        action('a', {
          name: 'Shrink',
          parameters: { url: '${{ input.url }}', n: 2 },
          retry: { max_attempts: 3 },
        }),
      ],
      { queue: 'gpu' },
      { input: { url: 'u' }, priority: 5, fairness_key: 'acme' },
    )
    t.strictSame(typesOf(after), [
      'run.created',
      'run.started',
      'step.started',
      'action.called',
      'step.suspended',
      'wait.opened',
      'run.suspended',
    ])
    t.strictSame(payload(after, 'action.called'), {
      action: 'resize',
      step: 'a',
      parameters: { url: 'u', n: 2 },
      job_id: 'job_1',
      attempt: 1,
    })
    t.match(payload(after, 'wait.opened'), {
      step: 'a',
      wait_id: 'wait_1',
      wait_kind: 'worker',
      job_id: 'job_1',
    })
    t.strictSame(after.tells, [
      {
        to: { kind: 'queue', id: '0.gpu' },
        name: 'queue.enqueue',
        input: {
          job: {
            id: 'job_1',
            kind: 'action_execution',
            origin: 'loop_action_step',
            executor_kind: 'customer_worker',
            action_name: 'resize',
            run_id: 'run_1',
            step_id: 'run_1:a',
            step_key: 'a',
            priority: 5,
            max_attempts: 3,
            fairness_key: 'acme',
            enqueued_at: START,
            max_losses: 3,
            strict: true,
          },
          record: {
            id: 'job_1',
            kind: 'action_execution',
            origin: 'loop_action_step',
            executor_kind: 'customer_worker',
            action_name: 'resize',
            run_id: 'run_1',
            step_id: 'run_1:a',
            step_key: 'a',
            priority: 5,
            max_attempts: 3,
            queue: 'gpu',
            status: 'queued',
            claim_attempt: 0,
            cancel_requested: false,
            created_at: '2026-01-01T00:00:00.000Z',
            updated_at: '2026-01-01T00:00:00.000Z',
            fairness_key: 'acme',
          },
        },
      },
    ])
    t.strictSame(step(after, 'a'), {
      id: 'run_1:a',
      run_id: 'run_1',
      step_key: 'a',
      step_name: 'Shrink',
      kind: 'action',
      status: 'suspended',
      seq: 0,
      attempt: 1,
      job_id: 'job_1',
      wait_id: 'wait_1',
      parameters: { url: '${{ input.url }}', n: 2 },
      inputs: { url: 'u', n: 2 },
      created_at: '2026-01-01T00:00:00.000Z',
      updated_at: '2026-01-01T00:00:00.000Z',
      started_at: '2026-01-01T00:00:00.000Z',
    })
  },
)

t.test('without a retry policy, one failure or one lost lease ends a job', async (t) => {
  t.match(started([action('a')]).tells[0]?.input, {
    job: { max_attempts: 1, max_losses: 1, priority: 0, fairness_key: '' },
  })
})

t.test('a step states where its action is executed', async (t) => {
  const at = (execution_location?: string) => {
    const config = { action_name: 'x', ...(execution_location && { execution_location }) }
    const step = { ...action('a'), config } as ReturnType<typeof action>
    const [tell] = started([step]).tells
    return (tell?.input as { job: Record<string, unknown> } | undefined)?.job
  }
  t.match(at(), { executor_kind: 'customer_worker', workers_only: undefined })
  t.match(at('managed'), { executor_kind: 'server_worker', workers_only: undefined })
  t.match(at('worker'), { executor_kind: 'customer_worker', workers_only: true })
})

t.test('a job is pinned to the environment of its step', async (t) => {
  const pinned = {
    ...action('a'),
    config: { action_name: 'x', environment_id: 'env_1' },
  } as ReturnType<typeof action>
  t.match(started([pinned]).tells[0]?.input, {
    job: { environment_id: 'env_1' },
    record: { environment_id: 'env_1' },
  })
})

t.test(
  'the worker with the job can read its parameters from the run while the run waits',
  async (t) => {
    const after = started([action('a', { parameters: { n: 1 } })])
    t.strictSame(after.ask('job_spec', { job_id: 'job_1' }), {
      parameters: { n: 1 },
      action_name: 'resize',
    })
    t.equal(after.ask('job_spec', { job_id: 'job_2' }), null)
    t.equal(settle(after, 'job_1', 'completed').ask('job_spec', { job_id: 'job_1' }), null)
    t.match(after.ask('get'), { id: 'run_1', status: 'suspended' })
  },
)

t.test('a completed job completes its step, and the run continues', async (t) => {
  const after = settle(started([action('a'), sleep('b')]), 'job_1', 'completed', {
    result: { size: 3 },
  })
  t.strictSame(typesOf(after), [
    'action.completed',
    'wait.resumed',
    'step.resumed',
    'step.completed',
    'run.resumed',
    'step.started',
    'step.suspended',
    'wait.opened',
    'run.suspended',
  ])
  t.strictSame(payload(after, 'action.completed'), {
    action: 'resize',
    step: 'a',
    job_id: 'job_1',
    attempt: 1,
    worker_instance_id: 'w1',
    result: { size: 3 },
  })
  t.strictSame(payload(after, 'step.completed'), { step: 'a', output: { size: 3 } })
  t.match(step(after, 'a'), {
    status: 'completed',
    result: { size: 3 },
    completed_at: '2026-01-01T00:00:00.000Z',
  })
})

t.test('the last job of a run completes it', async (t) => {
  const after = settle(started([action('a')]), 'job_1', 'completed')
  t.strictSame(typesOf(after).slice(-2), ['run.resumed', 'run.completed'])
  t.match(record(after), { status: 'completed', result: { a: {} } })
})

t.test('a failed job fails its step and the run', async (t) => {
  const after = failed([action('a', { retry: { max_attempts: 3, delay: '1m' } }), sleep('b')])
  t.strictSame(
    typesOf(after),
    ['action.failed', 'wait.closed', 'step.failed', 'run.failed'],
    'the queue has done the retries',
  )
  t.match(payload(after, 'action.failed'), {
    action: 'resize',
    step: 'a',
    error: 'no',
    error_type: 'Boom',
    attempt: 1,
  })
  t.strictSame(payload(after, 'run.failed'), {
    status: 'failed',
    error_type: 'Boom',
    error: 'no',
    step: 'a',
  })
  t.match(record(after), { status: 'failed', error_type: 'Boom', error_message: 'no' })
  t.match(step(after, 'a'), { status: 'failed', error_type: 'Boom', error_message: 'no' })
})

t.test('a cancelled job without a cancellation of the run is a failure', async (t) => {
  t.match(record(settle(started([action('a')]), 'job_1', 'cancelled')), {
    status: 'failed',
    error_type: 'job_cancelled',
  })
})

t.test('a late, repeated or unknown job outcome changes nothing', async (t) => {
  const waiting = started([action('a'), action('b')])
  t.strictSame(settle(waiting, 'job_9', 'completed').events, [])
  const next = settle(waiting, 'job_1', 'completed', { result: { n: 1 } })
  for (const outcome of ['completed', 'failed', 'cancelled'] as const)
    t.strictSame(settle(next, 'job_1', outcome).events, [])
  t.strictSame(settle(settle(next, 'job_2', 'failed'), 'job_2', 'completed').events, [])
})

t.test('a retried job appears on the timeline, and the run keeps waiting', async (t) => {
  const waiting = started([action('a', { retry: { max_attempts: 3 } })])
  const retried = waiting.when('job.retried', {
    job_id: 'job_1',
    attempt: 1,
    max_attempts: 3,
    reason: 'failure',
    error_type: 'Boom',
    error_message: 'no',
    worker_instance_id: 'w1',
  })
  t.strictSame(payload(retried, 'action.retried'), {
    action: 'resize',
    step: 'a',
    job_id: 'job_1',
    attempt: 1,
    max_attempts: 3,
    error_type: 'Boom',
    error: 'no',
    worker_instance_id: 'w1',
  })
  t.strictSame(payload(retried, 'step.retried'), {
    step: 'a',
    kind: 'action',
    attempt: 2,
    max_attempts: 3,
    retry_scope: 'step_policy',
    error_type: 'Boom',
    error: 'no',
  })
  t.match([record(retried).status, step(retried, 'a')?.attempt], ['suspended', 2])
  const lost = retried.when('job.retried', {
    job_id: 'job_1',
    attempt: 2,
    max_attempts: 3,
    reason: 'lease_expired',
  })
  t.match(payload(lost, 'step.retried'), {
    attempt: 3,
    retry_scope: 'transient',
    error_type: 'lease_expired',
  })
  t.strictSame(
    lost.when('job.retried', {
      job_id: 'job_1',
      attempt: 2,
      max_attempts: 3,
      reason: 'lease_expired',
    }).events,
    [],
    'a repeat changes nothing',
  )
  t.match(step(settle(lost, 'job_1', 'completed', { attempt: 3 }), 'a'), {
    status: 'completed',
    attempt: 3,
  })
})

t.test('attempts are counted across recoveries, in all events alike', async (t) => {
  const steps = [action('a', { retry: { max_attempts: 2 }, timeout: { duration: '1m' } })]
  const again = settle(started(steps), 'job_1', 'failed', { attempt: 2 }).when('run.retry')
  t.match(payload(again, 'action.called'), { job_id: 'job_2', attempt: 3 })
  const retried = again.when('job.retried', {
    job_id: 'job_2',
    attempt: 1,
    max_attempts: 2,
    reason: 'failure',
  })
  t.match(
    [payload(retried, 'action.retried'), payload(retried, 'step.retried')],
    [
      { attempt: 3, max_attempts: 4 },
      { attempt: 4, max_attempts: 4 },
    ],
  )
  const done = settle(retried, 'job_2', 'completed', { attempt: 2 })
  t.match([payload(done, 'action.completed'), step(done, 'a')], [{ attempt: 4 }, { attempt: 4 }])
  t.match(payload(settle(again, 'job_2', 'failed'), 'action.failed'), { attempt: 3 })
  t.match(
    payload(settle(again, 'job_2', 'cancelled', { attempt: 0 }), 'action.failed'),
    { attempt: 3 },
    'the attempt of the call, if no worker took the job',
  )
  t.match(payload(again.when('wake', {}, { at: again.deadline() ?? 0 }), 'action.failed'), {
    attempt: 3,
    error_type: 'timeout',
  })
})

t.test('an action that exceeds its timeout fails, and its job is cancelled', async (t) => {
  const waiting = started([
    action('a', { timeout: { duration: '1m' }, retry: { max_attempts: 3 } }),
  ])
  t.equal(waiting.deadline(), START + 60_000)
  t.strictSame(waiting.when('wake', {}, { at: START + 59_999 }).events, [])
  const over = waiting.when('wake', {}, { at: START + 60_000 })
  t.strictSame(typesOf(over), ['action.failed', 'wait.timed_out', 'step.failed', 'run.failed'])
  t.match(over.tells, [
    {
      to: { kind: 'queue', id: '0.default' },
      name: 'queue.cancel',
      input: { job_ids: ['job_1'], reason: 'timeout' },
    },
  ])
  t.match(record(over), { status: 'failed', error_type: 'timeout' })
  t.strictSame(settle(over, 'job_1', 'cancelled').events, [])
})

t.test('parameters that are too large for a job fail the step with a clear error', async (t) => {
  const after = started(
    [
      action('a', {
        parameters: { text: '${{ input.text }}', twice: '${{ input.text }}' },
        retry: { max_attempts: 5 },
      }),
    ],
    {},
    { input: { text: 'x'.repeat(sizes.spec / 2) } },
  )
  t.match(record(after), { status: 'failed', error_type: 'job_spec_too_large' })
  t.strictSame(
    [after.tells, typesOf(after).slice(-3)],
    [[], ['step.started', 'step.failed', 'run.failed']],
  )
  const spec = { parameters: { text: '' }, action_name: 'resize' }
  const sized = (more: number) =>
    record(
      started([
        action('a', {
          parameters: { text: 'x'.repeat(sizes.spec - JSON.stringify(spec).length + more) },
        }),
      ]),
    )
  t.match(
    [sized(0), sized(1)],
    [{ status: 'suspended' }, { error_type: 'job_spec_too_large' }],
    'the size is that of the specification for the worker',
  )
})

t.test('attempts that failed in an expression are subtracted from those of the job', async (t) => {
  const after = started([
    action('a', { parameters: { x: '${{ [1] - 1 }}' }, retry: { max_attempts: 3 } }),
  ])
  t.strictSame(typesOf(after).slice(2), [
    'step.started',
    'step.retried',
    'step.retried',
    'step.failed',
    'run.failed',
  ])
  t.equal(step(after, 'a')?.attempt, 3)
  t.ok(run.ended?.(after.state))
})
