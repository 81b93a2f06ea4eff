/** Limits the size of the payloads and records of events. */
import type { JsonObject } from '../../protocol/common.ts'

/** Maximum number of characters of a payload as JSON. A longer payload is reduced. */
const MAX_PAYLOAD_LENGTH = 262_144

/**
 * Returns `left` minus an upper bound on the number of characters of a value as JSON. The bound
 * assumes that every character of a string needs an escape sequence. A negative result means that
 * the value may be longer than `left`.
 */
function remaining(value: unknown, left: number): number {
  if (typeof value === 'string') return left - 6 * value.length - 2
  if (typeof value !== 'object' || value === null) return left - 25
  let rest = left - 2
  for (const name in value) {
    if (rest < 0) return rest
    rest = remaining((value as JsonObject)[name], rest - 6 * name.length - 4)
  }
  return rest
}

/**
 * Reduces a payload that exceeds the bound: its largest fields become null, and `truncated` is set.
 * @param largest maximum number of characters of the payload as JSON.
 */
export function reducePayload(event: JsonObject, largest = MAX_PAYLOAD_LENGTH): JsonObject {
  if (remaining(event, largest) >= 0 || JSON.stringify(event).length <= largest) return event
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
  // If the field names alone exceed the bound, no field is kept.
  return size <= largest ? kept : { truncated: true }
}
