/** Workflows over HTTP: versions, handles, starts, idempotency keys and the errors of a spec. */
import t from 'tap'
import type { RowName } from '../../../protocol/api.ts'
import { service } from '../../support/service.ts'
import { ended, fieldsOf, ids, instant, listOf, pages, until, waiting } from '../support/given.ts'

const s = await service()
t.teardown(() => s.stop())

t.test(
  'a workflow is created as version 1, read by id or handle, and listed without its spec',
  async (t) => {
    const spec = instant({ n: 1 })
    const { status, body: made } = await s.call('workflow.create', {
      name: 'Monthly  Report!',
      spec,
      description: 'Figures',
      tags: { team: 'a' },
    })
    t.equal(status, 201)
    t.match(made, {
      id: /^wfd_/,
      handle: 'monthly-report',
      name: 'Monthly  Report!',
      description: 'Figures',
      published_as_tool: false,
      latest_version: 1,
      tags: { team: 'a' },
      spec,
    })
    t.strictSame(await s.ok('workflow.get', { id: made['id'] }), made)
    t.strictSame(await s.ok('workflow.get', { id: 'monthly-report' }), made)
    const { spec: _, ...listed } = made
    t.strictSame(listOf(await s.ok('workflow.list')), [listed])
    const more = []
    for (const name of ['b', 'c', 'd', 'e'])
      more.unshift(
        await s.ok('workflow.create', { name, spec, handle: `h-${name}`, published_as_tool: true }),
      )
    t.strictSame(ids(await pages(s, 'workflow.list')), [...ids(more), made['id']], 'newest first')
    await s.refused('workflow.get', { id: 'nobody' }, 404, 'not_found')
  },
)

t.test(
  'a handle is unique in the organization and becomes free when the workflow is deleted',
  async (t) => {
    await s.ok('project.create', { name: 'Other', handle: 'other' })
    const { id } = await s.ok('workflow.create', { name: 'Only one', spec: instant() })
    t.match(
      await s.refused(
        'workflow.create',
        { name: 'Only one', spec: instant() },
        409,
        'already_exists',
      ),
      {
        details: { field: 'handle', handle: 'only-one' },
        message: /^Another workflow has the handle "only-one"\./,
      },
    )
    t.match(
      await s.refused(
        'workflow.create',
        { project: 'other', name: 'x', handle: 'only-one', spec: instant() },
        409,
        'already_exists',
      ),
      {
        details: { field: 'handle' },
        message: /^Another workflow has the handle "only-one"\. Handles are unique in all projects/,
      },
    )
    await s.ok('workflow.delete', { id })
    t.match(await s.ok('workflow.create', { name: 'Only one', spec: instant() }), {
      handle: 'only-one',
      latest_version: 1,
    })
    const moved = await s.ok('workflow.create', { name: 'Moves', spec: instant() })
    await s.ok('workflow.delete', { id: moved['id'] })
    await until(
      () => s.call('workflow.create', { project: 'other', name: 'Moves', spec: instant() }),
      ({ status }) => status === 201,
    )
    await s.refused('workflow.create', { name: 'Moves', spec: instant() }, 409, 'already_exists')
    t.match(await s.ok('workflow.create', { name: '工作流', spec: instant() }), {
      handle: /^workflow-[0-9a-f]{8}$/,
    })
  },
)

t.test(
  'a changed spec creates a version, other changes do not, and expected_version guards an update',
  async (t) => {
    const { id } = await s.ok('workflow.create', { name: 'Versions', spec: instant({ v: 1 }) })
    t.match(
      await s.ok('workflow.update', {
        id,
        name: 'Versions of it',
        description: 'd',
        published_as_tool: true,
        tags: { a: 'b' },
      }),
      { name: 'Versions of it', handle: 'versions', latest_version: 1, published_as_tool: true },
    )
    t.match(await s.ok('workflow.update', { id, spec: instant({ v: 2 }), expected_version: 1 }), {
      latest_version: 2,
      spec: instant({ v: 2 }),
    })
    t.match(
      await s.refused(
        'workflow.update',
        { id, spec: instant({ v: 3 }), expected_version: 1 },
        409,
        'conflict',
      ),
      { details: { expected_version: 1, latest_version: 2 } },
    )
    t.match(
      await s.ok('workflow.update', { id, spec: instant({ v: 2 }) }),
      { latest_version: 3 },
      'also if the spec is unchanged',
    )
    t.match(await s.ok('workflow.update', { id, description: '' }), { description: undefined })
    const versions = await pages(s, 'workflow.versions', { id }, 1)
    t.match(
      versions.map(({ version }) => version),
      [3, 2, 1],
    )
    t.ok(versions.every((version) => !('spec' in version)))
    t.match(
      listOf(await s.ok('workflow.versions', { id, include_spec: true })).map(({ spec }) => spec),
      [instant({ v: 2 }), instant({ v: 2 }), instant({ v: 1 })],
    )
    await s.refused('workflow.versions', { id: 'nobody' }, 404, 'not_found')
    await s.refused('workflow.update', { id: 'nobody', name: 'x' }, 404, 'not_found')
  },
)

t.test('a run executes the version it was started with and survives its workflow', async (t) => {
  const { id } = await s.ok('workflow.create', {
    name: 'Runs',
    spec: { ...waiting(), output: { v: 1 } },
  })
  const first = await s.ok('workflow.run', { id })
  const second = await s.ok('workflow.run', {
    id: 'runs',
    input: { n: 1 },
    external_id: 'e',
    queue: 'q',
  })
  t.match(second, {
    definition_id: id,
    definition_version: 1,
    external_id: 'e',
    queue: 'q',
    input: { n: 1 },
  })
  await s.ok('workflow.update', { id, spec: { ...waiting(), output: { v: 2 } } })
  const third = await s.ok('workflow.run', { id })
  t.equal(third['definition_version'], 2)
  await s.ok('run.cancel', { id: second['id'] })
  t.strictSame(
    ids(await pages(s, 'workflow.runs', { id }, 1)),
    ids([third, second, first]),
    'runs of every version and status',
  )
  const page = await s.ok('workflow.runs', { id })
  t.strictSame(page['data'], page['items'])
  t.equal((await s.call('workflow.delete', { id })).status, 204)
  for (const row of [
    'workflow.get',
    'workflow.delete',
    'workflow.versions',
    'workflow.runs',
    'workflow.run',
  ] as const)
    await s.refused(row, { id }, 404, 'not_found')
  for (const [run, v] of [
    [first, 1],
    [third, 2],
  ] as const) {
    t.match(await s.ok('run.get', { id: run['id'] }), {
      status: 'suspended',
      definition_id: id,
      definition_version: v,
      spec: { output: { v } },
    })
    await s.ok('run.signal', { id: run['id'], name: 'go' })
    t.match(await ended(s, run['id']), { status: 'completed', result: { v } })
  }
})

t.test(
  'a start needs no body, and an idempotency key is shared by all starts of the project',
  async (t) => {
    await s.ok('workflow.create', { name: 'Once', spec: waiting() })
    const [one, two] = [
      await s.ok('workflow.run', { id: 'once', idempotency_key: 'k' }),
      await s.ok('run.start', { definition_id: 'once', idempotency_key: 'k' }),
    ]
    t.equal(one['id'], two['id'])
    await s.ok('run.cancel', { id: one['id'] })
    await s.refused(
      'workflow.run',
      { id: 'once', idempotency_key: 'k' },
      409,
      'idempotency_key_conflict',
    )
  },
)

t.test('a start of a workflow may name the workflow again, but no other one', async (t) => {
  const { id } = await s.ok('workflow.create', { name: 'Named twice', spec: waiting() })
  await s.ok('workflow.create', { name: 'Another one', spec: waiting() })
  for (const [path, definition_id] of [
    [id, id],
    [id, 'named-twice'],
    ['named-twice', id],
  ]) {
    const run = await s.ok('workflow.run', { id: path, definition_id })
    t.match(run, { definition_id: id })
    await s.ok('run.cancel', { id: run['id'] })
  }
  for (const definition_id of ['another-one', 'unknown'])
    t.strictSame(
      fieldsOf(await s.refused('workflow.run', { id, definition_id }, 400, 'bad_request')),
      ['definition_id'],
    )
})

t.test('a step with a template as the name of its action is refused', async (t) => {
  const steps = [{ kind: 'action', config: { action_name: 'crm.${{ event.op }}' } }]
  const refused = async (row: RowName, input: Record<string, unknown>) =>
    fieldsOf(await s.refused(row, input, 400, 'bad_request'))
  t.strictSame(await refused('run.start', { spec: { steps } }), [
    'spec.steps[0].config.action_name',
  ])
  t.strictSame(await refused('workflow.create', { name: 'Templated', spec: { steps } }), [
    'spec.steps[0].config.action_name',
  ])
  t.strictSame(await refused('loop.create', { name: 'Templated', steps }), [
    'steps[0].config.action_name',
  ])
})

t.test('a repeated start returns its run, also after the workflow is deleted', async (t) => {
  const { id } = await s.ok('workflow.create', { name: 'Short lived', spec: waiting() })
  const key = { idempotency_key: 'outlives' }
  const run = await s.ok('workflow.run', { id, ...key })
  await s.call('workflow.delete', { id })
  for (const again of [
    await s.call('workflow.run', { id, ...key }),
    await s.call('run.start', { definition_id: id, ...key }),
    await s.call('run.start', { definition_id: 'short-lived', ...key }),
  ])
    t.match(again, { status: 202, body: { id: run['id'], status: 'suspended' } })
  await s.ok('run.cancel', { id: run['id'] })
  t.match(await s.refused('workflow.run', { id, ...key }, 409, 'idempotency_key_conflict'), {
    details: { run_id: run['id'] },
  })
  for (const other of [{}, { idempotency_key: 'another' }])
    t.match(await s.refused('run.start', { definition_id: id, ...other }, 404, 'not_found'), {
      details: { definition_id: id },
    })
})

t.test('every error of a spec is reported with its exact path', async (t) => {
  const spec = {
    steps: [
      { id: 'a', kind: 'sleep', config: {} },
      { id: 'a', kind: 'sleep', config: { duration: '1m' } },
      {
        kind: 'action',
        config: { action_name: 'x', parameters: { deep: ['${{ steps.later.output }}'] } },
      },
      {
        id: 'later',
        kind: 'wait_for_event',
        config: { event_type: 'the weather' },
        if: 'input.n >',
      },
    ],
    output: { x: '${{ nothing.here }}' },
  }
  t.strictSame(
    fieldsOf(
      await s.refused('workflow.create', { name: 'Faulty', spec }, 400, 'bad_request'),
    ).sort(),
    [
      'spec.output.x',
      'spec.steps[0].config',
      'spec.steps[1].id',
      'spec.steps[2].config.parameters.deep[0]',
      'spec.steps[3].config.event_type',
      'spec.steps[3].if',
    ],
  )
  t.strictSame(
    fieldsOf(
      await s.refused(
        'run.start',
        { spec: { steps: [{ kind: 'dance', config: {} }] } },
        400,
        'bad_request',
      ),
    ),
    ['spec.steps[0].kind'],
  )
  t.strictSame(
    fieldsOf(
      await s.refused('workflow.create', { spec: { steps: [] }, color: 'red' }, 400, 'bad_request'),
    ).sort(),
    ['color', 'name', 'spec.steps'],
  )
})
