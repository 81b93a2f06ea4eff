/**
 * Step ids: almost any text is valid, and none collides with the key of a branch or of the cleanup.
 */
import t from 'tap'
import { service } from '../../support/service.ts'
import { ended, fieldsOf, listOf } from '../support/given.ts'

const s = await service()
t.teardown(() => s.stop())

const nap = (id?: string, more = {}) => ({
  ...(id !== undefined && { id }),
  kind: 'sleep',
  config: { duration: '0' },
  ...more,
})
const told = (id: string, text: string) => ({
  id,
  kind: 'check',
  config: { checks: [{ name: text, kind: 'expr', expr: 'true' }] },
})

t.test('any text is a valid step id, and expressions read it in quotes', async (t) => {
  const odd = ['a.b', '5', 'größe!', '__proto__', 'constructor', 'x y', 'a'.repeat(128)]
  const run = await s.ok('run.start', {
    spec: {
      steps: odd.map((id) => told(id, id)),
      output: Object.fromEntries(
        odd.map((id, index) => [
          `o${index}`,
          `\${{ steps[${JSON.stringify(id)}].output.checks[0].name }}`,
        ]),
      ),
    },
  })
  t.match(await ended(s, run['id']), {
    status: 'completed',
    result: Object.fromEntries(odd.map((id, index) => [`o${index}`, id])),
  })
  t.strictSame(
    listOf(await s.ok('run.steps', { id: run['id'] })).map(({ step_key }) => step_key),
    odd,
  )
})

t.test(
  'ids that look like keys of branches or of the cleanup do not collide with them',
  async (t) => {
    const run = await s.ok('run.start', {
      spec: {
        steps: [
          { id: 'a', kind: 'for_each', config: { items: [1, 2], steps: [nap('x')] } },
          nap('a.0.x'),
          nap('a.~0.x'),
          nap('cleanup.tidy'),
          {
            id: 'cleanup',
            kind: 'parallel',
            config: { branches: [{ id: 'b', steps: [nap('c')] }] },
          },
        ],
        cleanup: [
          { id: 'tidy', kind: 'action', config: { action_name: 'workflow-less' }, if: 'false' },
          { id: 'b.c', kind: 'action', config: { action_name: 'workflow-less' }, if: 'false' },
        ],
      },
    })
    t.match(await ended(s, run['id']), { status: 'completed' })
    const keys = listOf(await s.ok('run.steps', { id: run['id'] })).map(({ step_key }) => step_key)
    t.equal(new Set(keys).size, keys.length)
    t.equal(keys.length, 10)
    for (const key of ['a.0.x', 'a.~0.x', 'a.~~0.x', 'a.~~1.x', 'cleanup.tidy', 'cleanup.~b.c'])
      t.ok(keys.includes(key as never), key)
  },
)

t.test('step ids are unique, including default ids, and some are reserved', async (t) => {
  for (const steps of [
    [nap(), nap('0')],
    [nap('1'), nap()],
    [nap('same'), nap('same')],
    [nap('prepare_repository')],
    [nap('prepare_repository_2')],
    [nap('')],
    [nap('a\nb')],
    [nap('\u0085')],
    [nap('a'.repeat(129))],
  ])
    t.match(
      fieldsOf(await s.refused('run.start', { spec: { steps } }, 400, 'bad_request'))[0],
      /^spec\.steps\[[01]\]\.id$/,
      JSON.stringify(steps.map((step) => step.id)),
    )
  t.match(
    await ended(
      s,
      (await s.ok('run.start', { spec: { steps: [nap('1'), nap('other'), nap()] } }))['id'],
    ),
    { status: 'completed', result: { '1': {}, other: {}, '2': {} } },
  )
})
