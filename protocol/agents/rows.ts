/** The rows for agents of a project. Their schemas, rules and events are in `schema.ts`. */
import { Type } from 'typebox'
import { Closed, cutting, Id, listOf, pageOf, paging } from '../common.ts'
import { command, query } from '../contract.ts'
import { checkBinding, MessagingBinding, SetBinding } from './messaging-bindings.ts'
import {
  Agent,
  AgentName,
  CreateAgent,
  checkCreateAgent,
  checkUpdateAgent,
  UpdateAgent,
} from './schema.ts'

const P = '/projects/:project/agents'
const tag = 'agents'
const read = { tag, permission: 'project.view' } as const
const write = { tag, permission: 'project.edit', to: { kind: 'project' } } as const

export const agents = {
  'agent.create': command(`POST ${P}`, {
    ...write,
    summary: 'Create an agent, or adopt it by external reference',
    body: CreateAgent,
    check: checkCreateAgent,
    reply: Agent,
    status: 201,
    alsoStatus: [200],
    errors: ['already_exists', 'conflict', 'external_identity_conflict'],
  }),
  'agent.list': query(`GET ${P}`, {
    ...read,
    summary: 'Agents, newest first',
    query: Closed({
      name: Type.Optional(AgentName),
      principal_id: Type.Optional(Id),
      status: Type.Optional(Type.Enum(['active', 'inactive'])),
      ...paging,
    }),
    reply: pageOf(Agent),
  }),
  'agent.get': query(`GET ${P}/:id`, {
    ...read,
    summary: 'One agent',
    reply: Agent,
    errors: ['not_found'],
  }),
  'agent.update': command(`PATCH ${P}/:id`, {
    ...write,
    summary: 'Change an agent; absent members keep their values',
    body: UpdateAgent,
    check: checkUpdateAgent,
    reply: Agent,
    errors: ['not_found', 'already_exists', 'conflict'],
  }),
  'agent.delete': command(`DELETE ${P}/:id`, {
    ...write,
    summary: 'Delete an agent and archive its principal; its running jobs continue',
    leavesChannels: 'always',
    status: 204,
    errors: ['not_found'],
  }),
  'agent.inbox': command(`POST ${P}/:id/inbox`, {
    ...write,
    summary: 'Create the e-mail address of an agent',
    reply: Agent,
    errors: ['not_found', 'inbox_unavailable'],
  }),
  'agent.bindings': query(`GET ${P}/:id/messaging-bindings`, {
    ...read,
    summary: 'Messaging bindings of an agent',
    answeredBy: 'gateway',
    query: Closed(cutting),
    reply: listOf(MessagingBinding),
    errors: ['not_found'],
  }),
  'agent.set_binding': command(`PUT ${P}/:id/messaging-bindings`, {
    ...write,
    summary: 'Create or replace the binding of an agent to an account',
    body: SetBinding,
    check: checkBinding,
    reply: MessagingBinding,
    errors: ['not_found', 'conflict'],
  }),
  'agent.delete_binding': command(`DELETE ${P}/:id/messaging-bindings/:binding_id`, {
    ...write,
    summary: 'Delete a messaging binding of an agent',
    status: 204,
    errors: ['not_found'],
  }),
} as const
