/**
 * Handles `tools/call`: converts a tool call to a call to the tool's API row, and the outcome to an
 * MCP response. Streams of calls are in `follow.ts`, and the format of results is in `result.ts`.
 *
 * Invariants:
 * C1. A call needs the permission of the tool's row and goes through the row's preparation, so it
 *     can do no more than a direct call to the row.
 * C2. A repeat is not recognized by its request id, because clients reuse ids. Only a call with an
 *     idempotency key is deduplicated: a repeat waits for the run that the first call started.
 */

import { isRefusal, type Refusal, refuseFields } from '../../protocol/errors.ts'
import {
  CallParams,
  errorAnswer,
  type McpAnswer,
  type McpResult,
  type RpcId,
  successAnswer,
} from '../../protocol/mcp/messages.ts'
import { valueFaults } from '../../protocol/rules/json-schema/validate.ts'
import { faultsOf as misshapen } from '../../protocol/rules/schema-faults/faults.ts'
import type { WorkflowRun } from '../../protocol/runs/schema.ts'
import { type Call, type Edge, rows, scopeId } from '../call.ts'
import { performCommand } from '../command.ts'
import { waitForRunEnd } from '../commands/actions.ts'
import { keyOf } from '../http/idempotency.ts'
import type { Exchange } from '../http/respond.ts'
import { runQuery } from '../query.ts'
import { labelOf } from './cancel.ts'
import { followCall, type Waiting } from './follow.ts'
import { refusalResult, resultOf, shownRun, successResult, timedOutResult } from './result.ts'
import { allTools, findTool, type Offered, refuseTool } from './tools.ts'

/** Maximum wait for the result of a call without a stream, in milliseconds. */
const CALL_TIMEOUT_MS = 120_000

/**
 * Converts an MCP call to a call to the row with the given name. Returns undefined when there is no
 * such row.
 */
const relayed = (
  call: Call,
  row: string,
  asked: Pick<Call, 'slots' | 'body'>,
  key?: string,
): Call | undefined => {
  const found = rows[row]
  return (
    found && {
      ...call,
      name: row,
      row: found,
      slots: { ...call.slots, ...asked.slots },
      query: {},
      body: asked.body,
      key,
    }
  )
}

/**
 * Handles a tool call.
 * @param id id of the JSON-RPC request.
 * @param params parameters of the JSON-RPC request, not validated.
 * @returns the response; a refusal for the HTTP request; or undefined when the response is a
 *   stream.
 */
export async function callTool(
  edge: Edge,
  call: Call,
  exchange: Exchange,
  id: RpcId,
  params: unknown,
): Promise<McpAnswer | Refusal | undefined> {
  const { world } = edge
  const odd = misshapen(CallParams, params, 'params')
  if (odd[0])
    return errorAnswer(id, 'invalid_params', `${odd[0].field}: ${odd[0].message}`, { fields: odd })
  const { name, arguments: input = {}, _meta } = params as CallParams
  const all = await allTools(world, scopeId(edge, call))
  if (isRefusal(all)) return all
  const offered = findTool(all, name)
  if (!offered) return errorAnswer(id, 'invalid_params', `There is no tool ${name}.`, { name })
  const refused = refuseTool(world, call.caller, offered)
  if (refused) return refused
  const key = _meta?.idempotency_key?.trim() || keyOf(call)
  if (isRefusal(key)) return key
  const row = relayed(
    call,
    offered.row,
    offered.ask(input),
    key === undefined ? undefined : `${offered.name}\n${key}`,
  )
  if (!row) throw new Error(`${offered.row} is not a row`)

  const brand = world.settings.brand.toLowerCase()
  const given = (result: McpResult | Refusal): McpAnswer | Refusal =>
    isRefusal(result) ? result : successAnswer(id, result)
  const faults = offered.lasts ? [] : valueFaults(offered.tool.inputSchema, input, 'arguments')
  if (faults.length > 0) return given(refusalResult(refuseFields(...faults), brand))
  if (offered.row === 'run.get') {
    const found = await runQuery(edge, row)
    return given(
      isRefusal(found)
        ? refusalResult(found, brand)
        : successResult(shownRun(found.body as WorkflowRun)),
    )
  }
  const run_id = await begin(edge, row, offered.lasts ? labelOf(edge, call, id) : undefined)
  if (isRefusal(run_id)) return given(refusalResult(run_id, brand))
  if (!offered.lasts) return successAnswer(id, successResult({ run_id, status: 'started' }))
  const waiting: Waiting = {
    name: offered.name,
    row: offered.row,
    run_id,
    id,
    ...(_meta?.progressToken !== undefined && { token: _meta.progressToken }),
    seen: 0,
    at: 0,
  }
  if (takesStream(call))
    return followCall(edge, row, exchange, { promised: promiseOf(offered), waiting, first: true })
  await waitForRunEnd(edge, scopeId(edge, call), run_id, CALL_TIMEOUT_MS)
  return given(
    (await resultOf(edge, row, promiseOf(offered), run_id)) ??
      timedOutResult(run_id, `${brand}_run_get`, brand),
  )
}

/**
 * Resumes the stream of a call after a lost connection. Refused when the caller may no longer call
 * the tool.
 */
export async function resumeCall(
  edge: Edge,
  call: Call,
  exchange: Exchange,
  waiting: Waiting,
): Promise<Refusal | undefined> {
  const row = relayed(call, waiting.row, {
    slots: waiting.row === 'action.invoke' ? { action_name: waiting.name } : {},
    body: {},
  })
  const all = await allTools(edge.world, scopeId(edge, call))
  if (isRefusal(all) || !row) return isRefusal(all) ? all : undefined
  // A call can have a result even if its tool is no longer offered. The row of the call is then
  // read from `waiting`, and the result is not checked against an output schema.
  const offered = findTool(all, waiting.name)
  return (
    refuseTool(edge.world, call.caller, waiting) ??
    followCall(edge, row, exchange, {
      promised: offered ? promiseOf(offered) : waiting,
      waiting,
      first: false,
    })
  )
}

const promiseOf = ({ row, tool: { outputSchema } }: Offered) => ({ row, outputSchema })
const takesStream = ({ incoming }: Call): boolean =>
  (incoming.header('accept') ?? '')
    .split(',')
    .some((part) => part.split(';')[0]?.trim().toLowerCase() === 'text/event-stream')

/**
 * Starts the run of a call, and returns the run's id. A repeat under the same idempotency key
 * returns the id of the existing run.
 */
async function begin(
  edge: Edge,
  row: Call,
  external_id: string | undefined,
): Promise<string | Refusal> {
  const reply = await performCommand<unknown>(
    edge,
    row,
    external_id === undefined ? undefined : { external_id },
    (_, __, given) => given,
  )
  if (isRefusal(reply)) return reply
  const { id, run_id } = reply as { readonly id?: string; readonly run_id?: string }
  return String(id ?? run_id)
}
