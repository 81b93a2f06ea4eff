/** The rows for toolkits. Their assignments to agents are in `agents/capabilities.ts`. */
import { Type } from 'typebox'
import { AssignToolkits, ToolkitAssignment } from '../agents/capabilities.ts'
import { ToolManifest } from '../agents/manifest.ts'
import { Closed, cutting, listOf, valuesOf } from '../common.ts'
import { command, query } from '../contract.ts'
import { checkGrants, Toolkit, ToolkitBody } from './schema.ts'

const P = '/projects/:project'
const tag = 'toolkits'
const read = { tag, permission: 'project.view' } as const
const write = { tag, permission: 'project.edit', to: { kind: 'project' } } as const

export const toolkits = {
  'toolkit.list': query(`GET ${P}/toolkits`, {
    ...read,
    summary: 'Toolkits, built-in toolkits first',
    query: Closed({ include_system: Type.Optional(Type.Boolean({ default: true })), ...cutting }),
    reply: listOf(Toolkit),
  }),
  'toolkit.create': command(`POST ${P}/toolkits`, {
    ...write,
    summary: 'Create a toolkit',
    body: ToolkitBody,
    check: checkGrants,
    reply: Toolkit,
    status: 201,
    errors: ['conflict'],
  }),
  'toolkit.get': query(`GET ${P}/toolkits/:id`, {
    ...read,
    summary: 'One toolkit',
    reply: Toolkit,
    errors: ['not_found'],
  }),
  'toolkit.replace': command(`PUT ${P}/toolkits/:id`, {
    ...write,
    summary: 'Replace a toolkit as a whole',
    body: ToolkitBody,
    check: checkGrants,
    reply: Toolkit,
    errors: ['not_found', 'forbidden'],
  }),
  'toolkit.delete': command(`DELETE ${P}/toolkits/:id`, {
    ...write,
    summary: 'Delete a toolkit and remove it from all agents',
    status: 204,
    errors: ['not_found', 'forbidden'],
  }),
  'agent.toolkits': query(`GET ${P}/agents/:id/toolkit-assignments`, {
    ...read,
    summary: 'The toolkits of an agent, in order',
    answeredBy: 'gateway',
    query: Closed(cutting),
    reply: listOf(ToolkitAssignment),
    errors: ['not_found'],
  }),
  'agent.assign_toolkits': command(`PUT ${P}/agents/:id/toolkit-assignments`, {
    ...write,
    summary: 'Replace the toolkits of an agent',
    body: AssignToolkits,
    reply: listOf(ToolkitAssignment),
    errors: ['not_found'],
  }),
  'agent.tools': query(`GET ${P}/agents/:id/tools`, {
    ...read,
    summary:
      'Present tools of an agent; filters select the tools of some toolkits, the tools with a ' +
      'skill loaded, or tools by names and patterns',
    answeredBy: 'gateway',
    query: Closed({
      toolkit_ids: Type.Optional(valuesOf(Type.String())),
      skill_name: Type.Optional(Type.String({ minLength: 1, maxLength: 80 })),
      allowed_tools: Type.Optional(valuesOf(Type.String())),
    }),
    reply: ToolManifest,
    errors: ['not_found'],
  }),
} as const
