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
