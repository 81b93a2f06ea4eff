/** The step records of a run that is retried with other items than before. */
import t from 'tap'
import { service } from '../../support/service.ts'
import { ended, listOf } from '../support/given.ts'

const s = await service()
t.teardown(() => s.stop())

const check = (id: string, expr: string) => ({
  id,
  kind: 'check',
  config: { checks: [{ name: 'small', kind: 'expr', expr }] },
})
const spec = {
  input: { items: { type: 'array', required: true } },
  steps: [
    {
      id: 'each',
      kind: 'for_each',
      config: { items: 'input.items', steps: [check('c', 'item < 3')] },
    },
    check('after', 'size(input.items) < 2'),
  ],
}
const keysOf = async (id: unknown) =>
  listOf(await s.ok('run.steps', { id })).map(({ step_key, status }) => `${step_key} ${status}`)

t.test('a retry with another input removes the records of earlier items', async (t) => {
  const { id } = await s.ok('run.start', { spec, input: { items: [1, 2, 5] } })
  t.match(await ended(s, id), { status: 'failed' })
  t.strictSame(await keysOf(id), [
    'each failed',
    'each.0.c completed',
    'each.1.c completed',
    'each.2.c failed',
  ])
  await s.ok('run.retry', { id, input: { items: [2, 1] } })
  t.match(await ended(s, id), { status: 'failed' })
  t.strictSame(await keysOf(id), [
    'each completed',
    'each.0.c completed',
    'each.1.c completed',
    'after failed',
  ])
  await s.ok('run.retry', { id, from_step: 'each', input: { items: [1] } })
  t.match(await ended(s, id), { status: 'completed' })
  t.strictSame(await keysOf(id), ['each completed', 'each.0.c completed', 'after completed'])
})

t.test('a retry without another input keeps the records of completed items', async (t) => {
  const { id } = await s.ok('run.start', { spec, input: { items: [1, 5] } })
  t.match(await ended(s, id), { status: 'failed' })
  await s.ok('run.retry', { id })
  t.match(await ended(s, id), { status: 'failed' })
  t.strictSame(await keysOf(id), ['each failed', 'each.0.c completed', 'each.1.c failed'])
})
