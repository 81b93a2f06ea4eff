/** A definition is no way around the permission to execute an action: it is checked where one is saved, and where an inline one starts. */
import t from 'tap'
import { service } from '../service.ts'

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
/** The action in a list of lists: branches inside a loop over items. */
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

t.test('a definition may name what its author may execute', async (t) => {
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
    'a saved definition is run by its own right',
  )
  const loop = { name: 'l', status: 'draft', steps: [{ id: 'a', ...step('pay.out') }] }
  t.match(await s.refused('loop.create', loop, ...denied, crm), refusal('pay.out'))
  const made = await s.ok(
    'loop.create',
    { ...loop, steps: [{ id: 'a', ...step('crm.sync') }] },
    crm,
  )
  const update = { id: made['id'], steps: loop.steps }
  t.match(await s.refused('loop.update', update, ...denied, crm), refusal('pay.out'))
})
