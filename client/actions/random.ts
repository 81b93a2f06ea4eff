/** The stock action `random`. With a seed, equal parameters yield equal values on every machine. */
import { createHash, randomBytes } from 'node:crypto'
import type { Parameters } from '../worker/options.ts'

interface Source {
  bytes(count: number): Uint8Array
}
/** Maximum number of values per call, and maximum number of characters of one string. */
const most = { count: 10_000, length: 100_000 } as const
/** Number of characters of a string without the parameter `length`. */
const DEFAULT_LENGTH = 16

/** Creates a deterministic source of bytes: SHA-256 of a counter and the seed. */
function seeded(seed: string): Source {
  let left: Buffer = Buffer.alloc(0)
  let block = 0
  return {
    bytes(count) {
      const parts = [left]
      for (let have = left.length; have < count; have += 32)
        parts.push(createHash('sha256').update(`${block++}\n${seed}`).digest())
      const all = Buffer.concat(parts)
      left = all.subarray(count)
      return all.subarray(0, count)
    },
  }
}
const chance: Source = { bytes: (count) => randomBytes(count) }

/**
 * Returns a uniformly distributed integer in 0 ≤ x < limit. Values that would cause modulo bias are
 * discarded.
 */
function below(source: Source, limit: number): number {
  const range = 2 ** 48
  for (;;) {
    const value = Buffer.from(source.bytes(6)).readUIntBE(0, 6)
    if (value < range - (range % limit)) return value % limit
  }
}
const fraction = (source: Source): number =>
  (Buffer.from(source.bytes(7)).readUIntBE(1, 6) * 32 + below(source, 32)) / 2 ** 53
const pick = <T>(source: Source, from: readonly T[]): T => from[below(source, from.length)] as T

function uuid(source: Source): string {
  const bytes = Buffer.from(source.bytes(16))
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}
const DIGITS = '0123456789'
const LETTERS = 'abcdefghijklmnopqrstuvwxyz'
const ALPHANUMERIC = `${LETTERS.toUpperCase()}${LETTERS}${DIGITS}`
const text = (source: Source, charset: string, length: number): string => {
  const characters = [...charset]
  return Array.from({ length }, () => pick(source, characters)).join('')
}

type Make = (source: Source, parameters: Parameters) => unknown
const types: Readonly<Record<string, Make>> = {
  uuid,
  /** Returns a whole number x with min ≤ x ≤ max; the range is 0 to 100 by default. */
  number: (source, parameters) => {
    const [min, max] = bounds(parameters, 0, 100)
    const [low, high] = [Math.ceil(min), Math.floor(max)]
    if (high < low || high - low >= 2 ** 47)
      throw new Error(`there is no whole number in the range ${min} to ${max}`)
    return low + below(source, high - low + 1)
  },
  /** Returns a number x with min ≤ x < max; the range is 0 to 1 by default. */
  float: (source, parameters) => {
    const [min, max] = bounds(parameters, 0, 1)
    return min + fraction(source) * (max - min)
  },
  string: (source, parameters) =>
    text(
      source,
      typeof parameters['charset'] === 'string' && parameters['charset'] !== ''
        ? parameters['charset']
        : ALPHANUMERIC,
      lengthOf(parameters),
    ),
  alphanumeric: (source, parameters) => text(source, ALPHANUMERIC, lengthOf(parameters)),
  hex: (source, parameters) => text(source, `${DIGITS}abcdef`, lengthOf(parameters)),
  boolean: (source) => below(source, 2) === 1,
  choice: (source, { choices }) => {
    const from = typeof choices === 'string' ? (JSON.parse(choices) as unknown) : choices
    if (!Array.isArray(from) || from.length === 0)
      throw new Error('choices must be a list with at least one entry')
    return pick(source, from)
  },
}

/**
 * Returns one random value, or, with a `count`, a list of them.
 * @throws Error on invalid parameters.
 */
export function random(parameters: Parameters): unknown {
  const { type = 'uuid', seed } = parameters
  const make = typeof type === 'string' && Object.hasOwn(types, type) ? types[type] : undefined
  if (!make)
    throw new Error(
      `type must be one of ${Object.keys(types).join(', ')}, not ${JSON.stringify(type)}`,
    )
  const source = seed === undefined || seed === null ? chance : seeded(String(seed))
  const count = numberOf(parameters, 'count')
  if (count === undefined) return make(source, parameters)
  if (!Number.isInteger(count) || count < 1 || count > most.count)
    throw new Error(`count must be a whole number from 1 to ${most.count}`)
  return Array.from({ length: count }, () => make(source, parameters))
}

/**
 * Returns a numeric parameter. It may also be a string, because templates render numbers as text.
 * Returns undefined if the parameter is absent or empty.
 * @throws Error if the value is not a number.
 */
function numberOf(parameters: Parameters, name: string): number | undefined {
  const given = parameters[name]
  if (given === undefined || given === null || given === '') return undefined
  const number = Number(given)
  if (!Number.isFinite(number))
    throw new Error(`${name} must be a number, not ${JSON.stringify(given)}`)
  return number
}
function bounds(parameters: Parameters, low: number, high: number): [number, number] {
  const min = numberOf(parameters, 'min') ?? Math.min(low, numberOf(parameters, 'max') ?? low)
  const max = numberOf(parameters, 'max') ?? Math.max(high, min)
  if (max < min) throw new Error(`max (${max}) is less than min (${min})`)
  return [min, max]
}
function lengthOf(parameters: Parameters): number {
  const length = numberOf(parameters, 'length') ?? DEFAULT_LENGTH
  if (!Number.isInteger(length) || length < 0 || length > most.length)
    throw new Error(`length must be a whole number from 0 to ${most.length}`)
  return length
}
