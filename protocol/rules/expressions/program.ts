/**
 * Compiles the text of an expression to a program. Word operators are rewritten, the CEL library
 * parses the text, and its syntax tree becomes nested functions. The library provides only the
 * grammar. Values follow `values.ts`: expressions have JSON numbers and null for unknown fields,
 * where CEL has 64-bit integers and errors.
 *
 * Invariants:
 * P1. There are no loops, macros or definitions, so the work of a program is bounded by its size
 *     and its budget.
 * P2. A program depends only on its source. At most `REMEMBERED` programs and faults are cached.
 */
import { type ASTNode, Environment, ParseError } from '@marcbachmann/cel-js'
import { compilePattern } from '../regex/pattern.ts'
import { type Guard, guardOf } from './guard.ts'
import {
  add,
  arithmetic,
  functions,
  isIn,
  matchesPattern,
  negate,
  truthValue,
} from './operations.ts'
import { type Budget, ExpressionError, equal, fail, member, order } from './values.ts'
import { LOOP, type Rewritten, rewriteWords } from './words.ts'

export interface Scope extends Budget {
  readonly roots: Readonly<Record<string, unknown>>
}
type Code = (scope: Scope) => unknown

/** A name that a program reads, and its position in the source. */
export interface Reference {
  readonly name: string
  readonly position: number
}
export interface Program {
  readonly run: Code
  /** The root names that the program reads, each with the position of its first use. */
  readonly roots: readonly Reference[]
  /** Steps that are read by a literal name or index: `steps.x`, `steps["x"]`, `steps[0]`. */
  readonly steps: readonly Reference[]
  readonly guard?: Guard | undefined
}
export interface ProgramFault {
  readonly message: string
  /** Offset in the source, if the error has a single position. */
  readonly position?: number
}

/** Maximum length of an expression, in UTF-16 units. */
const MAX_SOURCE_LENGTH = 4096
/** Maximum number of cached programs and faults. */
const REMEMBERED = 1024
/** Roots that evaluate to null when the scope has no value for them. */
const WELL_KNOWN: ReadonlySet<string> = new Set([
  'input',
  'event',
  'config',
  'meta',
  'run',
  'steps',
])
const cel = new Environment({
  unlistedVariablesAreDyn: true,
  homogeneousAggregateLiterals: false,
  limits: { maxAstNodes: 512, maxDepth: 48, maxCallArguments: 8 },
})

class Refused extends Error {
  readonly at: number
  constructor(message: string, at: number) {
    super(message)
    this.at = at
  }
}
const orders: Readonly<Record<'<' | '<=' | '>' | '>=', (comparison: number) => boolean>> = {
  '<': (c) => c < 0,
  '<=': (c) => c <= 0,
  '>': (c) => c > 0,
  '>=': (c) => c >= 0,
}

function build(source: Rewritten, root: ASTNode) {
  const roots = new Map<string, Reference>()
  const steps: Reference[] = []
  const refused = (message: string, node: ASTNode): never => {
    throw new Refused(message, node.start)
  }

  const literal = (node: ASTNode & { op: 'value' }): Code => {
    const value = node.args
    if (typeof value === 'bigint') {
      const number = Number(value)
      return Number.isSafeInteger(number)
        ? () => number
        : refused('the integer is too large for an exact JSON number', node)
    }
    if (typeof value === 'object' && value !== null)
      return refused('bytes are not JSON values', node)
    return () => value
  }
  const call = (name: string, operands: readonly ASTNode[], node: ASTNode): Code => {
    const known = Object.hasOwn(functions, name) ? functions[name] : undefined
    if (!known)
      return refused(
        `there is no function ${name}; there are ${Object.keys(functions).join(', ')}`,
        node,
      )
    if (operands.length !== known.operands)
      return refused(
        `${name} takes ${known.operands === 1 ? 'one operand' : 'two operands'}, not ${operands.length}`,
        node,
      )
    const [first, second] = operands as [ASTNode, ASTNode?]
    const a = compile(first)
    const b: Code = second ? compile(second) : () => null
    if (name === 'matches' && second?.op === 'value' && typeof second.args === 'string') {
      const text = second.args
      try {
        const pattern = compilePattern(text)
        return (scope) => matchesPattern(a(scope), text, scope, pattern)
      } catch (error) {
        if (error instanceof ExpressionError) return refused(error.message, second)
        throw error
      }
    }
    return (scope) => known.run(a(scope), b(scope), scope)
  }
  const relation = (left: ASTNode, right: ASTNode, node: ASTNode): Code => {
    let at = left.end
    while (at < right.start && !source.relations.has(at)) at++
    const { word, negated } = source.relations.get(at) ?? { word: 'in', negated: false }
    const holds =
      word === 'in' ? inside(compile(left), compile(right)) : call(word, [left, right], node)
    return negated ? (scope) => !holds(scope) : holds
  }
  const access = (of: ASTNode, key: unknown, node: ASTNode): Code => {
    if (
      of.op === 'id' &&
      of.args === 'steps' &&
      (typeof key === 'string' || typeof key === 'bigint')
    )
      steps.push({ name: String(key), position: source.origin(node.start) })
    const value = compile(of)
    if (typeof key === 'string') return (scope) => member(value(scope), key)
    const index = compile((node.args as [ASTNode, ASTNode])[1])
    return (scope) => member(value(scope), index(scope))
  }
  const compile = (node: ASTNode): Code => {
    switch (node.op) {
      case 'value':
        return literal(node)
      case 'id': {
        const name = node.args === LOOP ? 'loop' : node.args
        if (!roots.has(name)) roots.set(name, { name, position: source.origin(node.start) })
        return ({ roots: given }) =>
          Object.hasOwn(given, name)
            ? (given[name] ?? null)
            : WELL_KNOWN.has(name)
              ? null
              : fail(`there is no ${name} here`)
      }
      case '.':
        return access(node.args[0], node.args[1], node)
      case '[]':
        return access(
          node.args[0],
          node.args[1].op === 'value' ? node.args[1].args : undefined,
          node,
        )
      case 'call':
        return call(node.args[0], node.args[1], node)
      case 'rcall':
        return call(node.args[0], [node.args[1], ...node.args[2]], node)
      case 'list': {
        const items = node.args.map(compile)
        return (scope) => items.map((item) => item(scope))
      }
      case 'map': {
        const entries = node.args.map(([key, value]): [Code, Code] => [
          key.op === 'id' ? () => key.args : compile(key),
          compile(value),
        ])
        return (scope) =>
          Object.fromEntries(
            entries.map(([key, value]) => {
              const name = key(scope)
              return [
                typeof name === 'string' || typeof name === 'number'
                  ? String(name)
                  : fail('the names of an object must be texts'),
                value(scope),
              ]
            }),
          )
      }
      case '?:': {
        const [condition, yes, no] = node.args.map(compile) as [Code, Code, Code]
        return (scope) => (truthValue(condition(scope)) ? yes(scope) : no(scope))
      }
      case '!_': {
        const value = compile(node.args)
        return (scope) => !truthValue(value(scope))
      }
      case '-_': {
        const value = compile(node.args)
        return (scope) => negate(value(scope))
      }
      case 'in':
        return relation(node.args[0], node.args[1], node)
      case '&&':
      case '||':
      case '==':
      case '!=':
      case '<':
      case '<=':
      case '>':
      case '>=':
      case '+':
      case '-':
      case '*':
      case '/':
      case '%':
        return binary(node.op, compile(node.args[0]), compile(node.args[1]))
      default:
        return refused('this is not supported', node)
    }
  }
  return { run: compile(root), roots: () => [...roots.values()], steps }
}

const inside =
  (item: Code, container: Code): Code =>
  (scope) =>
    isIn(item(scope), container(scope), scope)

function binary(
  op: '&&' | '||' | '==' | '!=' | '<' | '<=' | '>' | '>=' | '+' | '-' | '*' | '/' | '%',
  a: Code,
  b: Code,
): Code {
  switch (op) {
    case '&&':
      return (scope) => truthValue(a(scope)) && truthValue(b(scope))
    case '||':
      return (scope) => truthValue(a(scope)) || truthValue(b(scope))
    case '==':
      return (scope) => equal(a(scope), b(scope), scope)
    case '!=':
      return (scope) => !equal(a(scope), b(scope), scope)
    case '+':
      return (scope) => add(a(scope), b(scope), scope)
    case '-':
    case '*':
    case '/':
    case '%':
      return (scope) => arithmetic(op, a(scope), b(scope))
    default: {
      const holds = orders[op]
      return (scope) => {
        const comparison = order(a(scope), b(scope))
        return comparison !== undefined && holds(comparison)
      }
    }
  }
}

function parse(text: string): Program | ProgramFault {
  if (text.trim() === '') return { message: 'the expression is empty' }
  const source = rewriteWords(text)
  try {
    const { ast } = cel.parse(source.text)
    const built = build(source, ast)
    return { run: built.run, roots: built.roots(), steps: built.steps, guard: guardOf(ast) }
  } catch (error) {
    if (error instanceof Refused)
      return { message: error.message, position: source.origin(error.at) }
    if (error instanceof ParseError)
      return {
        message: error.summary,
        ...(error.range && { position: source.origin(error.range.start) }),
      }
    throw error
  }
}

const remembered = new Map<string, Program | ProgramFault>()
/** Returns the program of an expression without `${{ }}`, or its error. */
export function programOf(text: string): Program | ProgramFault {
  if (text.length > MAX_SOURCE_LENGTH)
    return { message: `the expression is longer than ${MAX_SOURCE_LENGTH} characters` }
  const known = remembered.get(text)
  const program = known ?? parse(text)
  if (known) remembered.delete(text)
  else if (remembered.size >= REMEMBERED) remembered.delete(remembered.keys().next().value ?? '')
  remembered.set(text, program)
  return program
}

/** Whether parsing returned a program. */
export const isProgram = (parsed: Program | ProgramFault): parsed is Program => 'run' in parsed
