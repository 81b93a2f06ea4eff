/** The step records of a view: which of them a recovery of the run removes. */
import t from 'tap'
import { View } from '../../../../views/view.ts'
import {
  ask,
  each,
  event,
  Journal,
  run,
  started,
  stepBorn,
  T0,
  viewOf,
} from '../../support/journal.ts'

const born = (key: string, seq: number) =>
  event('step.started', { step: key, row: stepBorn('run_1', key, seq, { job_id: key }) })
const first = run('run_1', [born('a', 1), born('a.0.x', 2), born('a.1.x', 3), born('ab', 4)])
const resumed = run('run_1', [
  event('run.resumed', { drops: ['a.'], run: { status: 'queued' } }),
  event('step.started', {
    step: 'a.0.x',
    row: { step_key: 'a.0.x', kind: 'action', status: 'running', seq: 5, attempt: 1 },
  }),
])
const stepsIn = (view: View) => ask(view, 'run.steps', { id: 'run_1' })

t.test(
  'the records in repeated branches are removed, whether they were stored or not',
  async (t) => {
    const journal = new Journal()
    for (const draft of [started('run_1', 1), first, resumed]) journal.commit(0, draft)
    const view = View.open(':memory:', { now: () => T0 })
    const [begin, steps, again] = journal.messages as [never, never, never]
    view.apply([begin, steps])
    t.strictSame(each(stepsIn(view), 'step_key'), ['a', 'a.0.x', 'a.1.x', 'ab'])
    view.apply([again])
    const atOnce = viewOf(started('run_1', 1), first, resumed)
    for (const one of [view, atOnce]) {
      t.strictSame(each(stepsIn(one), 'step_key'), ['a', 'ab', 'a.0.x'])
      t.strictSame(each(stepsIn(one), 'job_id'), ['a', 'ab', undefined])
    }
  },
)
