/**
 * A definition cannot bypass the permission to execute an action. The actions in a definition are
 * checked when the definition is saved, or when an inline definition is started.
 */
import t from 'tap'
import { service } from '../../support/service.ts'
import { ended, failing, listOf } from '../support/given.ts'

const s = await service()
t.teardown(() => s.stop())

const keyWith = async (name: string, ...permissions: string[]): Promise<string> => {
  await s.ok('role.create', {
    name,
    permissions: [
      'service.project.view',
      'service.runs.operate',
      'service.project.edit',
      ...permissions,
    ],
  })
  const { id } = await s.ok('principal.create', { name })
  await s.ok('assignment.create', { principal_id: id, role_name: name })
  return String((await s.ok('key.create', { name, principal_id: id }))['key'])
}
const step = (action_name: string) => ({ kind: 'action', config: { action_name } })
const specOf = (...names: string[]) => ({ steps: names.map(step) })
const nested = (action_name: string) => ({
  steps: [
    {
      id: 'all',
      kind: 'for_each',
      config: { items: '${{ [1] }}', steps: [{ id: 'one', ...step(action_name) }] },
    },
  ],
})
const refusal = (name: string) => ({ details: { permission: `actions.execute.${name}` } })

t.test('a definition may refer only to actions that its author may execute', async (t) => {
  const none = { key: await keyWith('none') }
  const crm = { key: await keyWith('crm', 'actions.execute.crm.*') }
  const denied = [403, 'permission_denied'] as const
  for (const [spec, place] of [
    [specOf('crm.sync', 'pay.out'), 'spec.steps[1].config.action_name'],
    [nested('pay.out'), 'spec.steps[0].config.steps[0].config.action_name'],
    [{ ...specOf('crm.sync'), cleanup: [step('pay.out')] }, 'spec.cleanup[0].config.action_name'],
  ] as const) {
    for (const row of ['workflow.create', 'run.start'] as const) {
      const input = row === 'run.start' ? { spec } : { name: 'w', spec }
      const { details } = await s.refused(row, input, ...denied, crm)
      t.match({ details }, refusal('pay.out'), row)
      t.match(details, { fields: [{ field: row === 'run.start' ? /pay|action_name/ : place }] })
    }
  }
  t.match(await s.refused('run.start', { spec: specOf('crm.sync') }, ...denied, none), {
    details: { permission: 'actions.execute.crm.sync' },
  })
  const workflow = await s.ok('workflow.create', { name: 'sync', spec: specOf('crm.sync') }, crm)
  t.ok((await s.ok('run.start', { spec: specOf('crm.sync') }, crm))['id'])
  const changed = { id: workflow['id'], spec: specOf('pay.out') }
  t.match(await s.refused('workflow.update', changed, ...denied, crm), refusal('pay.out'))
  t.ok(
    (await s.ok('workflow.run', { id: workflow['id'] }, none))['id'],
    'running a saved definition requires no permission for its actions',
  )
  const loop = { name: 'l', status: 'draft', steps: [{ id: 'a', ...step('pay.out') }] }
  t.match(await s.refused('loop.create', loop, ...denied, crm), refusal('pay.out'))
  const made = await s.ok(
    'loop.create',
    { ...loop, steps: [{ id: 'a', ...step('crm.sync') }] },
    crm,
  )
  const update = { id: made['id'], steps: loop.steps }
  const clones = { id: made['id'], repositories: [{ full_name: 'shop/orders' }] }
  t.match(
    await s.refused('loop.update', clones, ...denied, crm),
    refusal('environment.git.clone'),
    'declared repositories are cloned by an action',
  )
  t.match(await s.refused('loop.update', update, ...denied, crm), refusal('pay.out'))
})

t.test('a retry of an inline spec or a direct call is a start', async (t) => {
  const operator = { key: await keyWith('retrier') }
  const author = { key: await keyWith('retried', 'actions.execute.shop.*') }
  // The first step fails at once, so the action is never called.
  const broken = {
    steps: [...(failing()['steps'] as object[]), { id: 'call', ...step('shop.sync') }],
  }
  const failed = async (row: 'run.start' | 'workflow.run', input: Record<string, unknown>) => {
    const { id } = await s.ok(row, input, author)
    t.match(await ended(s, id), { status: 'failed' })
    return String(id)
  }
  const id = await failed('run.start', { spec: broken })
  const denied = [403, 'permission_denied'] as const
  for (const row of ['run.retry', 'run.recover'] as const)
    t.match(await s.refused(row, { id }, ...denied, operator), refusal('shop.sync'), row)
  await s.refused('run.retry', { id, input: { x: 2 } }, ...denied, operator)
  const workflow = await s.ok('workflow.create', { name: 'retried', spec: broken }, author)
  const stored = await failed('workflow.run', { id: workflow['id'] })
  const many = await s.ok('run.retry_many', { run_ids: [id, stored] }, operator)
  t.match(many['results'], [
    { run_id: id, ok: false, error: { code: 'permission_denied' } },
    { run_id: stored, ok: true },
  ])
  const bulk = { action: 'retry', filter: { failed_step: 'odd' } }
  const results = listOf(await s.ok('run.bulk', bulk, operator), 'results')
  t.match(
    results.find(({ run_id }) => run_id === id),
    { ok: false, error: { code: 'permission_denied' } },
  )
  t.match(
    results.find(({ run_id }) => run_id === stored),
    { ok: true },
  )
  t.match(await s.ok('run.retry', { id }, author), { id })
})

t.test('built-in actions and published workflows require the permission as well', async (t) => {
  const crm = { key: await keyWith('crm-only', 'actions.execute.crm.*') }
  for (const name of ['workflow.sync', 'workflow.other'])
    t.match(
      await s.refused('run.start', { spec: specOf(name) }, 403, 'permission_denied', crm),
      refusal(name),
    )
  await s.refused('run.start', { spec: specOf('service.memory.recall') }, 400, 'bad_request', crm)
})

t.test('an inline config can grant an agent only tools that its author may execute', async (t) => {
  const agent = await s.ok('agent.create', {
    name: 'helper',
    model_route: { mode: 'worker', provider: 'local', model: 'none' },
  })
  await s.ok('toolkit.create', {
    name: 'money',
    actions: [{ selector_type: 'group', selector: 'pay' }],
  })
  const crm = {
    key: await keyWith('agents', 'service.agent.invoke', 'actions.execute.crm.*'),
  }
  const invocation = (toolkits: object[]) => ({
    agent_ref: { id: agent['id'] },
    config: { toolkits },
    input: { content: [{ type: 'text', text: 'hello' }] },
  })
  for (const [toolkit, permission, field] of [
    [{ name: 'a', actions: ['crm.sync', 'pay.out'] }, 'pay.out', 'actions[1]'],
    [{ name: 'a', actions: ['*'] }, '*', 'actions[0]'],
    [{ name: 'a', actions: ['pay.o*'] }, 'pay.*', 'actions[0]'],
    [{ name: 'a', actions: ['workflow.sync'] }, 'workflow.sync', 'actions[0]'],
    [{ name: 'a', actions: ['service.memory.recall'] }, 'service.memory.recall', 'actions[0]'],
    [{ name: 'money' }, 'pay.*', 'name'],
  ] as const) {
    const { details } = await s.refused(
      'agent.invoke',
      invocation([toolkit]),
      403,
      'permission_denied',
      crm,
    )
    t.match(details, {
      permission: `actions.execute.${permission}`,
      fields: [{ field: `config.toolkits[0].${field}` }],
    })
  }
  t.ok(
    (await s.ok('agent.invoke', invocation([{ name: 'a', actions: ['crm.*', 'crm.s*'] }]), crm))[
      'turn'
    ],
  )
})

t.test(
  'the actions of environments require the permission in each kind of definition',
  async (t) => {
    const files = {
      key: await keyWith('files', 'service.agent.invoke', 'actions.execute.environment.files.*'),
    }
    const all = {
      key: await keyWith('workspaces', 'service.agent.invoke', 'actions.execute.environment.*'),
    }
    const bash = refusal('environment.bash')
    const denied = [403, 'permission_denied'] as const
    const spec = specOf('environment.files.write', 'environment.bash')
    t.match(await s.refused('workflow.create', { name: 'w', spec }, ...denied, files), bash)
    t.match(await s.refused('run.start', { spec }, ...denied, files), bash)
    const loop = { name: 'b', status: 'draft', steps: [{ id: 'a', ...step('environment.bash') }] }
    t.match(await s.refused('loop.create', loop, ...denied, files), bash)
    t.ok((await s.ok('workflow.create', { name: 'w', spec }, all))['id'])
    t.ok((await s.ok('loop.create', loop, all))['id'])

    const agent = await s.ok('agent.create', {
      name: 'coder',
      model_route: { mode: 'worker', provider: 'local', model: 'none' },
    })
    await s.ok('toolkit.create', {
      name: 'workspace',
      actions: [{ selector_type: 'group', selector: 'environment' }],
    })
    const invocation = (toolkit: object) => ({
      agent_ref: { id: agent['id'] },
      session: { mode: 'new' },
      config: { toolkits: [toolkit] },
      input: { content: [{ type: 'text', text: 'hello' }] },
    })
    for (const [toolkit, needed] of [
      [{ name: 'a', actions: ['environment.bash'] }, 'environment.bash'],
      [{ name: 'a', actions: ['environment.b*'] }, 'environment.*'],
      [{ name: 'a', actions: ['environment.git.*'] }, 'environment.git.*'],
      [{ name: 'workspace' }, 'environment.*'],
    ] as const) {
      const refused = await s.refused('agent.invoke', invocation(toolkit), ...denied, files)
      t.match(refused, refusal(needed))
      t.ok((await s.ok('agent.invoke', invocation(toolkit), all))['turn'], `${needed} is granted`)
    }
    const narrow = { name: 'a', actions: ['environment.files.*', 'environment.files.read'] }
    t.ok((await s.ok('agent.invoke', invocation(narrow), files))['turn'])
  },
)

t.test('a direct call of an action of an environment requires its permission', async (t) => {
  const reads = { key: await keyWith('reads', 'actions.execute.environment.files.read') }
  const call = (action_name: string) => ({
    action_name,
    environment_id: `env_01${'A'.repeat(24)}`,
    dry_run: true,
  })
  t.match(
    await s.ok('action.invoke', { ...call('environment.files.read'), input: { path: 'a' } }, reads),
    { status: 'completed' },
  )
  t.match(
    await s.refused(
      'action.invoke',
      call('environment.files.list'),
      403,
      'permission_denied',
      reads,
    ),
    refusal('environment.files.list'),
  )
})
