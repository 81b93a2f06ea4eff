/**
 * Expressions: what authors write in `if`, in conditions and between `${{` and `}}`. Pure: a value in, a value out, no
 * clock, no I/O, and an end that comes soon (see `values.ts` for the meaning of values, `operations.ts` for the operators).
 *
 * - Literals, `a.b`, `a["b"]`, `a[0]`, `[1, 2]`, `{name: "x"}`, `c ? a : b`, `+ - * / %`, `== != < <= > >=`,
 *   `&& || !` or `and or not`, `in`, `contains startsWith endsWith matches` (as `a contains b`, `a.contains(b)` or
 *   `contains(a, b)`), `len lower upper` (as `len(a)` or `a.len()`).
 * - What is unknown is null, at any depth; comparing null by order is false; null counts as false.
 * - A step whose id has a `-` is read by index, `steps["my-step"].output`, because `steps.my-step` is a subtraction.
 */
import type { Guard } from './guard.ts'
import {
  isProgram,
  programOf,
  type ProgramFault,
  type Program,
  type Reference,
  type Scope,
} from './program.ts'
import { closingBraces } from './tokens.ts'
import { ExpressionError, ROOM, typeName, weigh, WORK } from './values.ts'

export { ExpressionError } from './values.ts'
/** The names an expression may read, with their JSON values. */
export type Roots = Readonly<Record<string, unknown>>

/** The expression of a text that may be wrapped in one interpolation, and its offset in the text. */
function unwrap(text: string): { readonly expression: string; readonly offset: number } {
  const offset = text.startsWith('${{') ? 3 : /^\s*\$\{\{/.exec(text)?.[0].length
  const end = offset === undefined ? undefined : closingBraces(text, offset)
  return offset === undefined || end === undefined || text.slice(end + 2).trim() !== ''
    ? { expression: text, offset: 0 }
    : { expression: text.slice(offset, end), offset }
}

/** What an expression reads, for checks that need more than the roots; a fault when it does not compile. */
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
 * Check an expression when it is authored.
 * @param roots the names it may read.
 * @returns on failure a message for the author and, when known, the offset in the expression.
 */
export function compile(
  source: string,
  roots: readonly string[],
): { ok: true } | { ok: false; message: string; position?: number } {
  const result = analyse(source, roots)
  return 'message' in result ? { ok: false, ...result } : { ok: true }
}

const shown = (source: string) => (source.length > 120 ? `${source.slice(0, 120)}…` : source).trim()
/** Run a bare expression within a scope whose budget it shares. @throws ExpressionError only. */
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
/** A scope with a fresh budget. */
export const scopeOf = (roots: Roots): Scope => ({ roots, left: WORK })

/**
 * The value of an expression, bare or wrapped in `${{ }}`: a JSON value, null for what is unknown. The value may be part of
 * the roots; don't change it.
 * @throws ExpressionError when it does not compile, on types an operator cannot work on, and when it exceeds its bounds.
 */
export const evaluate = (source: string, roots: Roots): unknown =>
  weigh(run(unwrap(source).expression, scopeOf(roots)), { left: ROOM })

/** The truth of a condition; null is false. @throws ExpressionError also when the value is neither true, false nor null. */
export const predicate = (source: string, roots: Roots): boolean =>
  truthOf(evaluate(source, roots), source)
function truthOf(value: unknown, source: string): boolean {
  if (typeof value === 'boolean') return value
  if (value === null) return false
  throw new ExpressionError(
    `the condition must be true or false, not ${typeName(value)}, in ${shown(source)}`,
  )
}

/** A condition that is asked again and again: whoever holds it keeps its program. */
export interface Condition {
  /** When the document has another value there, the condition is false. */
  readonly guard?: Guard | undefined
  /** As `predicate`. @param work that it may do at most. @throws ExpressionError */
  test(roots: Roots, work: number): boolean
}
/** The condition of a text. One that does not compile throws when it is asked. */
export function conditionOf(source: string): Condition {
  const { expression } = unwrap(source)
  const program = programOf(expression)
  return {
    guard: isProgram(program) ? program.guard : undefined,
    test: (roots, left) =>
      truthOf(runProgram(program, expression, { roots, left }) ?? null, source),
  }
}
