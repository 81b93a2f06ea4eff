/** Approvals that the service requires, and questions whose targets do not exist. */
import t from 'tap'
import { interactionActor } from '../../../actors/interactions/interaction.ts'
import type { InteractionState } from '../../../actors/interactions/state.ts'
import { given, START } from '../../support/given.ts'

const asked = (more: object = {}) =>
  given<InteractionState>(interactionActor({ brand: 'Service' })).when('interaction.ask', {
    kind: 'request_approval',
    title: 'May I?',
    target_user_ids: ['role:Operator'],
    resolution_policy: { type: 'any_of' },
    spec: { mode: 'confirm' },
    expires_at: new Date(START + 60_000).toISOString(),
    consumer: {
      kind: 'agent_tool',
      agent_tool: { invocation_id: 'turn_1', tool_call_id: '1', session_id: 'ses_1' },
    },
    ...more,
  })
const approval = { action: 'crm.erase', excludes: ['user_asker'] }
const answer = { value: true, roles: ['Operator'], executes: ['actions.execute.crm.*'] }

t.test('an approval can be answered by principals that may execute the action', async (t) => {
  const open = asked({ approval })
  for (const [principal, input, refused] of [
    [{ type: 'agent', id: 'agt_1' }, answer, 'forbidden'],
    [{ type: 'user', id: 'user_asker' }, answer, 'forbidden'],
    [{ type: 'user', id: 'user_2' }, { ...answer, executes: [] }, 'permission_denied'],
    [{ type: 'user', id: 'user_2' }, { ...answer, executes: undefined }, 'permission_denied'],
    [{ type: 'user', id: 'user_2' }, { ...answer, roles: ['Viewer'] }, 'forbidden'],
  ] as const)
    t.match(open.when('interaction.respond', input, { principal }).refused, { refused })
  const approved = open.when('interaction.respond', answer, {
    principal: { type: 'user', id: 'user_2' },
  })
  t.match(approved.state.record, { status: 'completed', outcome: true })
  t.match(
    asked().when('interaction.respond', { value: true, roles: ['Operator'] }).state.record,
    { status: 'completed' },
    'a question of an agent needs no permission',
  )
})

t.test('a question to targets that do not exist is cancelled as a failure', async (t) => {
  const open = asked()
  t.strictSame(open.when('interaction.invalidate', { unknown: [] }).events, [])
  const invalid = open.when('interaction.invalidate', { unknown: ['usr_x', 'role:Y'] })
  t.match(invalid.state, {
    invalid: true,
    record: { status: 'cancelled', cancel_reason: /usr_x, role:Y$/ },
  })
  t.match(invalid.tells, [
    { to: { kind: 'session', id: 'ses_1' }, name: 'interaction.changed', input: { invalid: true } },
  ])
  t.strictSame(invalid.when('interaction.invalidate', { unknown: ['usr_x'] }).events, [])
  const withdrawn = open.when('interaction.withdraw', {})
  t.notOk('invalid' in Object(withdrawn.tells[0]?.input))
})
