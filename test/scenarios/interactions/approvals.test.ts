/**
 * Approval of destructive agent actions: any principal that may execute the action may approve it,
 * except the requester if `separate_approver` is set.
 */
import t from 'tap'
import { service } from '../../support/service.ts'
import { type Found, listOf } from '../support/given.ts'
import {
  agentOf,
  invoke,
  modelOf,
  placeOf,
  says,
  shown,
  text,
  turnIn,
  use,
} from '../support/talk.ts'

const s = await service()
t.setTimeout(120_000)
t.teardown(() => s.stop())

const holding = async (name: string, ...permissions: string[]) => {
  const role = await s.ok('role.create', {
    name,
    permissions: ['service.project.view', 'service.agent.invoke', ...permissions],
  })
  const { id } = await s.ok('principal.create', { name })
  await s.ok('assignment.create', { principal_id: id, role_name: name })
  const { key } = await s.ok('key.create', { name, principal_id: id })
  return { id: String(id), role: `role:${role['id']}`, key: String(key) }
}
const eraser = async (name: string): Promise<Found> => {
  const agent = await agentOf(s, name)
  await s.ok('action.create', {
    name: `${name}.erase`,
    endpoint_kind: 'worker',
    annotations: { destructive: true },
  })
  const { id } = await s.ok('toolkit.create', {
    name,
    actions: [{ selector_type: 'exact', selector: `${name}.erase` }],
  })
  await s.ok('agent.assign_toolkits', { id: agent['id'], toolkit_ids: [id] })
  return agent
}
const askedIn = async (ack: Found): Promise<Found> => {
  await turnIn(s, ack, 'waiting')
  const { session_id } = placeOf(ack)
  const [found] = listOf(await s.ok('interaction.list', { session_id, status: 'pending' }))
  return found ?? {}
}

t.test(
  'only principals that may execute the action approve it, including the requester',
  async (t) => {
    const agent = await eraser('crm')
    const model = await modelOf(s, 'crm', ['crm.erase'])
    const clerk = await holding('clerk', 'actions.execute.crm.*')
    const reader = await holding('reader', 'actions.execute.pay.*')
    const ack = await invoke(s, agent, 'erase it')
    await says(model, [use('1', 'crm_erase')])
    const asked = await askedIn(ack)
    const targets = asked['target_user_ids'] as unknown as string[]
    t.ok(targets.includes('role:Owner') && targets.includes(clerk.role))
    t.notOk(targets.includes(reader.role), 'the role may not execute the action')
    const answer = { id: asked['id'], value: true }
    const { details } = await s.refused(
      'interaction.respond',
      answer,
      403,
      'permission_denied',
      reader,
    )
    t.match(details, { permission: 'actions.execute.crm.erase' })
    t.match(await s.ok('interaction.respond', answer, clerk), { status: 'completed' })
    const job = await model.job()
    t.match(job, { action_name: 'crm.erase' })
    await model.report(job, { status: 'completed', result: {} })
    await says(model, [use('2', 'crm_erase')])
    const again = await askedIn(ack)
    t.match(await s.ok('interaction.respond', { id: again['id'], value: true }), {
      status: 'completed',
    })
    await model.report(await model.job(), { status: 'completed', result: {} })
    await says(model, [text('Done.')])
    await turnIn(s, ack, 'completed')
    model.close()
  },
)

t.test('with a separate approver, the requester cannot approve', async (t) => {
  const agent = await eraser('pay')
  const model = await modelOf(s, 'pay', ['pay.erase'])
  const first = await holding('first', 'actions.execute.pay.*')
  const second = await holding('second', 'actions.execute.pay.erase')
  const include = ['separate_approver']
  t.match(await s.ok('project.update', { separate_approver: true, include }), {
    separate_approver: true,
  })
  const ack = await s.ok(
    'agent.invoke',
    { agent_ref: { id: agent['id'] }, input: { content: [text('erase it')] } },
    first,
  )
  await says(model, [use('1', 'pay_erase')])
  const asked = await askedIn(ack)
  const targets = asked['target_user_ids'] as unknown as string[]
  t.notOk(targets.includes(first.role), 'no other principal has this role')
  t.ok(targets.includes(second.role))
  const answer = { id: asked['id'], value: true }
  await s.refused('interaction.respond', answer, 403, 'forbidden', first)
  t.match(await s.ok('interaction.respond', answer, second), { status: 'completed' })
  await model.report(await model.job(), { status: 'completed', result: {} })
  await says(model, [text('Done.')])
  await turnIn(s, ack, 'completed')
  t.match(await s.ok('project.update', { separate_approver: false, include }), {
    separate_approver: false,
  })
  model.close()
})

t.test('a call fails at once if no principal can approve it', async (t) => {
  const alone = await service()
  t.teardown(() => alone.stop())
  await alone.ok('project.update', { separate_approver: true })
  await alone.ok('action.create', {
    name: 'vault.erase',
    endpoint_kind: 'worker',
    annotations: { destructive: true },
  })
  const agent = await agentOf(alone, 'vault')
  const { id } = await alone.ok('toolkit.create', {
    name: 'vault',
    actions: [{ selector_type: 'exact', selector: 'vault.erase' }],
  })
  await alone.ok('agent.assign_toolkits', { id: agent['id'], toolkit_ids: [id] })
  const model = await modelOf(alone, 'vault', ['vault.erase'])
  const ack = await invoke(alone, agent, 'erase it')
  await says(model, [use('1', 'vault_erase')])
  const told = shown(await says(model, [text('I cannot.')]))
  t.match(told.at(-1), /No principal can approve vault\.erase/)
  await turnIn(alone, ack, 'completed')
  t.strictSame(listOf(await alone.ok('interaction.list', {})), [])
  model.close()
})
