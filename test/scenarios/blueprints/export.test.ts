/** Exports: applied to an empty project, an export results in an equal project. */
import t from 'tap'
import { service } from '../../support/service.ts'

const s = await service()
t.teardown(() => s.stop())
await s.ok('project.create', { name: 'Copy', handle: 'copy' })
const copy = { project: 'copy' }
const exported = async (options = {}) => {
  const { resources } = (await s.ok('blueprint.export', options)) as {
    resources?: Record<string, readonly Record<string, unknown>[]>
  }
  return resources ?? {}
}

t.test('an export keeps the format of invocations and the memory of agents', async (t) => {
  await s.ok('action.create', {
    name: 'crm.find',
    endpoint_url: 'https://crm.example/find',
    invocation_format: 'signed_context_v1',
  })
  await s.ok('action.create', { name: 'crm.list', endpoint_url: 'https://crm.example/list' })
  await s.ok('action.create', { name: 'crm.work', endpoint_kind: 'worker' })
  await s.ok('agent.create', { name: 'helper', memory_context: { mode: 'full', max_bytes: 5000 } })
  const resources = await exported()
  t.match(resources, {
    actions: [
      { name: 'crm.find', invocation_format: 'signed_context_v1' },
      { name: 'crm.list', invocation_format: undefined },
      { name: 'crm.work', invocation_format: undefined },
    ],
    agents: [{ name: 'helper', memory_context: { mode: 'full', max_bytes: 5000 } }],
  })
  await s.ok('blueprint.apply', { ...copy, blueprint_key: 'copy', resources })
  t.match(await s.ok('action.get', { ...copy, action_name: 'crm.find' }), {
    invocation_format: 'signed_context_v1',
  })
  t.same(await exported(copy), resources)
  const changed = {
    actions: [{ key: 'crm-find', name: 'crm.find', invocation_format: 'legacy' }],
    agents: [{ key: 'helper', name: 'helper', memory_context: { mode: 'off' } }],
  }
  for (const action of ['updated', 'unchanged'])
    t.match(
      (await s.ok('blueprint.apply', { ...copy, blueprint_key: 'copy', resources: changed }))[
        'changes'
      ],
      [{ action }, { action }],
    )
  t.match(await exported(copy), {
    actions: [{ invocation_format: undefined }, {}, {}],
    agents: [{ memory_context: { mode: 'off' } }],
  })
})
