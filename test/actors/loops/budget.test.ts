/** The daily budget of a loop: which runs are halted, until when, and which runs keep waiting. */
import t from 'tap'
import { START, Yard } from './yard.ts'

const DAY_MS = 86_400_000
const WINDOW_MS = 300_000
const made = (more: Record<string, unknown> = {}): Yard => {
  const yard = new Yard()
  yard.create({ limits: { daily_credit_budget: 10 }, ...more })
  return yard
}
const starts = (yard: Yard, count: number): string[] => {
  for (let i = 0; i < count; i++) yard.start()
  return yard.in('running', 'waiting')
}
const spend = (yard: Yard, run_id = '', milli = 10_000, more: Record<string, unknown> = {}) =>
  yard.send('run.spent', { run_id, milli, ...more })
const update = (yard: Yard, more: Record<string, unknown>) =>
  yard.send('loop.update', { organization: 'org_1', ...more })
const untilOf = (yard: Yard) =>
  Object.fromEntries(yard.halts.map(({ run_id, said }) => [run_id, said['until']]))

t.test('spending past the daily budget halts all active runs until the window frees it', (t) => {
  const yard = made()
  const [a = '', b = '', c = ''] = starts(yard, 3)
  spend(yard, b, 9_999)
  t.strictSame(yard.halts, [], 'the budget is not spent')
  yard.now += WINDOW_MS
  spend(yard, b, 1)
  t.strictSame(
    yard.halts.map(({ run_id }) => run_id),
    [b, a, c],
    'the run that spent is halted first',
  )
  t.strictSame(yard.halts[0]?.said, { used: 10, limit: 10, until: START + DAY_MS })
  yard.end(a)
  t.strictSame(Object.keys(yard.state.halted ?? {}), [b, c], 'an ended run is forgotten')
  t.end()
})

t.test('later spending moves the end of the halts of all active runs', (t) => {
  const yard = made()
  const [a = '', b = ''] = starts(yard, 2)
  spend(yard, a)
  yard.now += WINDOW_MS
  yard.halts.length = 0
  spend(yard, b, 5_000)
  t.strictSame(untilOf(yard), { [b]: START + DAY_MS }, 'half of it is free when the first expires')
  spend(yard, b, 5_000)
  t.strictSame(untilOf(yard), {
    [a]: START + WINDOW_MS + DAY_MS,
    [b]: START + WINDOW_MS + DAY_MS,
  })
  t.end()
})

t.test('a halt has continues only for the run whose agent continues its turn', (t) => {
  const yard = made()
  const [a = ''] = starts(yard, 2)
  spend(yard, a, 10_000, { continues: true })
  t.strictSame(
    yard.halts.map(({ said }) => said['continues']),
    [true, undefined],
  )
  t.end()
})

t.test('many runs are halted in several commits', (t) => {
  const yard = made()
  const ids = starts(yard, 120)
  spend(yard, ids[100])
  t.equal(yard.halts.length, 50)
  yard.settle()
  t.strictSame(new Set(yard.halts.map(({ run_id }) => run_id)), new Set(ids))
  t.equal(yard.halts.length, 120, 'each run once')
  t.end()
})

t.test('a changed limit halts or releases active runs', (t) => {
  const yard = made()
  const [a = ''] = starts(yard, 1)
  spend(yard, a, 5_000)
  update(yard, { limits: { daily_credit_budget: 5 } })
  t.strictSame(untilOf(yard), { [a]: START + DAY_MS })
  yard.now += 1_000
  update(yard, { limits: { daily_credit_budget: 6 } })
  t.strictSame(untilOf(yard), { [a]: yard.now }, 'the halt ends now')
  update(yard, { limits: { daily_credit_budget: 5 } })
  update(yard, { limits: {} })
  t.match(yard.halts.at(-1), { run_id: a, said: { until: yard.now } }, 'also without a limit')
  t.equal(yard.halts.length, 4)
  t.end()
})

t.test('waiting runs stay in the queue while the daily budget is spent', (t) => {
  const yard = made({ concurrency: 'queue' })
  const [first = '', second = '', third = ''] = starts(yard, 3)
  spend(yard, first)
  yard.end(first, 'failed')
  yard.settle()
  t.strictSame(yard.in('waiting'), [second, third])
  t.equal(yard.actor.deadline?.(yard.state as never), START + DAY_MS)
  yard.now = START + DAY_MS
  yard.send('wake')
  t.strictSame([yard.in('running'), yard.in('waiting')], [[second], [third]])
  spend(yard, second)
  yard.end(second)
  t.strictSame(yard.in('waiting'), [third])
  update(yard, { limits: { daily_credit_budget: 20 } })
  t.strictSame(yard.in('running'), [third], 'a raised limit admits a waiting run')
  t.end()
})

t.test('a run whose recovery was accepted before the budget was spent is halted', (t) => {
  const yard = made()
  const [a = '', b = ''] = starts(yard, 2)
  yard.end(a, 'failed')
  spend(yard, b)
  yard.halts.length = 0
  yard.send('run.returns', { run_id: a })
  t.strictSame(untilOf(yard), { [a]: START + DAY_MS })
  t.end()
})

t.test('the version for a recovery names a spent daily budget', (t) => {
  const yard = made()
  const [a = ''] = starts(yard, 1)
  const asked = () =>
    yard.actor.ask?.['version']?.(yard.state as never, {} as never, yard.now) as object
  t.notOk('spent_budget' in asked())
  spend(yard, a, 11_000)
  t.match(asked(), {
    number: 1,
    spent_budget: { daily_credit_budget: 10, credit_spent: 11 },
  })
  yard.now = START + DAY_MS
  t.notOk('spent_budget' in asked())
  t.end()
})
