/**
 * The id of the actor that ensures that the handle of an HTTP trigger is unique. The actor is in
 * the partition of the organization.
 */
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
