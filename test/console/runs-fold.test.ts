/**
 * The state of a run, as the console folds it from records and events, and the rows of its
 * timeline.
 */
import t from 'tap'
import {
  type RunFold as Fold,
  pausedMs,
  pausesOf,
  RunFold,
} from '../../console/pages/runs/run/data/fold.ts'
import { leavesOf, placeOf, StepTree, statusOf } from '../../console/pages/runs/run/data/tree.ts'
import { reasonsOf, targetsOf } from '../../console/pages/runs/run/waiting/waiting.ts'
import type { RunEventRecord, RunStep } from '../../protocol/runs/schema.ts'
import type { WaitingOn } from '../../protocol/runs/waiting.ts'

let sequence = 0
const time = (ms: number): string => new Date(1_000_000 + ms).toISOString()
const event = (
  ms: number,
  event_type: string,
  step_key?: string,
  payload: Record<string, unknown> = {},
): RunEventRecord => ({
  id: `run_1:evt:${++sequence}`,
  run_id: 'run_1',
  sequence,
  event_type,
  ...(step_key !== undefined && { step_key }),
  payload,
  created_at: time(ms),
})
const record = (step_key: string, ms: number, more: Partial<RunStep> = {}): RunStep => ({
  id: `run_1:${step_key}`,
  run_id: 'run_1',
  step_key,
  kind: 'action',
  status: 'running',
  seq: 0,
  attempt: 1,
  created_at: time(0),
  updated_at: time(ms),
  ...more,
})
const folded = (events: readonly RunEventRecord[], records: readonly RunStep[] = []): Fold => {
  const fold = new RunFold()
  fold.addRecords(records)
  fold.addEvents(events)
  return fold
}

t.test('events make steps with attempts, waits and results', async (t) => {
  const fold = folded([
    event(0, 'run.started'),
    event(0, 'step.started', 'a', { kind: 'action' }),
    event(0, 'action.called', 'a', { parameters: { n: 1 }, job_id: 'job_1' }),
    event(0, 'step.suspended', 'a', { wait_id: 'w', wait_kind: 'worker', queue: 'q' }),
    event(0, 'wait.opened', 'a', { wait_id: 'w', wait_kind: 'worker', queue: 'q' }),
    event(10, 'step.retried', 'a', { attempt: 2, retry_scope: 'step_policy', error: 'once' }),
    event(30, 'wait.resumed', 'a', { wait_id: 'w' }),
    event(30, 'step.completed', 'a', { output: { ok: true } }),
    event(31, 'usage.recorded', undefined, { credit_spent: 3 }),
    event(31, 'run.completed'),
  ])
  const step = fold.steps.get('a')
  t.match(step, {
    kind: 'action',
    status: 'completed',
    attempt: 2,
    inputs: { n: 1 },
    result: { ok: true },
    jobId: 'job_1',
    from: 1_000_000,
    to: 1_000_030,
    attempts: [
      { number: 1, from: 1_000_000, to: 1_000_010, error: 'once' },
      { number: 2, from: 1_000_010, to: 1_000_030 },
    ],
  })
  t.equal(step?.waits.length, 1, 'a wait that two events announce is one wait')
  t.equal(step?.waits[0]?.to, 1_000_030)
  t.match(fold, { status: 'completed', credits: 3, startedAt: 1_000_000 })
})

t.test('an event that is older than the record adds spans and keeps the state', async (t) => {
  const done = record('a', 50, {
    status: 'completed',
    started_at: time(0),
    completed_at: time(50),
    result: { newest: true },
  })
  const started = event(0, 'step.started', 'a', { kind: 'action' })
  const failed = event(20, 'step.failed', 'a', { error: 'old' })
  const fold = folded([started, failed], [done])
  t.match(fold.steps.get('a'), { status: 'completed', result: { newest: true } })
  t.equal(fold.steps.get('a')?.error, undefined)
  t.equal(fold.steps.get('a')?.attempts.length, 1)
  fold.addEvents([started, failed])
  t.equal(fold.steps.get('a')?.attempts.length, 1, 'a repeated event changes nothing')
  t.equal(fold.events.length, 2)
})

t.test('a retry of the run begins a step again', async (t) => {
  const fold = folded([
    event(0, 'step.started', 'a', { kind: 'action' }),
    event(1, 'step.failed', 'a', { error: 'broken', error_type: 'x' }),
    event(1, 'run.failed'),
    event(9, 'run.resumed'),
    event(9, 'step.retried', 'a', { attempt: 2, retry_scope: 'run_recovery' }),
  ])
  const step = fold.steps.get('a')
  t.match(step, { status: 'running', attempt: 2 })
  t.equal(step?.error, undefined)
  t.equal(step?.to, undefined)
  t.equal(fold.status, 'running')
  t.strictSame(step && pausesOf(step), [{ from: 1_000_001, to: 1_000_009 }])
  fold.addEvents([event(12, 'step.retried', 'a', { attempt: 3, retry_scope: 'step_policy' })])
  t.equal(step && pausedMs(step), 8, 'the next attempt begins when the failed one ends')
})

t.test('branches and items are below their step', async (t) => {
  const steps = folded([
    event(0, 'step.started', 'all', { kind: 'for_each' }),
    event(0, 'step.suspended', 'all', { wait_id: 'w', wait_kind: 'branches', count: 11 }),
    ...[10, 2, 0].flatMap((item) => [
      event(1, 'step.started', `all.${item}.x.y`, { kind: 'action' }),
      event(2, 'step.completed', `all.${item}.x.y`, {}),
    ]),
    event(2, 'branch.completed', 'all', { branch: '0' }),
    event(3, 'step.started', 'all.other', { kind: 'sleep' }),
  ]).steps
  t.match(placeOf('all.2.x.y', steps), { parent: 'all', branch: 'all.2', leaf: 'x.y' })
  t.match(placeOf('all.~2.x', steps), { branch: 'all.~2', branchName: '2' })
  t.equal(placeOf('all.2.x.y', steps, new Set(['all.2.x.y'])), undefined, 'a step with dots')
  const tree = new StepTree()
  tree.update(steps, new Set(['all', 'all.other']))
  const rows = tree.rows(new Map([['all.2', true]]), (index) => `item ${index}`)
  t.strictSame(
    rows.map(({ label, depth }) => `${depth} ${label}`),
    ['0 all', '1 item 0', '1 item 2', '2 x.y', '1 item 10', '0 all.other'],
  )
  t.strictSame(
    leavesOf(rows, new Set(['completed', 'running'])).map(
      ({ label, depth }) => `${depth} ${label}`,
    ),
    ['0 all.2.x.y', '0 all.other'],
    'without the rows of items, the key names the item',
  )
  t.strictSame(steps.get('all')?.branches, { total: 11, done: 1, failed: 0 })
  t.equal(tree.rows(new Map([['all', false]]), String).length, 2)
  t.equal(statusOf([{ status: 'completed' }, { status: 'failed' }]), 'failed')
})

t.test('a waiting run says why, in words', async (t) => {
  const name = (id: string): string => (id === 'per_1' ? 'Ada' : id)
  t.equal(targetsOf(['per_1', 'role:reviewers'], name), 'Ada or the role reviewers')
  t.equal(
    targetsOf(['x\u202ey'], name),
    '\u2068xy\u2069',
    'no text changes the direction of others',
  )
  const suspended = (key: string, wait: Record<string, unknown>) => [
    event(0, 'step.started', key, { kind: 'x' }),
    event(0, 'step.suspended', key, { wait_id: key, ...wait }),
  ]
  const { steps } = folded([
    ...suspended('all', { wait_kind: 'branches' }),
    ...suspended('ask', {
      wait_kind: 'interaction',
      interaction_id: 'iact_1',
      targets: ['per_1'],
    }),
    ...suspended('go', { wait_kind: 'event', event_type: 'signal.paid' }),
    ...['t1', 't2'].flatMap((key) => suspended(key, { wait_kind: 'worker', queue: 'gpu' })),
    ...suspended('child', { wait_kind: 'run', run_id: 'run_2' }),
  ])
  for (const key of ['t1', 't2']) {
    const step = steps.get(key)
    if (step)
      step.waitingOn = {
        kind: 'worker',
        reason: 'no worker',
        cause: 'no_worker',
        queue: 'gpu',
        action_name: '\u202eevil',
      }
  }
  const reasons = reasonsOf({ status: 'suspended' }, steps.values(), name)
  t.strictSame(
    reasons.map(({ sentence, next }) => [sentence, next]),
    [
      ['Step ask waits for an answer from Ada', { kind: 'answer', interactionId: 'iact_1' }],
      ['Step go waits for the signal paid', { kind: 'signal', name: 'paid' }],
      ['Steps t1, t2 wait for a worker: 2 jobs in queue gpu', { kind: 'workers', queue: 'gpu' }],
      ['Step child waits for another run', { kind: 'run', runId: 'run_2' }],
    ],
  )
  t.equal(
    reasons[2]?.detail,
    'No connected worker accepts the action \u2068evil\u2069 of this queue.',
    'the cause is a sentence of the console, and isolates the names in it',
  )
  const detailFor = (more: Partial<WaitingOn>) => {
    const step = steps.get('t1')
    if (step)
      step.waitingOn = { kind: 'worker', reason: 'r', queue: 'gpu', action_name: 'a', ...more }
    return reasonsOf({ status: 'suspended' }, step ? [step] : [], name)[0]?.detail
  }
  t.strictSame(
    [
      detailFor({ cause: 'environment', environment_id: 'env_1' }),
      detailFor({ cause: 'executor' }),
      detailFor({ cause: 'slot', able_workers: 1 }),
      detailFor({ cause: 'slot', able_workers: 3 }),
      detailFor({ cause: 'no_worker', environment_id: 'env_1' }),
      detailFor({}),
      detailFor({ kind: 'retry' }),
    ],
    [
      'The environment env_1 has not admitted the job yet. It may be in preparation, orphaned or ' +
        'leased to another holder.',
      'All executors of the service are busy.',
      'One worker accepts the job, and is busy.',
      '3 workers accept the job, and are busy.',
      'No connected worker of the environment env_1 accepts the action a.',
      undefined,
      undefined,
    ],
    'a service of an earlier release reports no cause',
  )
  const cancelled = { kind: 'cancel' as const, reason: 'stopping', worker_instance_id: 'w1' }
  t.match(reasonsOf({ status: 'suspended', waitingOn: cancelled }, steps.values(), name), [
    { sentence: 'The run is being cancelled', detail: 'The worker w1 has not stopped yet.' },
  ])
})

t.test('a cleared fold applies events that it has applied before', async (t) => {
  const events = [event(0, 'run.started'), event(10, 'run.completed')]
  const fold = folded(events, [record('s', 10)])
  fold.clear()
  t.match(fold, { events: [], status: undefined, startedAt: undefined })
  t.equal(fold.steps.size, 0)
  fold.addEvents(events)
  t.same(fold.events, events)
})
