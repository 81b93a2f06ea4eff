/**
 * The part of the Model Context Protocol (https://modelcontextprotocol.io/specification/2025-06-18)
 * that this service supports. Its messages use JSON-RPC 2.0, and each HTTP request contains one
 * message. This file defines only names and shapes. The gateway implements the methods
 * (`gateway/mcp/`).
 */
import { type Static, Type } from 'typebox'
import { Closed, JsonObject } from '../common.ts'
import type { FieldError } from '../errors.ts'

/**
 * Supported protocol versions, newest first. Batches, which version 2025-03-26 allows, are not
 * supported.
 */
export const versions = ['2025-11-25', '2025-06-18', '2025-03-26'] as const
/**
 * The first protocol version whose clients accept a Server-Sent Event without data. Such an event
 * gives a client an event id from which it can resume.
 */
export const EMPTY_EVENTS_SINCE = '2025-11-25'
/**
 * JSON-RPC error codes (https://www.jsonrpc.org/specification#error_object). All other failures are
 * reported by HTTP statuses, or by results with `isError`.
 */
const faults = { method_not_found: -32601, invalid_params: -32602, internal: -32603 } as const

/** Maximum length, in characters, of an id, a progress token or an idempotency key. */
const MAX_LENGTH = 255
const Name = Type.String({ minLength: 1, maxLength: MAX_LENGTH })
const RpcId = Type.Union([Type.Integer(), Name])
/** The id of a request. The client chooses it, and it is unique only in the client's session. */
export type RpcId = Static<typeof RpcId>

/**
 * A message from a client: a request, a notification or a response. Responses are accepted and
 * ignored, because the service sends no requests.
 */
export const McpMessage = Closed({
  jsonrpc: Type.Literal('2.0'),
  id: Type.Optional(RpcId),
  method: Type.Optional(Type.String({ minLength: 1, maxLength: 128 })),
  params: Type.Optional(JsonObject),
  result: Type.Optional(JsonObject),
  error: Type.Optional(JsonObject),
})
export type McpMessage = Static<typeof McpMessage>
export const McpAnswer = Type.Object({
  jsonrpc: Type.Literal('2.0'),
  id: RpcId,
  result: Type.Optional(JsonObject),
  error: Type.Optional(
    Type.Object({ code: Type.Integer(), message: Type.String(), data: Type.Optional(JsonObject) }),
  ),
})
export type McpAnswer = Static<typeof McpAnswer>
/** A notification from the service: progress, or a change to the list of tools. */
export const McpNotice = Type.Object({
  jsonrpc: Type.Literal('2.0'),
  method: Type.String(),
  params: Type.Optional(JsonObject),
})

/**
 * Returns the faults that the schema cannot detect in a message. A message either has a method, or
 * is a response with an id and either a result or an error.
 */
export function checkMessage({ id, method, params, result, error }: McpMessage): FieldError[] {
  if (method !== undefined)
    return [result, error].some((part) => part !== undefined)
      ? [{ field: 'method', message: 'is not allowed with a result or an error' }]
      : []
  if (id === undefined || (result === undefined) === (error === undefined))
    return [
      {
        field: 'method',
        message: 'is required, except in answers, which have an id and a result or an error',
      },
    ]
  return params === undefined ? [] : [{ field: 'params', message: 'is allowed only with a method' }]
}

export const CallParams = Type.Object({
  name: Type.String({ minLength: 1, maxLength: 128 }),
  arguments: Type.Optional(JsonObject),
  _meta: Type.Optional(
    Type.Object({ progressToken: Type.Optional(RpcId), idempotency_key: Type.Optional(Name) }),
  ),
})
export type CallParams = Static<typeof CallParams>
/** The parameters of `initialize`, of the list methods, and of the `cancelled` notification. */
export const InitializeParams = Type.Object({ protocolVersion: Type.String() })
export const ListParams = Type.Object({ cursor: Type.Optional(Type.String()) })
export const CancelParams = Type.Object({ requestId: RpcId, reason: Type.Optional(Type.String()) })

/**
 * A tool as clients see it. `annotations` contains only the hints that the action declares. Clients
 * must assume the worst case for every absent hint.
 */
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
/** The result of a tool call. With `isError`, the text explains the failure to the model. */
export interface McpResult {
  readonly content: readonly { readonly type: 'text'; readonly text: string }[]
  readonly structuredContent?: JsonObject
  readonly isError?: true
  readonly _meta?: JsonObject
}

/** Returns the response to a successful request. */
export const successAnswer = (id: RpcId, result: object): McpAnswer => ({
  jsonrpc: '2.0',
  id,
  result: result as JsonObject,
})
/** Returns the error response to a request. */
export const errorAnswer = (
  id: RpcId,
  fault: keyof typeof faults,
  message: string,
  data?: JsonObject,
): McpAnswer => ({
  jsonrpc: '2.0',
  id,
  error: { code: faults[fault], message, ...(data && { data }) },
})
/**
 * Returns a notification from the service.
 * @param method name without the `notifications/` prefix.
 */
export const notice = (method: string, params?: JsonObject): Static<typeof McpNotice> => ({
  jsonrpc: '2.0',
  method: `notifications/${method}`,
  ...(params && { params }),
})
