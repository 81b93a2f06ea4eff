/**
 * The actor that ensures that the handle of an HTTP trigger is unique: its id, events and internal
 * commands. The actor is in the partition of the organization.
 */
import type { Event } from '../entry.ts'
import { type Refusal, refuse } from '../errors.ts'
import { makeId } from '../ids.ts'
import { hashOf } from '../subjects.ts'

/**
 * Returns the id of the actor of a handle, derived from the handle by hashing. The actor also
 * stores the handle itself, so a second handle with the same hash is refused.
 */
export function handleId(handle: string): string {
  const words = [1, 2, 3, 4].map((salt) => hashOf(`${salt}/${handle}/${salt}`))
  const bytes = new Uint8Array(
    words.flatMap((word) => [word >>> 24, (word >>> 16) & 255, (word >>> 8) & 255, word & 255]),
  )
  return makeId('trigger_handle', words[0] ?? 0, bytes)
}

/** Returns the refusal of a handle that another trigger has. */
export const refuseTakenHandle = (handle: string): Refusal =>
  refuse(
    'already_exists',
    { field: 'http_handle', http_handle: handle },
    'Another trigger has this handle.',
  )

/** Private events of the actor of a handle. Times are Unix milliseconds. */
export type HandleEvent =
  | (Event & {
      readonly type: 'handle.reserved'
      readonly handle: string
      readonly project: string
      readonly loop_id: string
      readonly until: number
      readonly reservation?: string
    })
  | (Event & {
      readonly type: 'handle.taken'
      readonly handle: string
      readonly project: string
      readonly loop_id: string
      readonly trigger_id: string
    })
  | (Event & {
      readonly type: 'handle.questioned'
      readonly handle: string
      readonly project: string
      readonly loop_id: string
      readonly organization: string
      readonly until: number
    })
  | (Event & { readonly type: 'handle.released' })
/**
 * Internal commands of the actor of a handle. `handle.reserve` returns the time until which the
 * caller may use the reservation, in Unix milliseconds. `handle.reserve` is refused while another
 * loop has or reserves the handle, and while any loop has or reserves another handle with the same
 * hash. `reservation`: an id of the request that reserves the handle. With it, `handle.free` ends
 * only the reservation of this request. The other commands are never refused.
 */
export type HandleCommands = {
  'handle.reserve': {
    input: { handle: string; project: string; loop_id: string; reservation?: string }
    reply: { until: number }
  }
  'handle.bind': {
    input: { handle: string; loop_id: string; trigger_id: string; project: string }
    reply: undefined
  }
  'handle.free': {
    input: { loop_id: string; trigger_id?: string; reservation?: string }
    reply: undefined
  }
  wake: { input: unknown; reply: undefined }
}
/** The trigger to which a handle belongs. */
export interface HandleOwner {
  readonly project: string
  readonly loop_id: string
  readonly trigger_id: string
}
