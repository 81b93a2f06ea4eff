/**
 * A preview is refused like its apply if a project would have too many resources, if another
 * project has the handle of a workflow, or if a name is taken or reserved.
 */
import t, { type Test } from 'tap'
import { service } from '../../support/service.ts'
import { listOf } from '../support/given.ts'

const s = await service()
t.teardown(() => s.stop())

type Open = Record<string, unknown>
const apply = (resources: Open, more: Open = {}) => s.ok('blueprint.apply', { resources, ...more })
const refused = (resources: Open, status: number, code: string, more: Open = {}) =>
  s.refused('blueprint.apply', { resources, ...more }, status, code)

/** Asserts that preview and apply are refused identically and create nothing. */
async function refusedAlike(t: Test, resources: Open, status: number, code: string, more: Open) {
  const preview = await refused(resources, status, code, { ...more, mode: 'preview' })
  const applied = await refused(resources, status, code, more)
  t.strictSame(applied, preview)
  t.strictSame(listOf(await s.ok('blueprint.bindings', { blueprint_key: 'over' })), [])
  return preview.details
}
t.test('a preview refuses names that the service reserves or that differ in case', async (t) => {
  const both = (resources: Open, status: number, code: string) =>
    refusedAlike(t, resources, status, code, { blueprint_key: 'over' })
  const permissions = ['service.project.view']
  const role = (key: string, name: string) => ({ key, name, permissions })
  const { id } = await s.ok('role.create', { name: 'Helpers', permissions })
  for (const name of ['viewer', 'HELPERS'])
    t.match(await both({ roles: [role('r', name)] }, 409, 'already_exists'), {
      field: 'name',
      name,
      resource_type: 'role',
      key: 'r',
    })
  const roles = [role('a', 'Same'), role('b', 'same')]
  t.match(await both({ roles }, 409, 'already_exists'), { key: 'b' })
  const environments = [{ key: 'e', name: 'env-0123456789' }]
  t.match(await both({ environments }, 400, 'bad_request'), {
    fields: [{ field: 'resources.environments[0].name' }],
  })
  await s.ok('role.delete', { id })
})

t.test('a project without room for all resources gets none of them', async (t) => {
  const roles = (from: number, count: number) =>
    Array.from({ length: count }, (_, n) => ({
      key: `r${from + n}`,
      name: `Role ${from + n}`,
      permissions: [],
    }))
  await apply({ roles: roles(0, 150) }, { blueprint_key: 'many' })
  const more = { blueprint_key: 'over' }
  const details = await refusedAlike(t, { roles: roles(150, 51) }, 409, 'conflict', more)
  t.match(details, { limit: 200, resource_type: 'role', key: 'r200' })
  await apply({ roles: roles(150, 50) }, { blueprint_key: 'fits' })
})

t.test('the handle of a workflow must be free in the organization', async (t) => {
  const spec = { steps: [{ id: 's', kind: 'sleep', config: { duration: '1s' } }] }
  const { id: project } = await s.ok('project.create', { name: 'Handles', handle: 'handles' })
  await s.ok('workflow.create', { project, name: 'Elsewhere', handle: 'elsewhere', spec })
  const more = { blueprint_key: 'over' }
  const workflow = (name: string, handle?: string) => ({
    key: name,
    name,
    spec,
    ...(handle && { handle }),
  })
  for (const [workflows, key] of [
    [[workflow('a', 'elsewhere')], 'a'],
    [[workflow('Elsewhere')], 'Elsewhere'],
    [[workflow('Same'), workflow('d', 'same')], 'd'],
  ] as const) {
    const details = await refusedAlike(t, { workflows }, 409, 'already_exists', more)
    t.match(details, { field: 'handle', resource_type: 'workflow', key })
  }
})
