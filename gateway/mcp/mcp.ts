/**
 * The Model Context Protocol over its streamable HTTP transport. This file dispatches messages to
 * their handlers, and handles `initialize`, `ping` and `tools/list` itself.
 *
 * An MCP session is only an id that the client receives and repeats. No gateway stores it, so each
 * message may go to a different gateway. A client without a session cannot cancel calls. Everything
 * else works without a session.
 */
import { isRefusal, type Refusal, refuse, refuseFields } from '../../protocol/errors.ts'
import {
  CancelParams,
  errorAnswer,
  InitializeParams,
  ListParams,
  type McpAnswer,
  type McpMessage,
  type RpcId,
  successAnswer,
  versions,
} from '../../protocol/mcp/messages.ts'
import { faultsOf } from '../../protocol/rules/schema-faults/faults.ts'
import { type Call, type Edge, scopeId } from '../call.ts'
import { openCursor, sealCursor } from '../http/cursor.ts'
import { hexOf } from '../http/hex.ts'
import type { Answer, Exchange, Sink } from '../http/respond.ts'
import { callTool, resumeCall } from './call.ts'
import { cancelCall } from './cancel.ts'
import { knownTools, listen } from './changes.ts'
import { waitingOf } from './follow.ts'
import { allTools, refuseTool } from './tools.ts'

/** Maximum number of tools on one page of the list. */
const PAGE = 100
type Given = Answer | Refusal | undefined
type Replied = McpAnswer | Refusal | undefined

export interface Mcp {
  /** Answers a message, or opens a stream and returns undefined. */
  run(call: Call, exchange: Exchange): Promise<Given>
  /**
   * Ends the streams of `changes.ts`. The streams of calls end when the followers of their runs
   * stop.
   */
  stop(): void
}

/** Creates the MCP handler of a gateway. */
export function openMcp(edge: Edge): Mcp {
  const open = new Set<Sink>()
  return {
    run: async (call, exchange) =>
      admit(edge, call) ??
      (call.row.verb === 'stream'
        ? hear(edge, call, exchange, open)
        : answer(edge, call, exchange)),
    stop() {
      for (const sink of [...open]) sink.end()
    },
  }
}

/**
 * Refuses requests with an unsupported protocol version, and requests from browser pages whose
 * origin is not allowed. Such a page could otherwise reach this service by DNS rebinding.
 */
function admit(
  {
    world: {
      settings: { cors, public_url },
    },
  }: Edge,
  { incoming, body }: Call,
): Refusal | undefined {
  const origin = incoming.header('origin')
  const own = public_url === undefined ? undefined : new URL(public_url).origin
  if (origin !== undefined && origin !== own && !cors.includes('*') && !cors.includes(origin))
    return refuse(
      'forbidden',
      undefined,
      'Pages of this origin may not call this service; the operator can allow the origin with BATON_CORS.',
    )
  const version = incoming.header('mcp-protocol-version')
  if (
    version === undefined ||
    body['method'] === 'initialize' ||
    (versions as readonly string[]).includes(version)
  )
    return undefined
  return refuseFields({
    field: 'MCP-Protocol-Version',
    message: 'is not a supported version',
    expected: versions,
    actual: version.slice(0, 100),
  })
}

/**
 * Resumes the stream to which the frame id in the `Last-Event-ID` header belongs. Without this
 * header, opens a stream of tool changes.
 */
async function hear(edge: Edge, call: Call, exchange: Exchange, open: Set<Sink>): Promise<Given> {
  const frame_id = call.incoming.header('last-event-id')
  if (frame_id === undefined) return listen(edge, call, exchange, undefined, open)
  const waiting = waitingOf(edge, call, frame_id)
  if (waiting) return resumeCall(edge, call, exchange, waiting)
  const known = knownTools(edge, call, frame_id)
  return known === undefined
    ? refuseFields({
        field: 'Last-Event-ID',
        message: 'must be the id of a frame of a stream of this caller',
        actual: frame_id.slice(0, 100),
      })
    : listen(edge, call, exchange, known, open)
}

/**
 * Handles a message. Requests are answered. Notifications and responses receive 202, unless a
 * cancellation fails because the service is unavailable.
 */
async function answer(edge: Edge, call: Call, exchange: Exchange): Promise<Given> {
  const { id, method, params = {} } = call.body as McpMessage
  if (method === undefined || id === undefined) {
    const unable =
      method === 'notifications/cancelled' ? await takeBack(edge, call, params) : undefined
    return unable?.refused === 'service_unavailable' ? unable : { status: 202 }
  }
  const reply = await replyTo(edge, call, exchange, { id, method, params })
  if (reply === undefined || isRefusal(reply)) return reply
  const named = method === 'initialize' && reply.error === undefined
  return {
    status: 200,
    body: reply,
    ...(named && { headers: { 'Mcp-Session-Id': hexOf(edge.world.random(16)) } }),
  }
}
async function takeBack(edge: Edge, call: Call, params: unknown): Promise<Refusal | undefined> {
  if (faultsOf(CancelParams, params).length > 0) return undefined
  const { requestId, reason } = params as { requestId: RpcId; reason?: string }
  return cancelCall(edge, call, requestId, reason)
}

async function replyTo(
  edge: Edge,
  call: Call,
  exchange: Exchange,
  { id, method, params }: { readonly id: RpcId; readonly method: string; readonly params: object },
): Promise<Replied> {
  const { settings } = edge.world
  const misfit = (schema: Parameters<typeof faultsOf>[0]): McpAnswer | undefined => {
    const fields = faultsOf(schema, params, 'params')
    return (
      fields[0] &&
      errorAnswer(id, 'invalid_params', `${fields[0].field}: ${fields[0].message}`, { fields })
    )
  }
  switch (method) {
    case 'initialize': {
      const asked = (params as { protocolVersion?: string }).protocolVersion
      return (
        misfit(InitializeParams) ??
        successAnswer(id, {
          protocolVersion: versions.find((one) => one === asked) ?? versions[0],
          capabilities: { tools: { listChanged: true } },
          serverInfo: {
            name: settings.brand.toLowerCase(),
            title: `${settings.brand}: ${call.project?.name ?? ''}`,
            version: settings.version,
          },
          instructions:
            'Tools are the published workflows and the actions of this project. ' +
            'A call to a workflow lasts as long as its run, which continues if the connection is lost.',
        })
      )
    }
    case 'ping':
      return successAnswer(id, {})
    case 'tools/list':
      return misfit(ListParams) ?? listTools(edge, call, id, params)
    case 'tools/call':
      return callTool(edge, call, exchange, id, params)
    default:
      return errorAnswer(id, 'method_not_found', `There is no method ${method}.`)
  }
}

/**
 * Answers `tools/list` with a page of the tools that the caller may call, sorted by catalog name.
 */
async function listTools(
  edge: Edge,
  call: Call,
  id: RpcId,
  { cursor }: { readonly cursor?: string },
): Promise<Replied> {
  const { world } = edge
  const binding = { project: scopeId(edge, call), route: 'mcp.tools.list', filters: {} }
  const opened = cursor === undefined ? { position: '' } : openCursor(world, binding, cursor)
  if (isRefusal(opened))
    return errorAnswer(id, 'invalid_params', 'cursor: is not a cursor of this list')
  const all = await allTools(world, scopeId(edge, call))
  if (isRefusal(all)) return all
  const rest = all.filter(
    (one) => one.name > String(opened.position) && !refuseTool(world, call.caller, one),
  )
  const page = rest.slice(0, PAGE)
  const last = page.at(-1)
  return successAnswer(id, {
    tools: page.map(({ tool }) => tool),
    ...(rest.length > PAGE && last && { nextCursor: sealCursor(world, binding, last.name) }),
  })
}
