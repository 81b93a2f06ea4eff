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
/** Codes of errors that would recur if the same frame were sent again. */
const invalidFrame = ['bad_frame', 'unknown_frame', 'payload_too_large'] as const
const rejected: ReadonlySet<string> = new Set(invalidFrame)
/** Codes of errors that would recur if the same report were sent again. */
export const permanentErrors: ReadonlySet<string> = new Set(['lease_lost', ...invalidFrame])

/**
 * Returns advice for an error that ends the worker; undefined for other errors.
 * @param isNew whether the worker has never been registered. An invalid frame then is its
 * registration. A registration that was accepted before is repeated, because running jobs depend on
 * it.
 */
export function fatalAdvice(code: string, message: string, isNew: boolean): string | undefined {
  if (code === 'worker_instance_conflict')
    return (
      `${message}. Another live worker uses this instance name; ` +
      'give each process a unique name, or wait a minute if the other worker has just died.'
    )
  if (code === 'invalid_actor')
    return `${message}. The key was revoked or its principal disabled; configure another key for the worker.`
  if (isNew && rejected.has(code))
    return `The service does not accept the registration: ${message}. Correct the options of the worker.`
  return undefined
}
