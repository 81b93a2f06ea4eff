/**
 * Regular expressions for `matches`, in time linear in the text: a pattern becomes a small program that is run in all its
 * states at once (Ken Thompson, 1968; https://swtch.com/~rsc/regexp/regexp2.html). There is no backtracking, so no pattern
 * can make a shard wait. The syntax is the common part of RE2: literals, `.`, classes, `\d \w \s \b`, groups, `|`,
 * `* + ? {n,m}`, `^ $`, and `(?i)` in front. A pattern matches anywhere in the text unless it is anchored.
 *
 * Invariant: a program has at most MAX_PROGRAM instructions, however its counted repetitions are nested.
 */
import { fail } from './values.ts'

/** Ranges of code points, as pairs from-to. */
type Ranges = readonly number[]
export type Instruction =
  | { readonly op: 'one'; readonly ranges: Ranges; readonly negated: boolean }
  | { readonly op: 'fork'; next: number; other: number }
  | { readonly op: 'assert'; readonly what: '^' | '$' | 'b' | 'B' }
  | { readonly op: 'accept' }
export interface Pattern {
  readonly program: readonly Instruction[]
  readonly ignoreCase: boolean
}

const MAX_PATTERN = 512
const MAX_PROGRAM = 2000
const DIGIT: Ranges = [48, 57]
const SPACE: Ranges = [9, 10, 12, 13, 32, 32]
export const WORD: Ranges = [48, 57, 65, 90, 95, 95, 97, 122]
const CONTROLS: Readonly<Record<string, number>> = { n: 10, r: 13, t: 9, f: 12, v: 11, a: 7 }
const complement = (ranges: Ranges): number[] => {
  const result: number[] = []
  let from = 0
  for (let i = 0; i < ranges.length; i += 2) {
    if ((ranges[i] ?? 0) > from) result.push(from, (ranges[i] ?? 0) - 1)
    from = (ranges[i + 1] ?? 0) + 1
  }
  return [...result, from, 0x10ffff]
}

/** Appends the instructions of a part of the pattern to the program; runs on to the next instruction when it matched. */
type Emit = (out: Output) => void
interface Output {
  readonly program: Instruction[]
  /** Bounds the work of nested repetitions, empty ones included. */
  work: number
}
const push = <I extends Instruction>(out: Output, instruction: I): I => {
  if (++out.work > MAX_PROGRAM) fail('the pattern is too large')
  out.program.push(instruction)
  return instruction
}
const one =
  (ranges: Ranges, negated = false): Emit =>
  (out) =>
    void push(out, { op: 'one', ranges, negated })
type Fork = Instruction & { op: 'fork' }
const fork = (out: Output): Fork =>
  push<Fork>(out, { op: 'fork', next: out.program.length + 1, other: out.program.length + 1 })
/** A fork whose two ways are one; its target is given once it is known. */
const jump = (out: Output) => {
  const choice = fork(out)
  return (target: number) => void (choice.next = choice.other = target)
}
const sequence =
  (parts: readonly Emit[]): Emit =>
  (out) =>
    parts.forEach((part) => {
      part(out)
    })
const either =
  (a: Emit, b: Emit): Emit =>
  (out) => {
    const choice = fork(out)
    a(out)
    const done = jump(out)
    choice.other = out.program.length
    b(out)
    done(out.program.length)
  }
const repeat =
  (part: Emit, min: number, max: number): Emit =>
  (out) => {
    const copy = () => {
      if (++out.work > MAX_PROGRAM) fail('the pattern is too large')
      part(out)
    }
    for (let i = 0; i < min; i++) copy()
    if (max === Infinity) {
      const choice = fork(out)
      const start = out.program.length - 1
      copy()
      jump(out)(start)
      choice.other = out.program.length
      return
    }
    const exits: Fork[] = []
    for (let i = min; i < max; i++) {
      exits.push(fork(out))
      copy()
    }
    for (const exit of exits) exit.other = out.program.length
  }

/** Compile a pattern. @throws ExpressionError when it is malformed, too long, too large, or needs backtracking. */
export function compilePattern(source: string): Pattern {
  if (source.length > MAX_PATTERN) fail(`the pattern is longer than ${MAX_PATTERN} characters`)
  const ignoreCase = source.startsWith('(?i)')
  const chars = [...(ignoreCase ? source.slice(4) : source)]
  let at = 0
  const take = (text: string) => chars[at] === text && ++at > 0
  const bad = (why: string): never =>
    fail(`the pattern ${JSON.stringify(source)} is not valid: ${why}`)

  const escaped = (): { ranges: Ranges } => {
    const char = chars[at++] ?? bad('it ends with a backslash')
    const lower = char.toLowerCase()
    const named = lower === 'd' ? DIGIT : lower === 'w' ? WORD : lower === 's' ? SPACE : undefined
    if (named) return { ranges: char === lower ? named : complement(named) }
    if (char === 'x' || char === 'u') {
      const digits = chars.slice(at, (at += char === 'x' ? 2 : 4)).join('')
      if (!/^([0-9a-f]{2}|[0-9a-f]{4})$/i.test(digits))
        bad(`\\${char} needs ${char === 'x' ? 2 : 4} hexadecimal digits`)
      const code = Number.parseInt(digits, 16)
      return { ranges: [code, code] }
    }
    const control = CONTROLS[char]
    if (control === undefined && /[A-Za-z0-9]/.test(char)) bad(`\\${char} is not supported`)
    const code = control ?? char.codePointAt(0) ?? 0
    return { ranges: [code, code] }
  }
  const classed = (): Emit => {
    const negated = take('^')
    const ranges: number[] = []
    for (let first = true; first || chars[at] !== ']'; first = false) {
      const item = (): Ranges => {
        const char = chars[at++] ?? bad('a class is not closed')
        const code = char.codePointAt(0) ?? 0
        return char === '\\' ? escaped().ranges : [code, code]
      }
      if (chars[at] === '[' && chars[at + 1] === ':') bad('named classes are not supported')
      const from = item()
      if (chars[at] === '-' && chars[at + 1] !== undefined && chars[at + 1] !== ']') {
        at++
        const to = item()
        if (
          from.length !== 2 ||
          from[0] !== from[1] ||
          to.length !== 2 ||
          to[0] !== to[1] ||
          (from[0] ?? 0) > (to[0] ?? 0)
        )
          bad('a range of a class is out of order')
        ranges.push(from[0] ?? 0, to[0] ?? 0)
      } else ranges.push(...from)
    }
    at++
    return one(ranges, negated)
  }
  const atom = (depth: number): Emit => {
    const char = chars[at++] ?? bad('something is missing')
    if (char === '(') {
      if (take('?') && !take(':')) bad('of the (? groups only (?: is supported')
      const inner = alternatives(depth + 1)
      return take(')') ? inner : bad('a group is not closed')
    }
    if (char === '[') return classed()
    if (char === '.') return one([10, 10], true)
    if (char === '^' || char === '$') return (out) => void push(out, { op: 'assert', what: char })
    if ('*+?'.includes(char)) return bad(`nothing comes before ${char}`)
    if (char !== '\\') return one([char.codePointAt(0) ?? 0, char.codePointAt(0) ?? 0])
    const boundary = chars[at]
    if (boundary === 'b' || boundary === 'B') {
      at++
      return (out) => void push(out, { op: 'assert', what: boundary })
    }
    return one(escaped().ranges)
  }
  const counted = (): readonly [number, number] | undefined => {
    const found = /^\{(\d{1,4})(,(\d{0,4}))?\}/.exec(chars.slice(at, at + 12).join(''))
    if (!found) return undefined
    at += found[0].length
    const min = Number(found[1])
    const max = found[2] === undefined ? min : found[3] === '' ? Infinity : Number(found[3])
    return max < min ? bad('a repetition is out of order') : [min, max]
  }
  const repeated = (depth: number): Emit => {
    const part = atom(depth)
    const bounds = take('*')
      ? ([0, Infinity] as const)
      : take('+')
        ? ([1, Infinity] as const)
        : take('?')
          ? ([0, 1] as const)
          : counted()
    if (!bounds) return part
    take('?')
    if (chars[at] === '*' || chars[at] === '+' || chars[at] === '?') bad('a repetition is repeated')
    return repeat(part, bounds[0], bounds[1])
  }
  const alternatives = (depth: number): Emit => {
    if (depth > 50) bad('its groups are nested too deeply')
    const ways: Emit[] = []
    do {
      const parts: Emit[] = []
      while (at < chars.length && chars[at] !== '|' && chars[at] !== ')')
        parts.push(repeated(depth))
      ways.push(sequence(parts))
    } while (take('|'))
    return ways.reduceRight((rest, way) => either(way, rest))
  }
  const whole = alternatives(0)
  if (at < chars.length) bad('a parenthesis is not opened')
  const out: Output = { program: [], work: 0 }
  whole(out)
  push(out, { op: 'accept' })
  return { program: out.program, ignoreCase }
}
