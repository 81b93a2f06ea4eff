/**
 * The rows for the Model Context Protocol (MCP), through which the service offers published
 * workflows, actions, and tools to inspect and cancel runs. These rows only relay calls to the rows
 * listed in `relays`.
 */
import { command, stream } from '../contract.ts'
import { checkMessage, McpAnswer, McpMessage, McpNotice } from './messages.ts'

const P = '/projects/:project/mcp'
const tag = 'mcp'

export const mcp = {
  'mcp.send': command(`POST ${P}`, {
    summary:
      'Send one message of the Model Context Protocol; a call of a tool requires the permission ' +
      'of the operation that it performs',
    mcp: true,
    tag,
    permission: 'authenticated',
    relays: ['workflow.run', 'action.invoke', 'run.get', 'run.cancel'],
    body: McpMessage,
    check: checkMessage,
    reply: McpAnswer,
    bare: 202,
    stream: 'accept',
    limit: 786_432,
  }),
  'mcp.listen': stream(`GET ${P}`, {
    summary:
      'Event stream of changes of the tools; with Last-Event-ID, continues a call whose stream ' +
      'was interrupted',
    mcp: true,
    tag,
    permission: 'authenticated',
    relays: ['workflow.run', 'action.invoke'],
    stream: 'sse',
    reply: McpNotice,
    errors: ['not_found'],
  }),
} as const
