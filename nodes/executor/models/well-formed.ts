/** Makes the texts of requests valid Unicode, because providers reject lone surrogates. */

/** Returns a copy of a JSON value in which lone surrogates are replaced by U+FFFD. */
export function wellFormed<T>(value: T): T {
  return copy(value) as T
}
function copy(value: unknown): unknown {
  if (typeof value === 'string') return value.toWellFormed()
  if (Array.isArray(value)) return value.map(copy)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [name.toWellFormed(), copy(one)]),
  )
}
