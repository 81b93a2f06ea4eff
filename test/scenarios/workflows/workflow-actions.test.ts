/** Published workflows called as actions: by a step, and directly. */
import t from 'tap'
import { service } from '../../support/service.ts'
import { ended, failing, listOf, timelineOf, until, waiting } from '../support/given.ts'

const s = await service()
t.teardown(() => s.stop())

const published = (name: string, spec: Record<string, unknown>) =>
  s.ok('workflow.create', { name, spec, published_as_tool: true })
await published('Greet', {
  input: { name: { type: 'string', required: true } },
  steps: [{ kind: 'sleep', config: { duration: '0' } }],
  output: { greeting: 'hello ${{ input.name }}' },
})
await published('Broken', failing())
await published('Patient', waiting())
await s.ok('workflow.create', { name: 'Private', spec: failing() })
await published('Endless', {
  steps: [{ kind: 'action', config: { action_name: 'workflow.endless' } }],
})

const calling = (handle: string, parameters = {}) => ({
  steps: [
    { id: 'call', kind: 'action', config: { action_name: `workflow.${handle}`, parameters } },
  ],
})
const childOf = (id: unknown) =>
  until(
    async () => listOf(await s.ok('run.list', { parent_run_id: String(id) }))[0],
    (child) => child !== undefined,
  )

t.test('a step starts a child run and returns its result', async (t) => {
  const run = await s.ok('run.start', {
    spec: {
      ...calling('greet', { name: '${{ input.who }}' }),
      output: { said: '${{ steps.call.output.greeting }}' },
    },
    input: { who: 'Ada' },
  })
  t.match(await ended(s, run['id']), { status: 'completed', result: { said: 'hello Ada' } })
  t.match(await childOf(run['id']), { status: 'completed' })
  const types = await timelineOf(s, run['id'])
  for (const type of ['action.called', 'action.completed'])
    t.equal(types.filter((one) => one === type).length, 1)
})

t.test('a step fails with its child, or if the workflow is missing or unpublished', async (t) => {
  for (const [handle, error_type] of [
    ['broken', 'child_failed'],
    ['greet', 'child_input_invalid'],
    ['private', 'workflow_not_found'],
    ['missing', 'workflow_not_found'],
    ['endless', 'child_failed'],
  ] as const) {
    const run = await s.ok('run.start', { spec: calling(handle) })
    t.match(await ended(s, run['id']), { status: 'failed', error_type }, handle)
  }
})

t.test('cancelling a parent cancels its child; a cancelled child fails its parent', async (t) => {
  const above = await s.ok('run.start', { spec: calling('patient') })
  const below = await childOf(above['id'])
  await s.ok('run.cancel', { id: above['id'] })
  t.match(await ended(s, below?.['id']), { status: 'cancelled' })
  t.match(await ended(s, above['id']), { status: 'cancelled' })

  const other = await s.ok('run.start', { spec: calling('patient') })
  await s.ok('run.cancel', { id: (await childOf(other['id']))?.['id'] })
  t.match(await ended(s, other['id']), { status: 'failed', error_type: 'child_cancelled' })
})

t.test('a direct call returns the result of the workflow', async (t) => {
  const call = (handle: string, input = {}, more = {}) =>
    s.call('action.invoke', { action_name: `workflow.${handle}`, input, ...more })
  t.match(await call('greet', { name: 'Bo' }), {
    status: 200,
    body: { status: 'completed', output: { greeting: 'hello Bo' } },
  })
  t.match(await call('greet'), { status: 400 })
  t.match(await call('broken'), { status: 200, body: { status: 'failed', error: /failed/ } })
  t.match(await call('private'), { status: 404 })
  const active = await call('patient', {}, { timeout_seconds: 1 })
  t.match(active, { status: 202, body: { status: 'active' } })
  await s.ok('run.cancel', { id: active.body['run_id'] })
})

t.test('calling a workflow requires the permission to execute its action', async (t) => {
  const keyFor = async (name: string, permission: string) => {
    const role = await s.ok('role.create', {
      name,
      permissions: ['service.project.view', permission],
    })
    const principal = await s.ok('principal.create', { name, role_ids: [role['id']] })
    return String((await s.ok('key.create', { name, principal_id: principal['id'] }))['key'])
  }
  const call = { action_name: 'workflow.greet', input: { name: 'Di' } }
  const may = await keyFor('greeter', 'actions.execute.workflow.greet')
  t.match(await s.call('action.invoke', call, { key: may }), { status: 200 })
  const other = await keyFor('other', 'actions.execute.workflow.broken')
  t.match(await s.call('action.invoke', call, { key: other }), { status: 403 })
})

t.test('calls of unpublished workflows and calls in a cleanup are rejected', async (t) => {
  await s.refused('loop.create', { name: 'l', ...calling('missing') }, 400, 'bad_request')
  await s.refused('loop.create', { name: 'l', ...calling('private') }, 400, 'bad_request')
  const spec = { ...failing(), cleanup: calling('greet').steps }
  await s.refused('run.start', { spec }, 400, 'bad_request')
  const loop = await s.ok('loop.create', { name: 'good', ...calling('greet', { name: 'Cy' }) })
  const run = await s.ok('loop.start', { id: loop['id'] })
  t.match(await ended(s, run['id']), { result: { call: { greeting: 'hello Cy' } } })
})
