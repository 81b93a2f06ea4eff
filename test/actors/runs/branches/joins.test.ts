/** The end of steps with branches: the size of their outputs, and the faults that they report. */
import t from 'tap'
import type { RunState } from '../../../../actors/runs/state.ts'
import type { Step } from '../../../../protocol/workflows/spec.ts'
import { type Scene, typesOf } from '../../../support/given.ts'
import { type After, action, payload, record, settle, started } from '../story.ts'

/** Returns the job of the branch with this name. */
const jobOf = ({ state }: Scene<RunState>, name: string): string => {
  const wait = state?.branches?.find(({ key }) => key.endsWith(`.${name}`))?.wait
  return wait?.kind === 'worker' ? wait.job_id : ''
}

t.test('a step ends as soon as its outputs are too large', async (t) => {
  const each = {
    id: 'e',
    kind: 'for_each',
    retry: { max_attempts: 3 },
    config: { items: 'input.list', max_concurrency: 2, steps: [action('a')] },
  } as Step
  const result = { text: 'x'.repeat(400_000) }
  const list = Array.from({ length: 100 }, (_, index) => index)
  const one = settle(started([each], {}, { input: { list } }), 'job_1', 'completed', { result })
  t.match(record(one), { status: 'suspended' })
  const two = settle(one, jobOf(one, '1'), 'completed', { result })
  t.match(record(two), { status: 'failed', error_type: 'output_too_large' })
  t.match(
    (payload(two, 'step.failed') as { error: string }).error,
    /^The outputs have 800\d+ characters in total; at most 786432 are allowed$/,
  )
  t.match(two.tells, [{ name: 'queue.cancel', input: { job_ids: [jobOf(one, '2')] } }])
  t.notOk(typesOf(two).includes('branch.started'), 'no other item begins')
  const again = two.when('run.retry')
  t.match(record(again), { status: 'failed', error_type: 'output_too_large' })
  t.notOk(typesOf(again).includes('branch.started'))
  const anew: After = two.when('run.retry', { from_step: 'e' })
  t.match(record(anew), { status: 'suspended' }, 'a retry from the step drops the outputs')
})

t.test('a repeated step reports only the faults of its last attempt', async (t) => {
  const racing = (config: Record<string, unknown>): After =>
    started([
      {
        id: 'p',
        kind: 'parallel',
        retry: { max_attempts: 2 },
        config: {
          branches: ['x', 'y', 'z'].map((id) => ({ id, steps: [action('a')] })),
          ...config,
        },
      } as Step,
    ])
  const fail = (scene: Scene<RunState>, name: string, error_message: string): After =>
    settle(scene, jobOf(scene, name), 'failed', { error_type: 'E', error_message })
  const again = fail(racing({ join: 'first_failure' }), 'x', 'the first attempt')
  t.match(record(again), { status: 'suspended' })
  t.match(payload(fail(again, 'y', 'the last attempt'), 'step.failed'), {
    error: '1 of 3 failed; the first: the last attempt',
  })
  const all = ['x', 'y', 'z'].reduce(
    (scene, name) => fail(scene, name, 'no'),
    racing({ join: 'any' }),
  )
  const rejected = fail(all, 'y', 'still no')
  const won = settle(rejected, jobOf(rejected, 'z'), 'completed', { result: { n: 1 } })
  t.match(record(won), { status: 'completed' })
  t.strictSame(
    (record(won).result as { p: { errors: unknown } }).p.errors,
    { y: { error_type: 'E', error: 'still no' } },
    'a branch that the step no longer needs has no fault',
  )
})

t.test('a step that a retry skips leaves no items to the next step with branches', async (t) => {
  const each = (id: string, items: string, more: Partial<Step> = {}): Step =>
    ({ id, kind: 'for_each', config: { items, steps: [action('a')] }, ...more }) as Step
  const input = { list: [1, 2, 3], others: [4] }
  const first = started(
    [each('e', 'input.list', { if: 'run.attempt == 1' }), each('f', 'input.others')],
    {},
    { input },
  )
  const done = settle(first, jobOf(first, '0'), 'completed', { result: { n: 0 } })
  const failed = ['1', '2'].reduce(
    (scene, name) => settle(scene, jobOf(scene, name), 'failed'),
    done,
  )
  t.match(record(failed), { status: 'failed', error_type: 'branch_failed' })
  const again = failed.when('run.retry')
  t.match(payload(again, 'step.skipped'), { step: 'e' })
  t.match(payload(again, 'wait.opened'), { step: 'f.0.a' }, 'the item of the next step begins')
  const ended = settle(again, jobOf(again, '0'), 'completed', { result: { n: 4 } })
  t.strictSame(record(ended).result, {
    f: { count: 1, completed: 1, failed: 0, results: [{ a: { n: 4 } }] },
  })
})
