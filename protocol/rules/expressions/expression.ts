/**
 * Expressions: the text in fields such as `if` and `condition`, and between `${{` and `}}`.
 * Evaluation is pure: no clock, no I/O, and bounded work (`values.ts` defines the values,
 * `operations.ts` the operators).
 *
 * - Syntax: literals, `a.b`, `a["b"]`, `a[0]`, `[1, 2]`, `{name: "x"}`, `c ? a : b`, `+ - * / %`,
 *   `== != < <= > >=`, `&& || !` or `and or not`, `in`, `contains startsWith endsWith matches` (as
 *   `a contains b`, `a.contains(b)` or `contains(a, b)`), `len size lower upper` (as `len(a)` or
 *   `a.len()`).
 * - An unknown field is null, at any depth. An order comparison with null is false. As a condition,
 *   null is false.
 * - A step whose id contains a `-` is read by index, `steps["my-step"].output`, because
 *   `steps.my-step` is a subtraction.
 */
import type { Guard } from './guard.ts'
import {
  isProgram,
  type Program,
  type ProgramFault,
  programOf,
  type Reference,
  type Scope,
} from './program.ts'
import { closingBraces } from './tokens.ts'
import { chargeSize, ExpressionError, MAX_SIZE, typeName, WORK_BUDGET } from './values.ts'

export { ExpressionError } from './values.ts'
/** The root names that an expression may read, with their JSON values. */
export type Roots = Readonly<Record<string, unknown>>

/**
 * Removes the `${{ }}` around an expression if the text consists of exactly one interpolation.
 * Returns the expression and its offset in the text.
 */
function unwrap(text: string): { readonly expression: string; readonly offset: number } {
  const offset = text.startsWith('${{') ? 3 : /^\s*\$\{\{/.exec(text)?.[0].length
  const end = offset === undefined ? undefined : closingBraces(text, offset)
  return offset === undefined || end === undefined || text.slice(end + 2).trim() !== ''
    ? { expression: text, offset: 0 }
    : { expression: text.slice(offset, end), offset }
}

/**
 * Compiles an expression and returns the steps that it reads, or a fault if it does not compile or
 * reads an unknown root.
 */
export function analyse(
  source: string,
  roots: readonly string[],
): { readonly steps: readonly Reference[] } | ProgramFault {
  const { expression, offset } = unwrap(source)
  const program = programOf(expression)
  if (!isProgram(program))
    return {
      ...program,
      ...(program.position !== undefined && { position: program.position + offset }),
    }
  const unknown = program.roots.find(({ name }) => !roots.includes(name))
  if (unknown)
    return {
      message: `there is no ${unknown.name} here; known: ${roots.join(', ')}`,
      position: unknown.position + offset,
    }
  return {
    steps: program.steps.map(({ name, position }) => ({ name, position: position + offset })),
  }
}

/**
 * Checks an expression without evaluating it.
 * @param roots the root names that the expression may read.
 * @returns on failure, a message and, if known, the offset of the error in `source`.
 */
export function compile(
  source: string,
  roots: readonly string[],
): { ok: true } | { ok: false; message: string; position?: number } {
  const result = analyse(source, roots)
  return 'message' in result ? { ok: false, ...result } : { ok: true }
}

const shown = (source: string) => (source.length > 120 ? `${source.slice(0, 120)}…` : source).trim()
/**
 * Runs an expression without `${{ }}` in a scope, and charges the work to the budget of the scope.
 * @throws ExpressionError if it does not compile, cannot be evaluated or exceeds the budget.
 */
export const run = (source: string, scope: Scope): unknown =>
  runProgram(programOf(source), source, scope)
function runProgram(program: Program | ProgramFault, source: string, scope: Scope): unknown {
  if (!isProgram(program)) throw new ExpressionError(`${program.message}, in ${shown(source)}`)
  try {
    return program.run(scope) ?? null
  } catch (error) {
    throw error instanceof ExpressionError
      ? new ExpressionError(`${error.message}, in ${shown(source)}`)
      : error
  }
}
/** Returns a scope with a full budget. */
export const scopeOf = (roots: Roots): Scope => ({ roots, left: WORK_BUDGET })

/**
 * Evaluates an expression, with or without `${{ }}`. Returns a JSON value. Unknown fields are null.
 * The value may be part of the roots, so callers must not modify it.
 * @throws ExpressionError if it does not compile, cannot be evaluated or exceeds its bounds.
 */
export const evaluate = (source: string, roots: Roots): unknown =>
  chargeSize(run(unwrap(source).expression, scopeOf(roots)), { left: MAX_SIZE })

/**
 * Evaluates a condition. Null is false.
 * @throws ExpressionError as `evaluate` does, and if the value is neither a boolean nor null.
 */
export const predicate = (source: string, roots: Roots): boolean =>
  truthOf(evaluate(source, roots), source)
function truthOf(value: unknown, source: string): boolean {
  if (typeof value === 'boolean') return value
  if (value === null) return false
  throw new ExpressionError(
    `the condition must be true or false, not ${typeName(value)}, in ${shown(source)}`,
  )
}

/** A compiled condition, for callers that evaluate it repeatedly. */
export interface Condition {
  /** If present, the condition is false for every document that does not match the guard. */
  readonly guard?: Guard | undefined
  /**
   * Evaluates the condition like `predicate`, and charges its work to the budget of the scope.
   * @throws ExpressionError as `predicate` does.
   */
  test(scope: Scope): boolean
}
/** Compiles a condition. If the text does not compile, `test` throws. */
export function conditionOf(source: string): Condition {
  const { expression } = unwrap(source)
  const program = programOf(expression)
  return {
    guard: isProgram(program) ? program.guard : undefined,
    test: (scope) => truthOf(runProgram(program, expression, scope) ?? null, source),
  }
}
