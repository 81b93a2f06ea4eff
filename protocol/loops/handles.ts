/**
 * The actor of an HTTP trigger's handle. Its id is derived from the handle, and it belongs to the
 * organization's partition.
 */
import { makeId } from '../ids.ts'
import { hashOf } from '../subjects.ts'

/**
 * The id of the actor that stores the owner of a handle. The actor also stores the handle, so a
 * second handle that hashes to the same id is refused.
 */
export function handleId(handle: string): string {
  const words = [1, 2, 3, 4].map((salt) => hashOf(`${salt}/${handle}/${salt}`))
  const bytes = new Uint8Array(
    words.flatMap((word) => [word >>> 24, (word >>> 16) & 255, (word >>> 8) & 255, word & 255]),
  )
  return makeId('trigger_handle', words[0] ?? 0, bytes)
}
