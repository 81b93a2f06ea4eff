/** A canonical form of JSON values, to compare and hash them. Pure. */

/**
 * Serializes a value as JSON with sorted property names, so that equal values have equal texts.
 * Undefined members are omitted.
 */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join()}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null'
  const members = value as Readonly<Record<string, unknown>>
  return `{${Object.keys(members)
    .sort()
    .filter((name) => members[name] !== undefined)
    .map((name) => `${JSON.stringify(name)}:${canonicalJson(members[name])}`)
    .join()}}`
}
