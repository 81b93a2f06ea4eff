/** Where the handle of an HTTP trigger lives: an actor whose id is derived from the handle, at the organization's home. */
import { makeId } from '../ids.ts'
import { hashOf } from '../subjects.ts'

/** The id of the actor that knows whose a handle is. Two handles with one id would only be refused, because the actor knows its handle. */
export function handleId(handle: string): string {
  const words = [1, 2, 3, 4].map((salt) => hashOf(`${salt}/${handle}/${salt}`))
  const bytes = new Uint8Array(
    words.flatMap((word) => [word >>> 24, (word >>> 16) & 255, (word >>> 8) & 255, word & 255]),
  )
  return makeId('trigger_handle', words[0] ?? 0, bytes)
}
