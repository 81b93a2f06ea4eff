/**
 * Templates: JSON documents whose strings contain `${{ expression }}`. Property names are never
 * interpolated, and the output of an interpolation is never interpreted as a template again.
 */
import type { FieldError } from '../../errors.ts'
import { below } from '../workflow-check/path.ts'
import { analyse, ExpressionError, type Roots, run, scopeOf } from './expression.ts'
import type { Reference, Scope } from './program.ts'
import { closingBraces } from './tokens.ts'
import {
  type Budget,
  chargeSize,
  equal,
  fail,
  MAX_DEPTH,
  MAX_SIZE,
  member,
  textOf,
} from './values.ts'

/** A part of a string: literal text, or an expression with its offset in the string. */
type Part = { readonly text: string } | { readonly expression: string; readonly offset: number }
const OPEN = '${{'

/** Whether a string contains an interpolation. */
export const hasTemplate = (text: string): boolean => text.includes(OPEN)

/** Returns the number of interpolations in a string. */
export function interpolationsIn(text: string): number {
  let count = 0
  for (let at = text.indexOf(OPEN); at >= 0; at = text.indexOf(OPEN, at + OPEN.length)) count++
  return count
}

/**
 * Whether a document contains no interpolation, so that it renders to an equal document. False for
 * a document that is nested too deeply.
 */
export function isLiteral(value: unknown, depth = 0): boolean {
  if (typeof value === 'string') return !hasTemplate(value)
  if (typeof value !== 'object' || value === null) return true
  if (depth >= MAX_DEPTH) return false
  for (const name in value)
    if (!isLiteral((value as Readonly<Record<string, unknown>>)[name], depth + 1)) return false
  return true
}

function partsOf(text: string): Part[] | undefined {
  const parts: Part[] = []
  for (let at = 0; at < text.length; ) {
    const open = text.indexOf(OPEN, at)
    const literal = open < 0 ? text.slice(at) : text.slice(at, open)
    if (literal !== '') parts.push({ text: literal })
    if (open < 0) break
    const close = closingBraces(text, open + OPEN.length)
    if (close === undefined) return undefined
    parts.push({ expression: text.slice(open + OPEN.length, close), offset: open + OPEN.length })
    at = close + 2
  }
  return parts
}
const UNCLOSED = 'an interpolation that begins with ${{ is not closed by }}'

interface Rendering {
  readonly scope: Scope
  readonly native: boolean
  /** Budget for the total size of the results of interpolations. */
  readonly sizeBudget: Budget
}
function renderLeaf(text: string, { scope, native, sizeBudget }: Rendering): unknown {
  if (!hasTemplate(text)) return text
  const parts = partsOf(text) ?? fail(UNCLOSED)
  const only = parts.length === 1 ? parts[0] : undefined
  if (native && only && 'expression' in only)
    return chargeSize(run(only.expression, scope), sizeBudget)
  return parts
    .map((part) =>
      'text' in part
        ? part.text
        : (chargeSize(textOf(run(part.expression, scope), scope), sizeBudget) as string),
    )
    .join('')
}
function render(value: unknown, rendering: Rendering, depth = 0): unknown {
  if (typeof value === 'string') return renderLeaf(value, rendering)
  if (typeof value !== 'object' || value === null) return value ?? null
  if (depth >= MAX_DEPTH) fail(`the template is nested deeper than ${MAX_DEPTH} levels`)
  if (Array.isArray(value)) return value.map((item) => render(item, rendering, depth + 1))
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [name, render(item, rendering, depth + 1)]),
  )
}

/**
 * Renders a document. Each interpolation becomes text: null becomes empty text, and lists and
 * objects become compact JSON. Values that are not strings are unchanged.
 * @throws ExpressionError if an interpolation cannot be evaluated or the result is too large.
 */
export const renderText = (value: unknown, roots: Roots): unknown =>
  render(value, { scope: scopeOf(roots), native: false, sizeBudget: { left: MAX_SIZE } })

/**
 * Renders a document like `renderText`, except that a string that consists of one interpolation
 * becomes the value of the expression, with its type.
 * @throws ExpressionError if an interpolation cannot be evaluated or the result is too large.
 */
export const renderNative = (value: unknown, roots: Roots): unknown =>
  render(value, { scope: scopeOf(roots), native: true, sizeBudget: { left: MAX_SIZE } })

/**
 * Checks a reference that identifies a step by a literal name. Returns the reason why the reference
 * is not allowed; undefined if it is allowed.
 */
export type StepRule = (step: Reference) => string | undefined

/**
 * Returns the faults of an expression.
 * @param path path of the expression in the request.
 * @param offset offset of the expression in the string that contains it.
 */
export function checkExpression(
  source: string,
  roots: readonly string[],
  path: string,
  rule?: StepRule,
  offset = 0,
): FieldError[] {
  const result = analyse(source, roots)
  const place = (position: number) =>
    position + offset > 0 ? ` (at character ${position + offset + 1})` : ''
  if ('message' in result)
    return [
      {
        field: path,
        message: `${result.message}${result.position === undefined ? '' : place(result.position)}`,
        actual: source.slice(0, 200),
      },
    ]
  return result.steps.flatMap((step) => {
    const why = rule?.(step)
    return why === undefined
      ? []
      : [{ field: path, message: `${why}${place(step.position)}`, actual: source.slice(0, 200) }]
  })
}

/**
 * Returns the faults of the interpolations in a document.
 * @param roots the root names that its expressions may read.
 * @param path path of the document in the request. Each fault contains the exact path of the
 *   string.
 */
export const checkTemplate = (
  value: unknown,
  roots: readonly string[],
  path: string,
  rule?: StepRule,
): FieldError[] => (isLiteral(value) ? [] : faultsIn(value, roots, path, rule, 0))

function faultsIn(
  value: unknown,
  roots: readonly string[],
  path: string,
  rule: StepRule | undefined,
  depth: number,
): FieldError[] {
  if (typeof value === 'string') {
    if (!hasTemplate(value)) return []
    const parts = partsOf(value)
    if (!parts) return [{ field: path, message: UNCLOSED, actual: value.slice(0, 200) }]
    return parts.flatMap((part) =>
      'expression' in part ? checkExpression(part.expression, roots, path, rule, part.offset) : [],
    )
  }
  if (typeof value !== 'object' || value === null) return []
  if (depth >= MAX_DEPTH)
    return [{ field: path, message: `is nested deeper than ${MAX_DEPTH} levels` }]
  if (Array.isArray(value))
    return value.flatMap((item, i) => faultsIn(item, roots, below(path, i), rule, depth + 1))
  return Object.entries(value).flatMap(([name, item]) =>
    faultsIn(item, roots, below(path, name), rule, depth + 1),
  )
}

const lookUp = (document: unknown, path: string): unknown =>
  path.split('.').reduce<unknown>(member, document)
/**
 * Returns the value to which a path of a `match` leads in an event; null if it leads to no value.
 */
export function valueAt(document: unknown, path: string): unknown {
  const prefix = path.startsWith('event.') ? 'event' : path.startsWith('meta.') ? 'meta' : undefined
  if (prefix) return lookUp(member(document, prefix), path.slice(prefix.length + 1))
  return lookUp(member(document, 'event'), path) ?? lookUp(member(document, 'meta'), path)
}
/**
 * Whether an event satisfies the `match` of a wait. Each key is a dotted path. A path that does not
 * begin with `event.` or `meta.` is looked up in the payload and, if it has no value there, in
 * `meta`. The value must deeply equal the expected value. If the expected value is a list, the
 * value may also equal one of its elements. A missing value is null. Values that are too large to
 * compare do not match.
 */
export function matches(match: object, document: unknown): boolean {
  const scope = scopeOf({})
  try {
    return Object.entries(match).every(([path, wanted]: [string, unknown]) => {
      const actual = valueAt(document, path)
      return (
        equal(actual, wanted, scope) ||
        (Array.isArray(wanted) && wanted.some((one) => equal(actual, one, scope)))
      )
    })
  } catch (error) {
    if (error instanceof ExpressionError) return false
    throw error
  }
}
