/**
 * Actions of agents through toolkits: HTTP actions, which the service calls with signed requests,
 * and destructive actions, which people approve first.
 */
import t from 'tap'
import { service } from '../../support/service.ts'
import { listOf } from '../support/given.ts'
import { receiver } from '../support/servers/receiver.ts'
import {
  agentOf,
  invoke,
  modelOf,
  placeOf,
  said,
  says,
  shown,
  text,
  turnIn,
  use,
} from '../support/talk.ts'

const s = await service({ BATON_OUTBOUND_ALLOW: '127.0.0.1/32' })
const there = await receiver()
t.setTimeout(120_000)
t.teardown(async () => {
  await there.close()
  await s.stop()
})

t.test(
  'an agent calls the actions of its toolkits; destructive ones wait for an approval',
  async (t) => {
    const agent = await agentOf(s, 'clerk', { tool_presentation: 'meta' })
    await s.ok('action.create', {
      name: 'crm.lookup',
      endpoint_url: `${there.url}/lookup`,
      description: 'Find a customer',
      invocation_format: 'signed_context_v1',
      input_schema: { type: 'object', required: ['id'], properties: { id: { type: 'string' } } },
      annotations: { read_only: true },
    })
    await s.ok('action.create', {
      name: 'crm.erase',
      endpoint_kind: 'worker',
      annotations: { destructive: true },
    })
    const toolkit = await s.ok('toolkit.create', {
      name: 'crm',
      actions: [{ selector_type: 'group', selector: 'crm' }],
    })
    await s.ok('agent.assign_toolkits', { id: agent['id'], toolkit_ids: [toolkit['id']] })
    const skill = await s.ok('skill.create', {
      name: 'careful',
      instructions: 'Only look.',
      allowed_tools: ['crm.lookup'],
    })
    await s.ok('agent.assign_skills', { id: agent['id'], skill_ids: [skill['id']] })
    const model = await modelOf(s, 'clerk', ['crm.erase'])

    const ack = await invoke(s, agent, 'find and erase c1')
    const first = await says(model, [use('1', 'crm', { command: 'lookup', args: { id: 'c1' } })])
    t.strictSame(
      (first['spec'] as unknown as { request: { tools: { name: string }[] } }).request.tools.map(
        ({ name }) => name,
      ),
      ['crm', 'service_ask_person', 'invoke_skill'],
    )
    const second = await says(model, [use('2', 'crm', { command: 'erase', args: { id: 'c1' } })])
    t.match(shown(second).at(-1), /^user: \{/, 'the response of the action')
    await turnIn(s, ack, 'waiting')
    const [asked] = listOf(await s.ok('interaction.list', { session_id: placeOf(ack).session_id }))
    t.match(asked, {
      kind: 'request_approval',
      title: 'clerk wants to run crm.erase',
      context: { action: 'crm.erase', parameters: { id: 'c1' } },
    })
    await s.ok('interaction.respond', { id: asked?.['id'], value: true })
    const job = await model.job()
    t.match(job, {
      kind: 'action_execution',
      action_name: 'crm.erase',
      tool_call_id: '2',
      spec: { parameters: { id: 'c1' } },
    })
    await model.report(job, { status: 'completed', result: { erased: 1 } })
    await says(model, [use('3', 'invoke_skill', { name: 'careful' })])
    await says(model, [use('4', 'crm', { command: 'erase', args: {} })])
    t.match(shown(await says(model, [text('Done.')])).at(-1), /does not allow crm\.erase/)
    await turnIn(s, ack, 'completed')
    t.match((await said(s, ack)).at(-1), 'assistant: Done.')
    const [record] = listOf(await s.ok('invocation.list', {})).filter(
      ({ action_name }) => String(action_name) === 'crm.lookup',
    )
    t.match(record, {
      status: 'success',
      source: 'agent',
      session_id: placeOf(ack).session_id,
      agent_turn_id: placeOf(ack).turn_id,
      tool_call_id: '1',
      actor_principal_type: 'agent',
      agent_id: agent['id'],
    })
    model.close()
  },
)

t.test('an active turn continues after its agent is deactivated or deleted', async (t) => {
  const agent = await agentOf(s, 'aside')
  const model = await modelOf(s, 'aside')
  const ack = await invoke(s, agent, 'may I?')
  const { session_id } = placeOf(ack)
  await says(model, [
    use('c1', 'service_ask_person', { title: 'Really?', kind: 'request_approval' }),
  ])
  await turnIn(s, ack, 'waiting')
  await s.ok('agent.update', { id: agent['id'], status: 'inactive' })
  t.match(
    await s.ok('session.create', { agent_id: agent['id'] }),
    { id: session_id },
    'finding a session starts no turn',
  )
  const nudged = await s.call('session.nudge', { session_id, content: 'go on', wake: true })
  t.match(nudged, { status: 202, body: { delivery: 'current_turn', woke_turn: true } })
  t.match(
    shown(
      await says(model, [
        use('c2', 'service_ask_person', { title: 'And now?', kind: 'request_approval' }),
      ]),
    ).at(-1),
    /user-direction.*go on/s,
  )
  t.equal((await s.call('agent.delete', { id: agent['id'] })).status, 204)
  t.match(await s.ok('session.nudge', { session_id, content: 'to the end', wake: true }), {
    delivery: 'current_turn',
  })
  await says(model, [text('Done.')])
  await turnIn(s, ack, 'completed')
  await s.refused('session.nudge', { session_id, content: 'more' }, 404, 'not_found')
  model.close()
})
