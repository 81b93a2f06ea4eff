/** Sleep steps: durations, times in the past, and steps without an id. */
import t from 'tap'
import { START, typesOf } from '../../support/given.ts'
import { payload, record, sleep, started, step } from './story.ts'

t.test('a sleep suspends the run until its time', async (t) => {
  const asleep = started([sleep('a', '1h30m'), sleep('b', '0s')])
  t.strictSame(payload(asleep, 'wait.opened'), {
    step: 'a',
    wait_id: 'wait_1',
    wait_kind: 'timer',
    deadline: '2026-01-01T01:30:00.000Z',
  })
  t.match(step(asleep, 'a'), {
    status: 'suspended',
    wait_id: 'wait_1',
    waiting_on: { kind: 'timer', until: '2026-01-01T01:30:00.000Z', step_key: 'a' },
  })
  t.equal(asleep.deadline(), START + 5_400_000)
  t.strictSame(asleep.when('wake', {}, { at: START + 5_399_999 }).events, [], 'woken too early')
  const awake = asleep.when('wake', {}, { at: START + 5_400_000 })
  t.strictSame(typesOf(awake), [
    'wait.resumed',
    'step.resumed',
    'step.completed',
    'run.resumed',
    'step.started',
    'step.completed',
    'run.completed',
  ])
  t.match(record(awake), {
    status: 'completed',
    result: { a: {}, b: {} },
    completed_at: '2026-01-01T01:30:00.000Z',
  })
  t.notOk(step(awake, 'a')?.waiting_on)
  t.strictSame(awake.when('wake').events, [], 'woken again')
})

t.test('a sleep that is longer than its timeout fails or continues with it', async (t) => {
  const limited = (duration: string, more: Record<string, unknown> = {}) =>
    started([sleep('a', '1h', { timeout: { duration, ...more } as never })])
  const asleep = limited('50ms')
  t.match(payload(asleep, 'wait.opened'), { deadline: '2026-01-01T00:00:00.050Z' })
  t.match(step(asleep, 'a')?.waiting_on, { until: '2026-01-01T01:00:00.000Z' })
  t.equal(asleep.deadline(), START + 50)
  const failed = asleep.when('wake', {}, { at: START + 50 })
  t.match(record(failed), { status: 'failed', error_type: 'timeout' })
  t.match(payload(failed, 'wait.timed_out'), { step: 'a', wait_id: 'wait_1', reason: 'timeout' })
  const continued = limited('50ms', { on_timeout: 'continue' }).when('wake', {}, { at: START + 50 })
  t.match(record(continued), { status: 'completed', result: { a: { timed_out: true } } })
  for (const duration of ['1h', '2h', '0']) {
    const slept = limited(duration)
    t.equal(slept.deadline(), START + 3_600_000)
    const awake = slept.when('wake', {}, { at: START + 3_600_000 })
    t.match(record(awake), { status: 'completed', result: { a: {} } }, `timeout ${duration}`)
  }
})

t.test('a sleep that timed out is repeated by its retry policy', async (t) => {
  const again = started([
    sleep('a', '1h', { timeout: { duration: '50ms' }, retry: { max_attempts: 2 } } as never),
  ]).when('wake', {}, { at: START + 50 })
  t.match(payload(again, 'step.retried'), { attempt: 2, error_type: 'timeout' })
  t.equal(again.deadline(), START + 100, 'each attempt has the whole timeout')
  const failed = again.when('wake', {}, { at: START + 100 })
  t.match(record(failed), { status: 'failed', error_type: 'timeout' })
})

t.test('a sleep until a time in the past does not suspend the run', async (t) => {
  const step = { id: 'a', kind: 'sleep', config: { until: '2025-12-31T23:00:00Z' } } as const
  t.equal(record(started([step])).status, 'completed')
  const later = started([{ ...step, config: { until: '2026-01-01T02:00:00+01:00' } }])
  t.equal(later.deadline(), START + 3_600_000)
})

t.test('a step without an id is identified by its index', async (t) => {
  const asleep = started([{ kind: 'sleep', config: { duration: '1s' } }])
  t.match(step(asleep, '0'), { id: 'run_1:0', step_key: '0' })
})
