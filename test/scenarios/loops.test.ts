/** Loops over real HTTP. */
import t from 'tap'
import { service } from '../service.ts'
import { ended, ids, idsOf, listOf, timelineOf } from './given.ts'

const s = await service()
t.teardown(() => s.stop())
const nap = (duration = '0') => [{ id: 'nap', kind: 'sleep', config: { duration } }]

t.test('a loop is made, read, started, and its run told in its own shape', async (t) => {
  const loop = await s.ok('loop.create', {
    name: 'Greeter',
    schema_version: '1',
    steps: nap(),
    event: { who: { type: 'string', required: true } },
    config: { tone: { default: 'kind' } },
    output: { said: '${{ event.who }} ${{ config.tone }} ${{ meta.loop_id }}' },
    run_name: { template: 'Greet ${{ event.who }}' },
    tags: { a: 'b' },
  })
  t.match(loop, { status: 'active', name: 'Greeter', tags: { a: 'b' } })
  const { id } = loop
  t.strictSame(await s.ok('loop.get', { id }), loop)
  t.strictSame(await s.ok('loop.get', { id: 'Greeter' }), loop)
  t.strictSame(idsOf(await s.ok('loop.list')), [id])
  const run = await s.ok('loop.start', { id, event: { who: 'Ada' } })
  t.match(run, {
    loop_id: id,
    loop_version: 1,
    loop_name: 'Greeter',
    status: 'completed',
    stop_reason: 'completed',
    name: 'Greet Ada',
    event: { who: 'Ada' },
    config: { tone: 'kind' },
    attempt: 1,
    credit_spent: 0,
    result: { said: `Ada kind ${id}` },
    meta: { run_id: run['id'], loop_id: id },
    source: { type: 'api', label: 'root' },
  })
  t.strictSame(await s.ok('run.get', { id: run['id'] }), run)
  t.match(await timelineOf(s, run['id']), [
    'run.started',
    'step.started',
    'step.completed',
    'run.completed',
  ])
  t.strictSame(listOf(await s.ok('run.list', { loop_id: id })), [run])
  t.strictSame(ids(listOf(await s.ok('run.list', { queue: 'default' }))), [])
  t.match(await s.refused('loop.start', { id, event: {} }, 400, 'bad_request'), {
    details: { fields: [{ field: 'event.who' }] },
  })
  const late = await s.ok('loop.start', { id: 'Greeter', event: { who: 'Bob' } })
  t.equal((await ended(s, late['id']))['status'], 'completed')
  t.match(await s.ok('loop.get', { id }), { last_run_at: String })
})

t.test('steps and jobs of its runs have no member that the contract does not name', async (t) => {
  const steps = [{ id: 'work', kind: 'action', config: { action_name: 'nobody.does' } }]
  const loop = await s.ok('loop.create', { name: 'Closed', steps })
  const [run, other] = [
    await s.ok('loop.start', { id: loop['id'] }),
    await s.ok('run.start', { spec: { steps } }),
  ]
  const extra = async (row: 'run.steps' | 'run.jobs', { id }: Record<string, unknown>) =>
    listOf(await s.ok(row, { id })).flatMap((item) =>
      ['waiting_on', 'priority', 'fairness_key'].filter((name) => name in item),
    )
  t.strictSame([await extra('run.steps', run), await extra('run.jobs', run)], [[], []])
  t.strictSame(
    [await extra('run.steps', other), await extra('run.jobs', other)],
    [['waiting_on'], ['waiting_on', 'priority']],
  )
  for (const { id } of [run, other]) await s.ok('run.cancel', { id })
})
