/**
 * Compiles regular expressions that users supply. A pattern becomes a small program. All of its
 * states are followed at once, in time linear in the length of the text (Ken Thompson, 1968;
 * https://swtch.com/~rsc/regexp/regexp2.html). There is no backtracking, so no pattern can block a
 * shard. The syntax is common to RE2 and ECMAScript: literals, `.`, classes, `\d \w \s \b`,
 * `\p{…}`, groups, `|`, `* + ? {n,m}`, `^ $`; in addition, a leading `(?i)` is allowed. A pattern
 * matches anywhere in the text unless it is anchored. Where RE2 and ECMAScript differ, the dialect
 * decides: `matches` follows RE2, and JSON Schema follows ECMAScript.
 *
 * Invariant: a program has at most MAX_PROGRAM instructions, even if counted repetitions are
 * nested.
 */
import { fail } from '../expressions/values.ts'

/**
 * A list of ranges of code points. Each range is represented by two consecutive elements, its first
 * and its last code point.
 */
type Ranges = readonly number[]
/**
 * A Unicode property. `test` matches a string of one code point. It is a JavaScript pattern, which
 * is safe because the name of the property was validated.
 */
interface Property {
  readonly test: RegExp
  readonly negated: boolean
}
/** A set of code points. The ranges are sorted and do not overlap. */
interface CodePoints {
  readonly ranges: Ranges
  readonly properties: readonly Property[]
}
export type Instruction =
  | ({ readonly op: 'one'; readonly negated: boolean } & CodePoints)
  | { readonly op: 'fork'; next: number; other: number }
  | { readonly op: 'assert'; readonly what: '^' | '$' | 'b' | 'B' }
  | { readonly op: 'accept' }
export interface Pattern {
  readonly program: readonly Instruction[]
  readonly ignoreCase: boolean
}

/** A dialect of regular expressions: the points in which RE2 and ECMAScript differ. */
export interface Dialect {
  /** Maximum length of a pattern, in UTF-16 units. */
  readonly longest: number
  /** Code points that `.` does not match. */
  readonly lineEnds: Ranges
  /** Code points of `\s`. */
  readonly space: Ranges
  /** Whether a `]` at the start of a class is a literal. */
  readonly bracketFirst: boolean
}
/** The dialect of `matches` in expressions. */
const RE2: Dialect = {
  longest: 512,
  lineEnds: [10, 10],
  space: [9, 10, 12, 13, 32, 32],
  bracketFirst: true,
}
/** The dialect of JSON Schema: ECMA-262 with the `u` flag. */
export const ECMASCRIPT: Dialect = {
  longest: 1024,
  lineEnds: [10, 10, 13, 13, 0x2028, 0x2029],
  space: [
    9, 13, 32, 32, 0xa0, 0xa0, 0x1680, 0x1680, 0x2000, 0x200a, 0x2028, 0x2029, 0x202f, 0x202f,
    0x205f, 0x205f, 0x3000, 0x3000, 0xfeff, 0xfeff,
  ],
  bracketFirst: false,
}

/** Maximum number of instructions of a program. */
export const MAX_PROGRAM = 2000
/** Maximum nesting of groups in levels. */
const MAX_NESTING = 50
/** Code points of `\d`, as the first and the last code point of each range. */
const DIGIT: Ranges = [48, 57]
/** Code points of `\w`, as the first and the last code point of each range. */
export const WORD: Ranges = [48, 57, 65, 90, 95, 95, 97, 122]
/** Code points of the control escapes, such as `\n`, by letter. */
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

/** Returns the only code point of a set, or undefined if there are several or none. */
const singleOf = ({ ranges, properties }: CodePoints): number | undefined =>
  ranges.length === 2 && ranges[0] === ranges[1] && properties.length === 0 ? ranges[0] : undefined

/**
 * Appends the instructions for a part of the pattern to the program. When the part has matched,
 * execution continues with the next instruction.
 */
type Emit = (out: Output) => void
interface Output {
  readonly program: Instruction[]
  /**
   * Number of instructions and repetitions so far. Limiting this number also limits the work of
   * nested repetitions, including empty ones.
   */
  work: number
}
const push = <I extends Instruction>(out: Output, instruction: I): I => {
  if (++out.work > MAX_PROGRAM) fail('the pattern is too large')
  out.program.push(instruction)
  return instruction
}
const codePoints = (...ranges: number[]): CodePoints => ({ ranges, properties: [] })
const one =
  ({ ranges, properties }: CodePoints, negated = false): Emit =>
  (out) =>
    void push(out, { op: 'one', ranges, properties, negated })
/** Sorts and merges ranges, so that a code point is found by binary search. */
function merged(ranges: Ranges): Ranges {
  const pairs: [number, number][] = []
  for (let i = 0; i < ranges.length; i += 2) pairs.push([ranges[i] ?? 0, ranges[i + 1] ?? 0])
  pairs.sort(([a], [b]) => a - b)
  const result: number[] = []
  for (const [from, to] of pairs) {
    const end = result.length - 1
    if (end > 0 && from <= (result[end] ?? 0) + 1) result[end] = Math.max(result[end] ?? 0, to)
    else result.push(from, to)
  }
  return result
}
/**
 * Returns the property with a name such as `L` or `Script=Greek`; undefined for an unknown name.
 */
function propertyOf(name: string, negated: boolean): Property | undefined {
  if (!/^[A-Za-z_]{1,40}(=[A-Za-z_]{1,40})?$/.test(name)) return undefined
  try {
    return { test: new RegExp(`^\\p{${name}}$`, 'u'), negated }
  } catch {
    return undefined
  }
}
type Fork = Instruction & { op: 'fork' }
const fork = (out: Output): Fork =>
  push<Fork>(out, { op: 'fork', next: out.program.length + 1, other: out.program.length + 1 })
/**
 * Appends an unconditional jump: a fork with two equal branches. The returned function sets the
 * target once it is known.
 */
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

/**
 * Compiles a pattern.
 * @throws ExpressionError if the pattern is malformed, too long or too large, or has a construct
 *   that requires backtracking. The message is for the author of the pattern.
 */
export function compilePattern(source: string, dialect: Dialect = RE2): Pattern {
  if (source.length > dialect.longest)
    fail(`the pattern is longer than ${dialect.longest} characters`)
  const ignoreCase = source.startsWith('(?i)')
  const chars = [...(ignoreCase ? source.slice(4) : source)]
  let at = 0
  const take = (text: string) => chars[at] === text && ++at > 0
  const bad = (why: string): never =>
    fail(`the pattern ${JSON.stringify(source)} is not valid: ${why}`)

  /** Reads the text in braces at the current position. */
  const braced = (what: string): string => {
    const end = chars.indexOf('}', at)
    if (!take('{') || end < 0) bad(`${what} needs a name or number in braces`)
    const text = chars.slice(at, end).join('')
    at = end + 1
    return text
  }
  const hexadecimal = (char: string): number => {
    const inBraces = char === 'u' && chars[at] === '{'
    const least = inBraces ? 1 : char === 'x' ? 2 : 4
    const digits = inBraces ? braced('\\u') : chars.slice(at, (at += least)).join('')
    const code = Number.parseInt(digits, 16)
    if (!/^[0-9a-f]+$/i.test(digits) || digits.length < least || code > 0x10ffff)
      bad(`\\${char} needs ${char === 'x' ? 2 : 4} hexadecimal digits`)
    return code
  }
  /**
   * Reads the digits of an escaped code point, which may be a surrogate pair such as
   * `\ud83d\ude00`.
   */
  const unit = (char: string): number => {
    const high = hexadecimal(char)
    const pair = high >= 0xd800 && high < 0xdc00 && chars[at] === '\\' && chars[at + 1] === 'u'
    const low = pair ? Number.parseInt(chars.slice(at + 2, at + 6).join(''), 16) : 0
    if (low < 0xdc00 || low > 0xdfff) return high
    at += 6
    return 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00)
  }
  const escaped = (): CodePoints => {
    const char = chars[at++] ?? bad('it ends with a backslash')
    const lower = char.toLowerCase()
    const named =
      lower === 'd' ? DIGIT : lower === 'w' ? WORD : lower === 's' ? dialect.space : undefined
    if (named) return codePoints(...(char === lower ? named : complement(named)))
    if (lower === 'p') {
      const name = braced(`\\${char}`)
      const property = propertyOf(name, char === 'P') ?? bad(`there is no Unicode property ${name}`)
      return { ranges: [], properties: [property] }
    }
    if (char === 'x' || char === 'u') {
      const code = unit(char)
      return codePoints(code, code)
    }
    const control = CONTROLS[char]
    if (control === undefined && /[1-9k]/.test(char)) bad('back references are not supported')
    if (control === undefined && /[A-Za-z0-9]/.test(char)) bad(`\\${char} is not supported`)
    const code = control ?? char.codePointAt(0) ?? 0
    return codePoints(code, code)
  }
  const classed = (): Emit => {
    const negated = take('^')
    const ranges: number[] = []
    const properties: Property[] = []
    const item = (): CodePoints => {
      const char = chars[at++] ?? bad('a class is not closed')
      const code = char.codePointAt(0) ?? 0
      return char === '\\' ? escaped() : codePoints(code, code)
    }
    for (let first = dialect.bracketFirst; first || chars[at] !== ']'; first = false) {
      if (chars[at] === '[' && chars[at + 1] === ':') bad('named classes are not supported')
      const from = item()
      properties.push(...from.properties)
      if (chars[at] !== '-' || chars[at + 1] === undefined || chars[at + 1] === ']') {
        ranges.push(...from.ranges)
        continue
      }
      at++
      const [begin, last] = [singleOf(from), singleOf(item())]
      if (begin === undefined || last === undefined || begin > last)
        bad('a range of a class is out of order')
      ranges.push(begin ?? 0, last ?? 0)
    }
    at++
    return one({ ranges: merged(ranges), properties }, negated)
  }
  const group = (depth: number): Emit => {
    if (take('?') && !take(':')) {
      const name = /^<([A-Za-z_$][\w$]*)>/.exec(chars.slice(at, at + 64).join(''))
      if (/^<?[=!]/.test(chars.slice(at, at + 2).join(''))) bad('look-around is not supported')
      if (!name) bad('of the (? groups only (?: and (?<name> are supported')
      at += name?.[0].length ?? 0
    }
    const inner = alternatives(depth + 1)
    return take(')') ? inner : bad('a group is not closed')
  }
  const atom = (depth: number): Emit => {
    const char = chars[at++] ?? bad('something is missing')
    if (char === '(') return group(depth)
    if (char === '[') return classed()
    if (char === '.') return one(codePoints(...dialect.lineEnds), true)
    if (char === '^' || char === '$') return (out) => void push(out, { op: 'assert', what: char })
    if ('*+?'.includes(char)) return bad(`nothing comes before ${char}`)
    if (char !== '\\') return one(codePoints(char.codePointAt(0) ?? 0, char.codePointAt(0) ?? 0))
    const boundary = chars[at]
    if (boundary === 'b' || boundary === 'B') {
      at++
      return (out) => void push(out, { op: 'assert', what: boundary })
    }
    return one(escaped())
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
    if (depth > MAX_NESTING) bad('its groups are nested too deeply')
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
