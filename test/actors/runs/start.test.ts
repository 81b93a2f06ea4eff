/** How a run starts: its record, inputs, idempotency key, conditions and expressions. */
import t from 'tap'
import { run } from '../../../actors/runs/run.ts'
import type { RunState } from '../../../actors/runs/state.ts'
import { given, START, typesOf } from '../../support/given.ts'
import { action, payload, record, settle, sleep, started, step, wait } from './story.ts'

t.test('a start creates the complete record and runs as far as possible', async (t) => {
  const after = started(
    [sleep('a')],
    { queue: 'gpu', workflow_type: 'video' },
    { external_id: 'x1', parent_run_id: 'run_0', input: { n: 1 } },
  )
  t.strictSame(typesOf(after), [
    'run.created',
    'run.started',
    'step.started',
    'step.suspended',
    'wait.opened',
    'run.suspended',
  ])
  t.strictSame(after.reply, {
    id: 'run_1',
    status: 'suspended',
    definition_id: '',
    definition_version: 0,
    cancel_requested: false,
    queue: 'gpu',
    workflow_type: 'video',
    external_id: 'x1',
    parent_run_id: 'run_0',
    initiated_by: 'ci',
    input: { n: 1 },
    created_at: '2026-01-01T00:00:00.000Z',
    started_at: '2026-01-01T00:00:00.000Z',
    updated_at: '2026-01-01T00:00:00.000Z',
  })
})

t.test('queue and type of the request override the spec', async (t) => {
  const after = started(
    [sleep('a')],
    { queue: 'gpu', workflow_type: 'video' },
    { queue: 'cpu', workflow_type: 'audio' },
  )
  t.match(after.reply, { queue: 'cpu', workflow_type: 'audio' })
  t.equal(record(started([sleep('a')])).queue, 'default')
})

t.test('a start of a workflow runs the given version', async (t) => {
  const after = given<RunState>(run).when('workflow.run', {
    definition: { id: 'wfd_1', version: 3, spec: { steps: [sleep('a')] } },
  })
  t.match(after.reply, { definition_id: 'wfd_1', definition_version: 3 })
  t.match(payload(after, 'run.started'), {
    run_id: 'run_1',
    definition_id: 'wfd_1',
    definition_version: 3,
    source: { type: 'api', label: 'ci' },
  })
})

t.test('an unknown definition is not found', async (t) => {
  t.match(given(run).when('run.start', { definition_id: 'wfd_9' }).refused, {
    refused: 'not_found',
  })
})

t.test('declared inputs get defaults, and missing required ones are listed', async (t) => {
  const spec = {
    input: { size: { type: 'number', required: true }, mode: { default: 'fast' } },
    config: { region: { required: true } },
  }
  const refused = started([sleep('a')], spec).refused
  t.match(refused, {
    refused: 'bad_request',
    details: { fields: [{ field: 'input.size' }, { field: 'config.region' }] },
  })
  const after = started([sleep('a')], spec, { input: { size: 3 }, config: { region: 'eu' } })
  t.strictSame(record(after).input, { size: 3, mode: 'fast' })
})

t.test('a repeated start returns the same run and changes nothing', async (t) => {
  const after = started([sleep('a')])
  const again = after.when('run.start', { spec: { steps: [sleep('a')] } })
  t.strictSame([again.events, again.tells, again.reply], [[], [], after.reply])
})

t.test('names are cut between characters', async (t) => {
  const named = (template: string) =>
    started([sleep('a')], { run_name: { template, description_template: template } })
  const face = '\u{1f600}'
  t.match(record(named(`a${face.repeat(400)}`)), {
    name: `a${face.repeat(159)}`,
    description: `a${face.repeat(319)}`,
  })
  t.equal(record(named(face.repeat(160))).name, face.repeat(160))
  t.equal(record(named('x'.repeat(161))).name, 'x'.repeat(160))
})

t.test(
  'an idempotency key returns the same run while it is active, and conflicts after its end',
  async (t) => {
    const active = started([sleep('a')], {}, { idempotency_key: 'k' })
    t.strictSame(
      active.when('run.start', { idempotency_key: 'k', spec: { steps: [sleep('a')] } }).reply,
      active.reply,
    )
    const ended = active.when('run.cancel')
    t.match(ended.when('run.start', { idempotency_key: 'k' }).refused, {
      refused: 'idempotency_key_conflict',
      details: { run_id: 'run_1', status: 'cancelled' },
    })
    t.match(
      ended.when('run.start', { idempotency_key: '  ' }).reply,
      { id: 'run_1' },
      'a blank key is none',
    )
  },
)

t.test('a run that waits for nothing ends in the commit that starts it', async (t) => {
  const after = started([sleep('a', '0s'), sleep('b', '0s')])
  t.strictSame(typesOf(after), [
    'run.created',
    'run.started',
    'step.started',
    'step.completed',
    'step.started',
    'step.completed',
    'run.completed',
  ])
  t.match(after.reply, {
    status: 'completed',
    result: { a: {}, b: {} },
    completed_at: '2026-01-01T00:00:00.000Z',
  })
  t.strictSame(payload(after, 'run.completed'), { output: { a: {}, b: {} }, status: 'completed' })
  t.ok(run.ended?.(after.state))
  t.equal(after.deadline(), undefined)
})

t.test('a step whose condition is false is skipped', async (t) => {
  const after = started(
    [sleep('a', '1h', { if: 'input.long', name: 'Rest' }), sleep('b', '0s')],
    {},
    { input: { long: false } },
  )
  t.strictSame(payload(after, 'step.skipped'), {
    step: 'a',
    kind: 'sleep',
    reason: 'the condition is false',
  })
  t.match(step(after, 'a'), {
    id: 'run_1:a',
    status: 'skipped',
    seq: 0,
    step_name: 'Rest',
    attempt: 1,
    parameters: { duration: '1h' },
  })
  t.match(after.reply, { status: 'completed', result: { b: {} } })
})

t.test(
  'expressions can read input, event, config, meta, and outputs of steps by key and index',
  async (t) => {
    const output = {
      input: '${{ input.n }}',
      event: '${{ event.n }}',
      config: '${{ config.c }}',
      caller: '${{ meta.team }}',
      id: '${{ meta.run_id }}',
      label: '${{ meta.source.label }}',
      key: '${{ steps.a.output.size }}',
      index: '${{ steps[0].output.size }}',
      skipped: '${{ steps.b.output }}',
    }
    const after = settle(
      started(
        [action('a'), sleep('b', '1s', { if: 'false' })],
        { output },
        { input: { n: 1 }, config: { c: 'x' }, metadata: { team: 'ops', run_id: 'forged' } },
      ),
      'job_1',
      'completed',
      { result: { size: 7 } },
    )
    t.strictSame(record(after).result, {
      input: 1,
      event: 1,
      config: 'x',
      caller: 'ops',
      id: 'run_1',
      label: 'ci',
      key: 7,
      index: 7,
      skipped: null,
    })
  },
)

t.test('a failing expression fails its step and the run', async (t) => {
  const bad = '[1] + 1 > 0'
  const after = started([sleep('a', '1s', { if: bad })])
  t.strictSame(typesOf(after).slice(-3), ['step.started', 'step.failed', 'run.failed'])
  t.match(after.reply, { status: 'failed', error_type: 'expression_error' })
  t.match(payload(after, 'run.failed'), {
    status: 'failed',
    step: 'a',
    error_type: 'expression_error',
  })
  const late = started([sleep('a', '0s')], { output: { x: '${{ [1] - 1 }}' } })
  t.match(late.reply, { status: 'failed', error_type: 'expression_error' })
  t.equal(typesOf(late).at(-1), 'run.failed')
})

t.test(
  'a child run records who started its parent and from where, whoever woke the parent',
  async (t) => {
    const inner = { id: 'wfd_2', version: 1, spec: { steps: [sleep('z')] } }
    const call = { id: 'call', kind: 'loop', config: { workflow_id: 'inner' } } as ReturnType<
      typeof sleep
    >
    const clock = {
      at: START + 10_000,
      principal: { type: 'system', id: 'node_1', name: 'system' },
      credential: { type: 'internal', id: 'node_1' },
    } as const
    const woken = started([sleep('a'), call], {}, { definitions: { inner } }).when(
      'wake',
      {},
      clock,
    )
    const asked = woken.tells.find(({ name }) => name === 'child.start')?.input as Record<
      string,
      unknown
    >
    const child = given<RunState>(run).when('child.start', asked, clock)
    t.match(record(child), { initiated_by: 'ci' })
    t.match(payload(child, 'run.started'), { source: { type: 'api', label: 'ci', id: 'key_1' } })
    const { initiated_by: _, source: _1, ...older } = asked
    t.match(
      record(given<RunState>(run).when('child.start', older, clock)),
      { initiated_by: 'system' },
      'the parent is of an older release',
    )
  },
)

t.test('steps can have the names of members of Object.prototype', async (t) => {
  const after = started([wait('constructor'), sleep('__proto__', '0s')]).when('run.signal', {
    name: 'go',
    payload: { x: 1 },
  })
  t.equal(record(after).status, 'completed')
  t.strictSame(Object.keys(record(after).result ?? {}), ['constructor', '__proto__'])
})

t.test('a run with more work than one commit allows pauses and continues by timer', async (t) => {
  let scene = started(Array.from({ length: 200 }, (_, i) => sleep(`s${i}`, '0s')))
  t.ok(scene.events.length < 320)
  t.strictSame(
    [record(scene).status, typesOf(scene).at(-1)],
    ['running', 'run.paused'],
    'which is its own business',
  )
  t.equal(scene.deadline(), START + 1)
  for (let turns = 0; record(scene).status !== 'completed'; turns++) {
    t.ok(turns < 5)
    scene = scene.when('wake', {}, { at: scene.deadline() ?? 0 })
  }
  t.equal(Object.keys(record(scene).result ?? {}).length, 200)
})

t.test('a recovery is refused for a caller that may not start the spec or the call', async (t) => {
  const refused_start = { refused: 'permission_denied' }
  const over = settle(started([action('a')]), 'job_1', 'failed')
  for (const name of ['run.retry', 'run.recover'])
    t.match(over.when(name, { refused_start }).refused, refused_start, name)
  t.match(started([action('a')]).when('run.retry', { refused_start }).refused, {
    refused: 'run_not_failed',
  })
  const asleep = started([wait('a')])
  t.notOk(asleep.when('run.recover', { refused_start }).refused, 'a resumption is not a start')
  t.strictSame(over.ask('inline_spec'), over.state.spec)
})

t.test('a recovered direct call acts for the principal that recovers it', async (t) => {
  const call = given<RunState>(run).when('action.invoke', { action_name: 'x' })
  const over = settle(call, 'job_1', 'failed')
  const by = { principal: { type: 'service_account' as const, id: 'svc_other' } }
  const actorIn = ({ state }: typeof over) => state.engine.actor?.principal_id
  t.equal(actorIn(over.when('run.retry', {}, by)), 'svc_other')
  const failed = settle(started([action('a')]), 'job_1', 'failed')
  t.equal(actorIn(failed.when('run.retry', {}, by)), actorIn(failed), 'a run keeps its starter')
})
