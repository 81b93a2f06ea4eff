/**
 * Words of the Model Context Protocol (https://modelcontextprotocol.io/specification/2025-06-18) that this service speaks: its
 * messages are JSON-RPC 2.0, one to a request. Boundary: names and shapes; what they do is the edge's.
 */
import { Type, type Static } from 'typebox'
import { Closed, JsonObject } from '../common.ts'
import type { FieldError } from '../errors.ts'

/** Versions of the protocol that are spoken, the newest first. Without its batches, 2025-03-26 is the same here. */
export const versions = ['2025-11-25', '2025-06-18', '2025-03-26'] as const
/** The first version whose clients read a frame without data, which gives them a place to come back to. */
export const PRIMED = '2025-11-25'
/** Codes of JSON-RPC errors (https://www.jsonrpc.org/specification#error_object). Everything else that fails is an HTTP status, or a result that says so. */
const faults = { method_not_found: -32601, invalid_params: -32602, internal: -32603 } as const

/** Characters of an id, of a progress token and of a key. */
const MAX_LENGTH = 255
const Name = Type.String({ minLength: 1, maxLength: MAX_LENGTH })
const RpcId = Type.Union([Type.Integer(), Name])
/** The id of a request: the client's, unique in its session and nowhere else. */
export type RpcId = Static<typeof RpcId>

/** What a client sends: a request, a notification, or the answer to something that was never asked. */
export const McpMessage = Closed({
  jsonrpc: Type.Literal('2.0'),
  id: Type.Optional(RpcId),
  method: Type.Optional(Type.String({ minLength: 1, maxLength: 128 })),
  params: Type.Optional(JsonObject),
  result: Type.Optional(JsonObject),
  error: Type.Optional(JsonObject),
})
export type McpMessage = Static<typeof McpMessage>
/** What it is answered. */
export const McpAnswer = Type.Object({
  jsonrpc: Type.Literal('2.0'),
  id: RpcId,
  result: Type.Optional(JsonObject),
  error: Type.Optional(
    Type.Object({ code: Type.Integer(), message: Type.String(), data: Type.Optional(JsonObject) }),
  ),
})
export type McpAnswer = Static<typeof McpAnswer>
/** What is sent without being asked: progress, and that the tools changed. */
export const McpNotice = Type.Object({
  jsonrpc: Type.Literal('2.0'),
  method: Type.String(),
  params: Type.Optional(JsonObject),
})

/** A message is one thing: it names a method, or it answers. */
export function checkMessage({ id, method, params, result, error }: McpMessage): FieldError[] {
  if (method !== undefined)
    return [result, error].some((part) => part !== undefined)
      ? [{ field: 'method', message: 'does not go with a result or an error' }]
      : []
  if (id === undefined || (result === undefined) === (error === undefined))
    return [
      {
        field: 'method',
        message: 'is required, except in answers, which have an id and a result or an error',
      },
    ]
  return params === undefined ? [] : [{ field: 'params', message: 'goes only with a method' }]
}

/** The parameters of a call. */
export const CallParams = Type.Object({
  name: Type.String({ minLength: 1, maxLength: 128 }),
  arguments: Type.Optional(JsonObject),
  _meta: Type.Optional(
    Type.Object({ progressToken: Type.Optional(RpcId), idempotency_key: Type.Optional(Name) }),
  ),
})
export type CallParams = Static<typeof CallParams>
/** The parameters of the other methods that take some. */
export const InitializeParams = Type.Object({ protocolVersion: Type.String() })
export const ListParams = Type.Object({ cursor: Type.Optional(Type.String()) })
export const CancelParams = Type.Object({ requestId: RpcId, reason: Type.Optional(Type.String()) })

/** A tool as clients see it. `annotations` say only what the action says of itself: clients assume the worst of the rest. */
export interface McpTool {
  readonly name: string
  readonly title?: string
  readonly description?: string
  readonly inputSchema: JsonObject & { readonly type: 'object' }
  readonly outputSchema?: JsonObject & { readonly type: 'object' }
  readonly annotations?: {
    readonly title?: string
    readonly readOnlyHint?: boolean
    readonly destructiveHint?: boolean
    readonly idempotentHint?: boolean
  }
  readonly _meta?: JsonObject
}
/** What a call came to; with `isError` the text says why, for the model to read. */
export interface McpResult {
  readonly content: readonly { readonly type: 'text'; readonly text: string }[]
  readonly structuredContent?: JsonObject
  readonly isError?: true
  readonly _meta?: JsonObject
}

/** The answer to a request. */
export const answered = (id: RpcId, result: object): McpAnswer => ({
  jsonrpc: '2.0',
  id,
  result: result as JsonObject,
})
/** The answer to a request that makes no sense. */
export const faulty = (
  id: RpcId,
  fault: keyof typeof faults,
  message: string,
  data?: JsonObject,
): McpAnswer => ({
  jsonrpc: '2.0',
  id,
  error: { code: faults[fault], message, ...(data && { data }) },
})
/** A message that nobody answers. */
export const notice = (method: string, params?: JsonObject): Static<typeof McpNotice> => ({
  jsonrpc: '2.0',
  method: `notifications/${method}`,
  ...(params && { params }),
})
