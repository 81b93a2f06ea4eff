/**
 * Builds the result of a call in MCP format: text for the model, data for programs, and the id of
 * the run.
 */
import type { JsonObject } from '../../protocol/common.ts'
import {
  errorBody,
  isRefusal,
  isServiceFault,
  type Refusal,
  refuse,
} from '../../protocol/errors.ts'
import type { McpResult, McpTool } from '../../protocol/mcp/messages.ts'
import { valueFaults } from '../../protocol/rules/json-schema/validate.ts'
import { terminal, type WorkflowRunDetail } from '../../protocol/runs/schema.ts'
import { type Call, type Edge, scopeId } from '../call.ts'
import { ifStillAdmitted } from '../guard.ts'
import type { World } from '../ports.ts'

const text = (content: string): McpResult['content'] => [{ type: 'text', text: content }]
/** Returns a successful result, which contains the output as text and as data. */
export const successResult = (output: JsonObject, meta?: JsonObject): McpResult => ({
  content: text(JSON.stringify(output)),
  structuredContent: output,
  ...(meta && { _meta: meta }),
})
const failed = (why: string, meta?: JsonObject): McpResult => ({
  content: text(why),
  isError: true,
  ...(meta && { _meta: meta }),
})

/**
 * Converts a refusal to a failed result, so that the model can react to it. Refusals for missing
 * permissions, and refusals with a status of 500 or more, are returned unchanged, to be sent as the
 * HTTP response.
 */
export function refusalResult(refusal: Refusal, brand: string): McpResult | Refusal {
  if (
    isServiceFault(refusal) ||
    refusal.refused === 'permission_denied' ||
    refusal.refused === 'forbidden'
  )
    return refusal
  const { code, message, details } = errorBody(refusal).error
  const fields = details?.['fields']
  const places = Array.isArray(fields)
    ? (fields as { field: string; message: string }[])
        .map((fault) => `${fault.field}: ${fault.message}`)
        .join('\n')
    : ''
  return failed(places === '' ? message : places, {
    [`${brand}/error`]: { code, ...(details && { details }) },
  })
}

type Ran = Pick<WorkflowRunDetail, 'id' | 'status' | 'result' | 'error_type' | 'error_message'>
/**
 * Returns the result of a call whose wait has timed out. It is a failed result, because it lacks
 * the output that the tool's schema describes.
 * @param look name of the tool that reads the state of a run.
 */
export const timedOutResult = (run_id: string, look: string, brand: string): McpResult =>
  failed(`The run ${run_id} continues. Check it later with ${look}.`, {
    [`${brand}/run_id`]: run_id,
  })
/** Returns the state of a run, as the output of the tool that reads runs. */
export const shownRun = ({
  id,
  status,
  result: output,
  error_type,
  error_message,
}: Ran): JsonObject => ({
  run_id: id,
  status,
  ...(output && { output }),
  ...(error_type !== undefined && { error_type }),
  ...(error_message !== undefined && { error_message }),
})

/**
 * The properties of a tool that determine its results: the name of its row, and its output schema.
 */
export interface Promised {
  readonly row: string
  readonly outputSchema?: McpTool['outputSchema'] | undefined
}
/**
 * Returns the result of a call, or undefined while its run is in progress. Refused when the caller
 * has lost access, or when the result cannot be read.
 * @param call the call to the tool's row.
 */
export const resultOf = async (
  edge: Edge,
  call: Call,
  promised: Promised,
  run_id: string,
): Promise<McpResult | undefined | Refusal> =>
  ifStillAdmitted(edge, call, await readResult(edge.world, scopeId(edge, call), promised, run_id))
async function readResult(
  world: World,
  project: string,
  { row, outputSchema }: Promised,
  run_id: string,
): Promise<McpResult | undefined | Refusal> {
  const run = await world.view(project, 'run.get', { id: run_id })
  if (isRefusal(run)) return run
  if (!terminal.has(run.status)) return undefined
  const brand = world.settings.brand.toLowerCase()
  const meta = { [`${brand}/run_id`]: run_id }
  if (run.status === 'cancelled') return failed(`The run ${run_id} was cancelled.`, meta)
  if (run.status === 'failed')
    return failed(
      `The run ${run_id} failed: ${run.error_message ?? run.error_type ?? 'no reason given'}`,
      { ...meta, ...(run.error_type !== undefined && { [`${brand}/error_type`]: run.error_type }) },
    )
  // An output with a field named `refused` would look like a refusal, so `isRefusal` is called with
  // the object that contains the output.
  const call =
    row === 'action.invoke'
      ? await world.ask({ project, kind: 'run', id: run_id }, 'invoked', {})
      : { output: run.result }
  if (!call || isRefusal(call)) return call ?? refuse('not_found')
  const { output = {} } = call
  // Clients reject data that does not match the tool's output schema, so a mismatch is a failed
  // result.
  const faults = outputSchema ? valueFaults(outputSchema, output, 'output', 'its schema') : []
  return faults.length > 0
    ? failed(
        `The output does not match the output schema of the tool.\n` +
          `${faults.map(({ field, message }) => `${field}: ${message}`).join('\n')}\n${JSON.stringify(output)}`,
        meta,
      )
    : successResult(output, meta)
}
