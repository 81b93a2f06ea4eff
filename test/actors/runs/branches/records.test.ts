/**
 * The records of steps in repeated branches. The run drops the records of a branch that has ended,
 * and a view keeps them, so the events of another attempt must remove what the first one left.
 */
import t from 'tap'
import { patch } from '../../../../protocol/patch.ts'
import type { RunEvent } from '../../../../protocol/runs/events.ts'
import type { RunStep } from '../../../../protocol/runs/schema.ts'
import type { Step } from '../../../../protocol/workflows/spec.ts'
import { type After, action, settle, sleep, started, step } from '../story.ts'

/** Returns the record of a step that a view has after these decisions. */
const viewed = (key: string, ...decisions: readonly After[]): RunStep =>
  decisions
    .flatMap(({ events }) => events as readonly RunEvent[])
    .reduce((row, event) => (event.step === key ? patch(row, event.row) : row), {} as RunStep)

const items = (steps: readonly Step[], more: Partial<Step> = {}): Step =>
  ({ id: 'e', kind: 'for_each', config: { items: [1], steps }, ...more }) as Step

t.test('a repeated item keeps nothing of its earlier attempt', async (t) => {
  const first = started([items([action('a'), action('b')], { retry: { max_attempts: 2 } })])
  const one = settle(first, 'job_1', 'completed', { result: { n: 1 } })
  const two = settle(one, 'job_2', 'failed', { error_type: 'Boom', error_message: 'no' })
  const left = viewed('e.0.a', first, one, two)
  t.match(left, { status: 'suspended', attempt: 1, job_id: 'job_3' })
  t.strictSame([left.result, left.completed_at], [undefined, undefined])
  const ended = two.when('run.cancel')
  const stopped = settle(ended, 'job_3', 'cancelled')
  t.match(viewed('e.0.a', first, one, two, ended, stopped), { status: 'cancelled' })
  t.notOk('result' in viewed('e.0.a', first, one, two, ended, stopped))
})

t.test('a step of an item that a retry skips has no error and no job', async (t) => {
  const spec = [items([action('a', { if: 'run.attempt == 1' })])]
  const first = started(spec)
  const one = settle(first, 'job_1', 'failed', { error_type: 'Boom', error_message: 'no' })
  t.match(viewed('e.0.a', first, one), { status: 'failed', error_type: 'Boom', job_id: 'job_1' })
  const skipped = viewed('e.0.a', first, one, one.when('run.retry'))
  t.equal(skipped.status, 'skipped')
  for (const member of ['error_type', 'error_message', 'job_id', 'wait_id', 'started_at'])
    t.notOk(member in skipped, member)
})

t.test('a step that a retry skips has no error and no verdict', async (t) => {
  const check = {
    id: 'c',
    kind: 'check',
    if: 'run.attempt == 1',
    config: { checks: [{ name: 'x', kind: 'expr', expr: 'false' }] },
  } as Step
  const failed = started([check, sleep('s')])
  t.match(step(failed, 'c'), { status: 'failed', error_type: 'check_failed', verdict: 'fail' })
  const skipped = step(failed.when('run.retry'), 'c') ?? {}
  t.match(skipped, { status: 'skipped' })
  for (const member of ['error_type', 'error_message', 'verdict', 'verdict_detail'])
    t.notOk(member in skipped, member)
})

t.test('a recovery names the branches that begin again, but not those that continue', async (t) => {
  const failing = () => {
    const first = started([items([action('a')]), items([action('b')], { id: 'f' })])
    const one = settle(first, 'job_1', 'completed', { result: {} })
    return settle(one, 'job_2', 'failed', { error_type: 'Boom', error_message: 'no' })
  }
  const drops = (input: object) =>
    failing()
      .when('run.retry', input)
      .events.flatMap((event) => (event as RunEvent).drops ?? [])
  t.strictSame(drops({}), [])
  t.strictSame(drops({ input: {} }), ['f.'])
  t.strictSame(drops({ from_step: 'e' }), ['e.', 'f.'])
})
