/**
 * Lists of runs contain their array both as `items` and as `data`, or only under the configured one
 * of these names. With the filter `loop_id`, they always contain it as `items` only.
 */
import t from 'tap'
import { service } from '../../support/service.ts'
import { instant } from '../support/given.ts'

t.test('a list of runs has items and data, or the configured one', async (t) => {
  for (const [names, expected] of [
    ['both', ['items', 'data', 'has_more']],
    ['items', ['items', 'has_more']],
    ['data', ['data', 'has_more']],
  ] as const) {
    const s = await service({ BATON_RUN_LIST: names })
    t.teardown(() => s.stop())
    const { id } = await s.ok('run.start', { spec: instant() })
    const { body } = await s.raw('GET', '/v1/projects/default/runs')
    t.strictSame(Object.keys(body), expected, names)
    for (const name of ['items', 'data']) if (name in body) t.match(body[name], [{ id }])
    const of = `/v1/projects/default/runs?loop_id=loop_00000000000000000000000000`
    const filtered = await s.raw('GET', of)
    t.strictSame(Object.keys(filtered.body), ['items', 'has_more'], `${names}, of a loop`)
    await s.stop()
  }
})
