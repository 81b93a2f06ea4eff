/** Parses frames from the service, and explains errors. */
import type { Down } from '../../protocol/workers/socket.ts'

/** Parses a frame. Returns undefined if the text is not a frame. Unknown types are accepted. */
export function readFrame(text: string): Down | undefined {
  try {
    const frame = JSON.parse(text) as Down | null
    return typeof frame === 'object' && typeof frame?.type === 'string' ? frame : undefined
  } catch {
    return undefined
  }
}
/** Codes of errors that end the worker. */
const terminal: ReadonlySet<string> = new Set(['worker_instance_conflict', 'invalid_actor'])
/** Returns advice for an error that ends the worker; undefined for other errors. */
export const fatal = (code: string, message: string): string | undefined =>
  !terminal.has(code)
    ? undefined
    : code === 'worker_instance_conflict'
      ? `${message}. Another live worker uses this instance name; ` +
        'give each process a unique name, or wait a minute if the other worker has just died.'
      : `${message}. The key was revoked or its principal disabled; configure another key for the worker.`

/** Codes of errors that would recur if the same report were sent again. */
export const permanentErrors: ReadonlySet<string> = new Set([
  'lease_lost',
  'bad_frame',
  'unknown_frame',
  'payload_too_large',
])
