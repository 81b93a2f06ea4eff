/**
 * Checks values against the schemas of API rows and of blueprints. The gateway and the command line
 * use the same code, so that they report the same faults. Each schema is compiled when it is first
 * needed. Explanations of faults are in `explain.ts`.
 */
import type { TSchema } from 'typebox'
import { Compile } from 'typebox/compile'
import type { FieldError } from '../../errors.ts'
import { explain } from './explain.ts'

const checkers = new WeakMap<object, { Check(value: unknown): boolean }>()

/**
 * Returns the faults of a value, at most 50. Returns an empty list when the value fits.
 * @param root name of the whole value in the faults.
 */
export function faultsOf(schema: TSchema, value: unknown, root = 'body'): FieldError[] {
  let checker = checkers.get(schema)
  if (!checker) checkers.set(schema, (checker = Compile(schema)))
  if (checker.Check(value)) return []
  const faults = explain(schema, value).map((fault) =>
    fault.field === '' ? { ...fault, field: root } : fault,
  )
  return faults.length > 0 ? faults : [{ field: root, message: 'does not match its schema' }]
}
