/**
 * Checks values against the schemas of API rows and of blueprints. The gateway and the command line
 * use the same code, so that they report the same faults. Each schema is compiled when it is first
 * needed. Explanations of faults are in `explain.ts`.
 */
import type { TSchema } from 'typebox'
import { Compile } from 'typebox/compile'
import type { FieldError } from '../../errors.ts'
import { explain } from './explain.ts'

/** A schema whose integers are bounded, and its compiled validator. */
interface Checker {
  readonly schema: TSchema
  readonly compiled: { Check(value: unknown): boolean }
}
const checkers = new WeakMap<object, Checker>()

/**
 * Returns the faults of a value, at most 50. Returns an empty list when the value fits.
 * @param root name of the whole value in the faults.
 */
export function faultsOf(schema: TSchema, value: unknown, root = 'body'): FieldError[] {
  let checker = checkers.get(schema)
  if (!checker) checkers.set(schema, (checker = checkerOf(schema)))
  if (checker.compiled.Check(value)) return []
  const faults = explain(checker.schema, value).map((fault) =>
    fault.field === '' ? { ...fault, field: root } : fault,
  )
  return faults.length > 0 ? faults : [{ field: root, message: 'does not match its schema' }]
}

function checkerOf(given: TSchema): Checker {
  const schema = withSafeIntegers(given) as TSchema
  return { schema, compiled: Compile(schema) }
}

/**
 * Returns a copy of a schema in which every integer without a bound is a safe integer. Larger
 * integers are rounded when they are parsed, so the stored value could differ from the sent one.
 */
function withSafeIntegers(part: unknown): unknown {
  if (Array.isArray(part)) return part.map(withSafeIntegers)
  if (typeof part !== 'object' || part === null) return part
  const copy = Object.fromEntries(
    Object.entries(part).map(([name, value]) => [name, withSafeIntegers(value)]),
  )
  return copy['type'] === 'integer'
    ? { minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER, ...copy }
    : copy
}
