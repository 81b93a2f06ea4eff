/**
 * Checks of JSON values against JSON Schemas that users supply: outputs of turns, arguments of
 * tools, and inputs and outputs of actions. The schema is interpreted, never compiled to code, so
 * it may run inside a shard. The language is draft 2020-12, with the forms of draft 7 (`items` as a
 * list, `additionalItems`, `dependencies`, `definitions`) and of OpenAPI 3.0 (`nullable`,
 * `exclusiveMinimum: true`). `$dynamicRef` and `$recursiveRef` are resolved like `$ref`.
 *
 * Invariants:
 * J1. Every step is charged to a budget and nesting is limited, so the work of a check is bounded
 *     for any schema and value. No check ends with an exception of the JavaScript engine, such as a
 *     stack overflow.
 * J2. Patterns and formats are tested in time linear in the length of the text.
 * J3. A schema that was stored before a rule existed is still applied. A part that cannot be
 *     applied is reported with its path.
 */
import type { FieldError } from '../../errors.ts'
import { type Budget, ExpressionError, fail as giveUp, spend } from '../expressions/values.ts'
import { isJsonObject } from '../json-object.ts'
import { test } from '../regex/automaton.ts'
import { compilePattern, ECMASCRIPT, type Pattern } from '../regex/pattern.ts'
import { below } from '../workflow-check/path.ts'
import { type Check, type Evaluated, REQUIRED } from './check.ts'
import { keywords, lastKeywords } from './keywords.ts'
import { resolveReference } from './reference.ts'

/** Default maximum number of steps of one check. A step takes about ten nanoseconds. */
const MAX_STEPS = 2_000_000
/** Maximum depth of one check. Nested schemas, references and nested values all count toward it. */
const MAX_DEPTH = 400
/** Maximum number of reported faults. */
const MAX_FAULTS = 20

/**
 * A keyword that cannot be applied, with its path in the schema, such as `properties.id.pattern`.
 */
export interface SchemaFault {
  readonly place: string
  readonly message: string
}
/**
 * The outcome of a check: the faults of the value (none if it fits), or the fault of a schema that
 * cannot be applied.
 */
export type Checked =
  | { readonly faults: readonly FieldError[] }
  | { readonly unusable: SchemaFault }

/** A position in the value, linked to its parent. The text of a path is built only for errors. */
interface Position {
  readonly above: Position | undefined
  readonly key: string | number
}
/** Signals to `checkValue` that a schema cannot be applied. */
class CannotApply extends Error {
  readonly schema: object
  readonly keyword: string
  constructor(schema: object, keyword: string, message: string) {
    super(message)
    this.schema = schema
    this.keyword = keyword
  }
}

class Checking {
  readonly budget: Budget
  readonly #document: unknown
  readonly #path: string
  readonly #patterns = new Map<string, Pattern>()

  constructor(document: unknown, path: string, steps: number) {
    this.#document = document
    this.#path = path
    this.budget = { left: steps }
  }

  /**
   * Whether a value fits a schema.
   * @param faults receives the faults of the value; undefined when the caller needs no faults.
   */
  check(
    schema: unknown,
    value: unknown,
    position: Position | undefined,
    depth: number,
    faults: FieldError[] | undefined,
    evaluated: Evaluated,
  ): boolean {
    const fail = (
      message: string,
      more?: Omit<FieldError, 'field' | 'message'>,
      key?: string | number,
    ): false => {
      if (faults && faults.length < MAX_FAULTS)
        faults.push({
          field: this.#pathOf(key === undefined ? position : { above: position, key }),
          message,
          ...more,
        })
      return false
    }
    spend(this.budget, 4)
    if (schema === false) return fail('is not allowed')
    if (!isJsonObject(schema)) return true
    if (depth > MAX_DEPTH) giveUp(TOO_DEEP)
    if (value === null && schema['nullable'] === true) return true
    const check: Check = {
      schema,
      value,
      budget: this.budget,
      evaluated,
      fail,
      same: (other, quiet) => {
        const seen: Evaluated = new Set()
        const fits = this.check(other, value, position, depth + 1, quiet ? undefined : faults, seen)
        if (fits) this.#keep(evaluated, seen)
        return fits
      },
      inner: (other, key, item, quiet) =>
        this.check(
          other,
          item,
          { above: position, key },
          depth + 1,
          quiet ? undefined : faults,
          new Set(),
        ),
      fitting: (schemas, message) =>
        this.#fitting(schemas, check, position, depth, faults, message),
      resolve: (reference) => {
        spend(this.budget, reference.length)
        const found = resolveReference(this.#document, reference, this.budget)
        if (found === undefined)
          throw new CannotApply(schema, '$ref', `${reference} names no schema of this document`)
        return found
      },
      matches: (pattern, text) => test(this.#patternOf(schema, pattern), text, this.budget),
    }
    return this.#apply(check, faults !== undefined)
  }

  /**
   * Whether the value fits all keywords of a schema. The type is checked first: if it is wrong, the
   * other keywords are not checked.
   */
  #apply(check: Check, thorough: boolean): boolean {
    const { schema } = check
    if (keywords['type']?.(check, schema['type']) === false) return false
    let fits = true
    const names = Object.keys(schema)
    spend(this.budget, names.length)
    for (const name of names) {
      if (name === 'type' || !Object.hasOwn(keywords, name)) continue
      fits = (keywords[name]?.(check, schema[name]) ?? true) && fits
      if (!fits && !thorough) return false
    }
    for (const name of lastKeywords.names)
      if (Object.hasOwn(schema, name))
        fits = (lastKeywords.table[name]?.(check, schema[name]) ?? true) && fits
    return fits
  }

  #fitting(
    schemas: readonly unknown[],
    { value, evaluated, fail }: Check,
    position: Position | undefined,
    depth: number,
    faults: FieldError[] | undefined,
    message: string,
  ): number {
    let count = 0
    let best: readonly FieldError[] | undefined
    for (const schema of schemas) {
      const found: FieldError[] | undefined = faults && count === 0 ? [] : undefined
      const seen: Evaluated = new Set()
      if (this.check(schema, value, position, depth + 1, found, seen)) {
        count++
        this.#keep(evaluated, seen)
      } else if (found && isCloser(found, best, this.#pathOf(position))) best = found
    }
    if (count === 0 && best) for (const fault of best) this.#push(faults, fault)
    else if (count === 0) fail(message)
    return count
  }
  #push(faults: FieldError[] | undefined, fault: FieldError): void {
    if (faults && faults.length < MAX_FAULTS) faults.push(fault)
  }
  #keep(evaluated: Evaluated, seen: Evaluated): void {
    spend(this.budget, seen.size)
    for (const key of seen) evaluated.add(key)
  }

  #patternOf(schema: object, source: string): Pattern {
    const known = this.#patterns.get(source)
    if (known) return known
    spend(this.budget, 50 * source.length)
    try {
      const pattern = compilePattern(source, ECMASCRIPT)
      spend(this.budget, pattern.program.length)
      this.#patterns.set(source, pattern)
      return pattern
    } catch (error) {
      if (!(error instanceof ExpressionError)) throw error
      throw new CannotApply(
        schema,
        'pattern' in schema && schema.pattern === source ? 'pattern' : 'patternProperties',
        error.message,
      )
    }
  }
  #pathOf(position: Position | undefined): string {
    const keys: (string | number)[] = []
    for (let at = position; at; at = at.above) keys.push(at.key)
    return keys.reduceRight<string>(below, this.#path)
  }
}
const TOO_DEEP = `needs more than ${MAX_DEPTH} nested checks`

/**
 * Whether the errors of a schema explain a mismatch better than the best errors so far. This is the
 * case if there are fewer of them, and if at least one concerns a part of the value and does not
 * report a missing property.
 */
function isCloser(
  found: readonly FieldError[],
  best: readonly FieldError[] | undefined,
  path: string,
): boolean {
  const isInside = found.some(({ field, message }) => field !== path && message !== REQUIRED)
  return isInside && (best === undefined || found.length < best.length)
}
/**
 * Checks a value against a schema.
 * @param path path of the value in the request, such as `input`. The fields of faults begin with
 *   this path.
 * @param steps maximum number of steps of the check.
 */
export function checkValue(
  schema: unknown,
  value: unknown,
  path: string,
  steps = MAX_STEPS,
): Checked {
  const faults: FieldError[] = []
  try {
    const checking = new Checking(schema, path, steps)
    checking.check(schema, value, undefined, 0, faults, new Set())
    return { faults }
  } catch (error) {
    if (error instanceof CannotApply)
      return {
        unusable: {
          place: below(placeOf(schema, error.schema) ?? '', error.keyword),
          message: error.message,
        },
      }
    if (!(error instanceof ExpressionError)) throw error
    const why = error.message === TOO_DEEP ? TOO_DEEP : `needs more than ${steps} steps`
    return { faults: [{ field: path, message: `cannot be checked against its schema: ${why}` }] }
  }
}

/**
 * Returns the path of an object in a document, or undefined if the object is not part of the
 * document. Avoids recursion, because deep documents would overflow the stack.
 */
function placeOf(document: unknown, wanted: object): string | undefined {
  const todo: [value: unknown, path: string][] = [[document, '']]
  for (let next = todo.pop(); next; next = todo.pop()) {
    const [value, path] = next
    if (value === wanted) return path
    if (typeof value !== 'object' || value === null) continue
    for (const [key, item] of Array.isArray(value) ? value.entries() : Object.entries(value))
      todo.push([item, below(path, key)])
  }
  return undefined
}

/**
 * Returns the faults of a value, for callers that treat all faults alike. A schema that cannot be
 * applied counts as one fault of the value.
 * @param name name of the schema in messages, such as `the input_schema of crm.sync`.
 */
export function valueFaults(
  schema: unknown,
  value: unknown,
  path: string,
  name = 'its schema',
): readonly FieldError[] {
  const checked = checkValue(schema, value, path)
  return 'faults' in checked
    ? checked.faults
    : [{ field: path, message: unusableMessage(checked.unusable, name) }]
}
/** Returns the message for a schema that cannot be applied. */
export const unusableMessage = ({ place, message }: SchemaFault, name: string): string =>
  `cannot be checked: ${name} cannot be applied at ${place}: ${message}`
