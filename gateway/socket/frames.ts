/**
 * Text in, frames out. Every inbound frame is checked against its schema before anything else sees it; what cannot be
 * read is named as a fault with the frame's `message_id`, so that the sender can match the answer.
 */
import type { TSchema } from 'typebox'
import { Compile } from 'typebox/compile'
import { up, type FrameError, type Up } from '../../protocol/worker.ts'
import { explain } from '../explain.ts'

const checks = new Map(Object.entries(up).map(([type, schema]) => [type, { schema, fits: Compile(schema as TSchema) }]))

/** A frame, or why it is none. */
type Read =
  | { readonly frame: Up }
  | { readonly fault: Extract<FrameError, 'bad_frame' | 'unknown_frame'>; readonly message: string; readonly message_id?: string }

/** Read one message of a worker. A member that is null counts as absent: some clients write their unset fields so. */
export function readFrame(text: string): Read {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return { fault: 'bad_frame', message: 'the message is not JSON' }
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return { fault: 'bad_frame', message: 'a frame is a JSON object' }
  const frame = value as Record<string, unknown>
  for (const key of Object.keys(frame)) if (frame[key] === null) delete frame[key]
  const echo = typeof frame.message_id === 'string' && frame.message_id.length <= 128 ? { message_id: frame.message_id } : {}
  if (typeof frame.type !== 'string') return { fault: 'bad_frame', message: 'type: must be a string', ...echo }
  const check = checks.get(frame.type)
  if (!check) return { fault: 'unknown_frame', message: `there is no frame of type ${frame.type.slice(0, 64)}`, ...echo }
  if (check.fits.Check(frame)) return { frame: frame as Up }
  const [first] = explain(check.schema, frame)
  return { fault: 'bad_frame', message: first ? `${first.field || 'frame'}: ${first.message}` : 'the frame does not have its form', ...echo }
}

/** The text of a `jobs.claimed` frame, from jobs that are texts already. */
export const claimedFrame = (message_id: string | undefined, jobs: readonly string[]): string =>
  `{"type":"jobs.claimed",${message_id === undefined ? '' : `"message_id":${JSON.stringify(message_id)},`}"jobs":[${jobs.join(',')}]}`
