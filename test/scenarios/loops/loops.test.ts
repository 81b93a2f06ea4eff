/**
 * The basic life cycle of a loop and its run, over real HTTP. Other files in this folder test
 * policies, triggers and limits.
 */
import t from 'tap'
import { service } from '../../support/service.ts'
import { ended, ids, idsOf, listOf, timelineOf } from '../support/given.ts'

const s = await service()
t.teardown(() => s.stop())
const nap = (duration = '0') => [{ id: 'nap', kind: 'sleep', config: { duration } }]

t.test('a loop is created, read and started, and its run has the shape of loop runs', async (t) => {
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
