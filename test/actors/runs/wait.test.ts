/** Steps that wait for signals: early signals, mappings, keys, limits and timeouts. */
import t from 'tap'
import { MAX_STORED } from '../../../actors/runs/commands/signal.ts'
import type { Step } from '../../../protocol/workflows/spec.ts'
import { START, typesOf } from '../../support/given.ts'
import { action, payload, record, settle, sleep, started, step, wait } from './story.ts'

const go = (payload: Record<string, unknown> = {}, more: Record<string, unknown> = {}) => ({
  name: 'go',
  payload,
  ...more,
})

t.test('a signal completes the step that waits for it', async (t) => {
  const waiting = started([wait('a')])
  t.match(payload(waiting, 'wait.opened'), {
    step: 'a',
    wait_id: 'wait_1',
    wait_kind: 'event',
    event_type: 'signal.go',
  })
  t.match(step(waiting, 'a'), {
    status: 'suspended',
    waiting_on: { kind: 'signal', event_type: 'signal.go' },
  })
  const after = waiting.when('run.signal', go({ ok: true }))
  t.strictSame(after.reply, { source_event_id: 'sevt_1' })
  t.strictSame(typesOf(after), [
    'signal.stored',
    'wait.resumed',
    'step.resumed',
    'step.completed',
    'run.resumed',
    'run.completed',
  ])
  t.strictSame(
    record(after).result,
    {
      a: {
        event: { run_id: 'run_1', signal_name: 'go', payload: { ok: true } },
        meta: { run_id: 'run_1', signal_name: 'go' },
      },
    },
    'the event and meta that expressions see',
  )
  t.strictSame(after.state.signals, [])
})

t.test(
  'an early signal is stored and consumed when a step waits for it, in order of arrival',
  async (t) => {
    const scene = started([action('a'), wait('b'), wait('c')])
      .when('run.signal', go({ n: 1 }))
      .when('run.signal', go({ n: 2 }))
    t.strictSame(typesOf(scene), ['signal.stored'])
    const after = settle(scene, 'job_1', 'completed')
    t.strictSame(typesOf(after).slice(5), [
      'step.started',
      'wait.opened',
      'wait.resumed',
      'step.completed',
      'step.started',
      'wait.opened',
      'wait.resumed',
      'step.completed',
      'run.completed',
    ])
    t.match(record(after).result, {
      b: { event: { payload: { n: 1 } } },
      c: { event: { payload: { n: 2 } } },
    })
  },
)

t.test('a signal that does not match stays for a later step', async (t) => {
  const steps = [
    wait('a', 'go', {
      source_id: '${{ meta.run_id }}',
      match: { 'event.payload.order': '${{ input.order }}' },
    }),
    wait('b'),
  ]
  const waiting = started(steps, {}, { input: { order: 7 } })
  t.match(payload(waiting, 'wait.opened'), { match: { 'event.payload.order': 7 } })
  const other = waiting.when('run.signal', go({ order: 8 })).when('run.signal', { name: 'stop' })
  t.equal(record(other).status, 'suspended')
  const after = other.when('run.signal', go({ order: 7 }))
  t.match(record(after), {
    status: 'completed',
    result: { a: { event: { payload: { order: 7 } } }, b: { event: { payload: { order: 8 } } } },
  })
  t.strictSame(
    after.state.signals.map(({ name }) => name),
    ['stop'],
  )
})

t.test('a mapping creates the output', async (t) => {
  const after = started([
    wait('a', 'go', {
      payload_mapping: { id: 'event.payload.order.id', from: 'meta.signal_name' },
    }),
  ]).when('run.signal', go({ order: { id: 3 } }))
  t.strictSame(record(after).result, { a: { id: 3, from: 'go' } })
})

t.test('a signal whose mapping fails is consumed; a retry waits for the next one', async (t) => {
  const mapping = { payload_mapping: { n: 'event.payload.n - 1' } }
  const bad = started([wait('a', 'go', mapping, { retry: { max_attempts: 2 } })]).when(
    'run.signal',
    go({ n: [] }),
  )
  t.strictSame(typesOf(bad), [
    'signal.stored',
    'wait.resumed',
    'step.retried',
    'run.resumed',
    'step.suspended',
    'wait.opened',
    'run.suspended',
  ])
  t.match(payload(bad, 'step.retried'), {
    attempt: 2,
    max_attempts: 2,
    retry_scope: 'step_policy',
    error_type: 'expression_error',
  })
  t.match(record(bad.when('run.signal', go({ n: 3 }))).result, { a: { n: 2 } })
  t.match(record(bad.when('run.signal', go({ n: [] }))), {
    status: 'failed',
    error_type: 'expression_error',
  })
})

t.test('signals with the same name and key count once; keys are separate per name', async (t) => {
  const first = started([sleep('a')]).when('run.signal', go({ n: 1 }, { idempotency_key: 'k' }))
  const again = first.when('run.signal', go({ n: 2 }, { idempotency_key: ' k ' }))
  t.strictSame([again.events, again.reply], [[], first.reply])
  t.strictSame(first.when('run.signal', { name: 'stop', idempotency_key: 'k' }).reply, {
    source_event_id: 'sevt_2',
  })
  t.strictSame(
    first.when('run.cancel').when('run.signal', go({}, { idempotency_key: 'k' })).reply,
    first.reply,
    'also after the run has ended',
  )
})

t.test('a run that has ended and an unknown run accept no signals', async (t) => {
  const ended = started([sleep('a', '0s')])
  t.match(ended.when('run.signal', go()).refused, {
    refused: 'conflict',
    details: { status: 'completed' },
  })
  t.match(ended.when('run.signal', { step_key: 'a' }).refused, { refused: 'conflict' })
})

t.test('the number of stored signals is limited', async (t) => {
  let scene = started([sleep('a')])
  for (let i = 0; i < MAX_STORED; i++) scene = scene.when('run.signal', go())
  t.match(scene.when('run.signal', go()).refused, {
    refused: 'conflict',
    details: { limit: MAX_STORED },
  })
})
t.test('the total size of stored signals is limited', async (t) => {
  let scene = started([sleep('a')])
  for (let i = 0; i < 17; i++) scene = scene.when('run.signal', go({ text: 'x'.repeat(1_000_000) }))
  t.match(scene.when('run.signal', go()).refused, {
    refused: 'conflict',
    details: { limit: 16 * 1024 * 1024 },
  })
  t.match(
    scene.when('interaction.opened', {
      interaction_id: 'iact_1',
      kind: 'request_approval',
      signal_name: 'go',
    }).tells,
    [{ name: 'interaction.withdraw' }],
    'an interaction that would end as a signal is withdrawn',
  )
})

t.test(
  'a signal with a step key completes the suspended step, whatever it waits for',
  async (t) => {
    const waiting = started([wait('a'), action('b'), sleep('c')])
    const one = waiting.when('run.signal', { step_key: 'a', result: { by: 'hand' } })
    t.match(one.reply, { id: 'run_1', status: 'suspended', status_code: 200 })
    t.match(step(one, 'a'), { status: 'completed', result: { by: 'hand' } })
    const two = one.when('run.signal', { step_key: 'b' })
    t.match(two.tells, [{ name: 'queue.cancel', input: { job_ids: ['job_1'] } }])
    t.match(two.when('run.signal', { step_key: 'c' }).reply, {
      status: 'completed',
      result: { a: { by: 'hand' }, b: {}, c: {} },
    })
  },
)

t.test('a signal with a step key requires a known and suspended step', async (t) => {
  const waiting = started([sleep('z', '0s'), wait('a'), sleep('b')])
  t.match(waiting.when('run.signal', { step_key: 'nope' }).refused, { refused: 'not_found' })
  t.match(waiting.when('run.signal', { step_key: 'b' }).refused, {
    refused: 'bad_request',
    details: { fields: [{ field: 'step_key', actual: 'pending' }] },
  })
  t.match(waiting.when('run.signal', { step_key: 'z' }).refused, {
    refused: 'bad_request',
    details: { fields: [{ actual: 'completed' }] },
  })
})

t.test('a signal with a step key finds the steps of active branches', async (t) => {
  const branch = (id: string) => ({ id, steps: [sleep('z', '0s'), wait('w')] })
  const both = {
    id: 'both',
    kind: 'parallel',
    config: { branches: [branch('left'), branch('right')] },
  } as Step
  const waiting = started([both])
  const [key = ''] = (waiting.state.branches ?? []).map((one) => one.key)
  t.match(waiting.when('run.signal', { step_key: `${key}.z` }).refused, {
    refused: 'bad_request',
    details: { fields: [{ field: 'step_key', actual: 'completed' }] },
  })
  t.match(waiting.when('run.signal', { step_key: 'z' }).refused, { refused: 'not_found' })
  t.match(waiting.when('run.signal', { step_key: `${key}.nope` }).refused, { refused: 'not_found' })
  t.equal(waiting.when('run.signal', { step_key: `${key}.w` }).refused, undefined)
})

t.test('a wait that times out fails its step', async (t) => {
  const waiting = started([wait('a', 'go', {}, { timeout: { duration: '1m' } })])
  t.match(step(waiting, 'a')?.waiting_on, { kind: 'signal', until: '2026-01-01T00:01:00.000Z' })
  t.match(payload(waiting, 'wait.opened'), {
    deadline: '2026-01-01T00:01:00.000Z',
    expires_at: '2026-01-01T00:01:00.000Z',
  })
  const over = waiting.when('wake', {}, { at: START + 60_000 })
  t.strictSame(typesOf(over), ['wait.timed_out', 'step.failed', 'run.failed'])
  t.match(payload(over, 'wait.timed_out'), { step: 'a', wait_id: 'wait_1', reason: 'timeout' })
  t.match(record(over), { status: 'failed', error_type: 'timeout' })
})

t.test('the resumed event gives the reason after a cleanup timeout or for a retry', async (t) => {
  const cleaning = (retry: object) =>
    started([sleep('a', '0')], {
      cleanup: [action('tidy', { timeout: { duration: '1m' }, ...retry }) as never],
    }).when('wake', {}, { at: START + 60_000 })
  const over = cleaning({})
  t.strictSame(typesOf(over).slice(-3), ['step.failed', 'run.resumed', 'run.completed'])
  t.strictSame(payload(over, 'run.resumed'), { reason: 'timeout' })
  const again = started([
    wait('a', 'go', {}, { timeout: { duration: '1m' }, retry: { max_attempts: 2 } }),
  ]).when('wake', {}, { at: START + 60_000 })
  t.strictSame(payload(again, 'run.resumed'), { step: 'a', reason: 'retry' })
})

t.test('a suspended run resumes before the first step of its cleanup', async (t) => {
  const waiting = started([wait('a', 'go', {}, { timeout: { duration: '1m' } })], {
    cleanup: [action('tidy') as never],
  })
  const over = waiting.when('wake', {}, { at: START + 60_000 })
  for (const cleaning of [over, waiting.when('run.cancel')]) {
    const types = typesOf(cleaning)
    t.strictSame(types.slice(types.indexOf('run.resumed')), [
      'run.resumed',
      'step.started',
      'action.called',
      'step.suspended',
      'wait.opened',
      'run.suspended',
    ])
    t.equal(types.filter((type) => type === 'run.resumed').length, 1)
    t.strictSame(payload(cleaning, 'run.resumed'), {
      step: 'cleanup.tidy',
      reason: cleaning === over ? 'timeout' : 'cancelled',
    })
  }
})

t.test('a timed-out wait is retried after the delay of its policy', async (t) => {
  const waiting = started([
    wait('a', 'go', {}, { timeout: { duration: '1m' }, retry: { max_attempts: 2, delay: '10s' } }),
  ])
  const delayed = waiting.when('wake', {}, { at: START + 60_000 })
  t.strictSame(typesOf(delayed), ['wait.timed_out', 'step.retried'], 'it was and stays suspended')
  t.match(step(delayed, 'a'), {
    status: 'suspended',
    attempt: 2,
    waiting_on: { kind: 'retry', until: '2026-01-01T00:01:10.000Z' },
  })
  t.equal(delayed.deadline(), START + 70_000)
  t.strictSame(
    typesOf(delayed.when('run.signal', go())),
    ['signal.stored'],
    'a signal during the delay is stored',
  )
  const again = delayed.when('wake', {}, { at: START + 70_000 })
  t.strictSame(typesOf(again), [
    'wait.closed',
    'step.resumed',
    'run.resumed',
    'step.suspended',
    'wait.opened',
    'run.suspended',
  ])
  t.equal(again.deadline(), START + 130_000)
  t.match(record(again.when('wake', {}, { at: START + 130_000 })), {
    status: 'failed',
    error_type: 'timeout',
  })
})
