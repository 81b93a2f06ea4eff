/**
 * JSON Schemas that people give for the input and output of actions: what is refused before one is stored. Boundary: pure;
 * values are checked against them by the edge, which interprets them and never makes code of them.
 */
import type { FieldError } from '../errors.ts'
import { below } from '../language/path.ts'

/** Characters of a schema as JSON, and levels of nesting. */
const LONGEST = 32_768
const DEEPEST = 32
/** Members whose values are data, in which nothing is a keyword. */
const data: ReadonlySet<string> = new Set(['const', 'enum', 'default', 'examples'])

/** What is wrong with a schema: too large, a reference that leaves it, a pattern that is none. @param path where it stands. */
export function checkSchema(schema: unknown, path: string): FieldError[] {
  if (schema === undefined) return []
  if (JSON.stringify(schema).length > LONGEST)
    return [{ field: path, message: `must have at most ${LONGEST} characters` }]
  const faults: FieldError[] = []
  walk(schema, path, 0, faults)
  return faults.slice(0, 20)
}

function walk(value: unknown, path: string, depth: number, faults: FieldError[]): void {
  if (typeof value !== 'object' || value === null) return
  if (depth > DEEPEST)
    return void faults.push({ field: path, message: `is nested deeper than ${DEEPEST} levels` })
  for (const [name, part] of Array.isArray(value) ? value.entries() : Object.entries(value)) {
    const field = below(path, name)
    if (
      (name === '$ref' || name === '$dynamicRef' || name === '$recursiveRef') &&
      typeof part === 'string' &&
      !part.startsWith('#')
    )
      faults.push({
        field,
        message: 'must point into the schema itself, such as #/$defs/name',
        actual: part,
      })
    else if (name === 'pattern' && typeof part === 'string' && !isPattern(part))
      faults.push({ field, message: 'is not a regular expression', actual: part })
    if (typeof name === 'number' || !data.has(name)) walk(part, field, depth + 1, faults)
  }
}
function isPattern(text: string): boolean {
  try {
    new RegExp(text, 'u')
    return true
  } catch {
    return false
  }
}
