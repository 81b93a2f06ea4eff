/**
 * Parses inbound frames. Every frame is validated against its schema before it is handled. Only the
 * valid part of an invalid report is handled. A fault contains the frame's `message_id`, so that
 * the worker can match the error to the frame. The schemas are in protocol/workers/socket.ts.
 */
import type { TSchema } from 'typebox'
import { Compile } from 'typebox/compile'
import { explain } from '../../protocol/rules/schema-faults/explain.ts'
import { type FrameError, reportErrors, type Up, up } from '../../protocol/workers/socket.ts'
import { MAX_NAMES, parseJson } from '../http/json.ts'

/**
 * Maximum number of different names in a frame. It is higher than for bodies, so that a result of
 * 1 MiB with short names does not exceed it.
 */
const MAX_FRAME_NAMES = 2 * MAX_NAMES

const checks = new Map(
  Object.entries(up).map(([type, schema]) => [type, { schema, fits: Compile(schema as TSchema) }]),
)

const partsOfReport = Object.entries(up['job.report'].properties).map(([name, schema]) => ({
  name,
  schema,
  fits: Compile(schema as TSchema),
}))

/**
 * A frame, or the reason why a message is not a valid frame. `type` is the frame type in the
 * message.
 */
type Read =
  | { readonly frame: Up }
  | {
      readonly fault: Extract<FrameError, 'bad_frame' | 'unknown_frame'>
      readonly message: string
      readonly type?: string
      readonly message_id?: string
    }

/**
 * Parses one message from a worker. A top-level field that is null is treated as absent, because
 * some clients send unset fields as null.
 */
export function readFrame(text: string): Read {
  const parsed = parseJson(text, MAX_FRAME_NAMES)
  if ('fault' in parsed) return { fault: 'bad_frame', message: `the message ${parsed.fault}` }
  const { value } = parsed
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return { fault: 'bad_frame', message: 'a frame must be a JSON object' }
  const frame = value as Record<string, unknown>
  for (const key of Object.keys(frame)) if (frame[key] === null) delete frame[key]
  const echo =
    typeof frame.message_id === 'string' && frame.message_id.length <= 128
      ? { message_id: frame.message_id }
      : {}
  const { type, job_id } = frame
  if (typeof type !== 'string')
    return { fault: 'bad_frame', message: 'type: must be a string', ...echo }
  const check = checks.get(type)
  if (!check)
    return {
      fault: 'unknown_frame',
      message: `there is no frame of type ${type.slice(0, 64)}`,
      ...echo,
    }
  if (check.fits.Check(frame)) return { frame: frame as Up }
  if (type === 'job.report' && typeof job_id === 'string') return { frame: mended(frame, job_id) }
  return { fault: 'bad_frame', message: faultOf(check.schema, frame, 'frame'), type, ...echo }
}

const faultOf = (schema: unknown, value: unknown, name: string): string => {
  const [first] = explain(schema, value)
  return first ? `${first.field || name}: ${first.message}` : `${name}: does not match its schema`
}

/**
 * Returns the valid part of a report. Workers send a report again until it is acknowledged, so a
 * report with a job id is never refused as invalid. Invalid fields are treated as absent. If
 * `status`, or the `result` of a completed job, is invalid, the report is converted to the report
 * of a failed job.
 */
function mended(frame: Readonly<Record<string, unknown>>, job_id: string): Up {
  const faults = new Map(
    partsOfReport.flatMap(({ name, schema, fits }) =>
      name in frame && !fits.Check(frame[name])
        ? [[name, faultOf(schema, frame[name], name)] as const]
        : [],
    ),
  )
  const { lease_token = '', ...rest } = Object.fromEntries(
    Object.entries(frame).filter(([name]) => !faults.has(name)),
  )
  const unclear =
    faults.get('status') ??
    ((rest.status ?? 'completed') === 'completed' ? faults.get('result') : undefined)
  const failed = unclear !== undefined && {
    status: 'failed',
    error_type: reportErrors.result_invalid,
    error_message: `the report is invalid: ${unclear}`,
  }
  return { ...rest, ...failed, type: 'job.report', job_id, lease_token } as Up
}

/**
 * Returns the text of a `jobs.claimed` frame.
 * @param jobs the jobs, each encoded as JSON.
 */
export function claimedFrame(message_id: string | undefined, jobs: readonly string[]): string {
  const reference = message_id === undefined ? '' : `"message_id":${JSON.stringify(message_id)},`
  return `{"type":"jobs.claimed",${reference}"jobs":[${jobs.join(',')}]}`
}
