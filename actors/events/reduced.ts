/** Bounds of what an event carries. */
import type { JsonObject } from '../../protocol/common.ts'

/** Characters of a payload as JSON, beyond which it is reduced. */
const MAX_PAYLOAD_LENGTH = 262_144

/** A payload within bounds: its largest members become null, and it says so. @param largest characters of it as JSON. */
export function reduced(event: JsonObject, largest = MAX_PAYLOAD_LENGTH): JsonObject {
  if (JSON.stringify(event).length <= largest) return event
  const sizes = Object.keys(event)
    .map((name) => ({ name, size: JSON.stringify(event[name] ?? null).length }))
    .sort((a, b) => b.size - a.size)
  const kept: Record<string, unknown> = { ...event, truncated: true }
  let size = JSON.stringify(kept).length
  for (const { name, size: own } of sizes) {
    if (size <= largest) break
    kept[name] = null
    size += 4 - own
  }
  // So many names that they alone are too much.
  return size <= largest ? kept : { truncated: true }
}
