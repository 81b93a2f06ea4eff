/**
 * A compact form of records. Most records of a table have the same fields. The names of the fields
 * are therefore stored once, as a SHAPE. A record is stored as the number of its shape, followed by
 * those of its values that cannot be derived from the shape or from other data that its reader has
 * (`Known`): `[shape, value, …]`.
 *
 * Invariant: unpacking a record restores every field with its value, in the same order.
 */
import { timestamp } from '../protocol/common.ts'

/** The compact forms of one or more records, to be stored as JSON. */
export type Packed = readonly unknown[]
/** Data that is available when a record is read, and is therefore not stored with the record. */
export interface Known {
  /** Texts to which the values of fields may be equal. Only the first `TEXTS` of them are used. */
  readonly texts: readonly (string | null)[]
  /** The reference time in Unix milliseconds. Times are stored as differences from this time. */
  readonly at: number
}

/**
 * The kind of a field says how the value of the field is restored. A kind below this number stands
 * for the text with that index in `Known.texts`.
 */
const TEXTS = 10
/** Kinds of fields with a stored value: unchanged, or as a difference from `Known.at`. */
const [PLAIN, TIME] = [TEXTS, TEXTS + 1]
/** Kinds of fields with a constant value. They are the keys of `constants`. */
const [TRUE, FALSE, NULL, EMPTY] = [TEXTS + 2, TEXTS + 3, TEXTS + 4, TEXTS + 5]
const constants = { [TRUE]: true, [FALSE]: false, [NULL]: null, [EMPTY]: '' }
/**
 * The kind that marks the first element of a shape as the label of the record, not a field; see
 * `pack`.
 */
const LABEL = TEXTS + 6
/** The kind of a value that JSON cannot represent. A record with such a value is stored whole. */
const STRANGE = -1

type Field = readonly [kind: number, name: string]
/**
 * A node of the tree of shapes. The path from the root contains the fields. `n` is the number of
 * the shape that ends here, or `WHOLE` while no record has this shape. Most records continue with
 * the same field as the previous record, so the last continuation is tried first.
 */
interface Node {
  n: number
  readonly next: Map<string, Node>[]
  last: { readonly kind: number; readonly name: string; readonly node: Node } | undefined
}
const node = (): Node => ({ n: WHOLE, next: [], last: undefined })

/**
 * The first element of the compact form of a record that is stored whole. The record and its label
 * follow. No shape has this number.
 */
const WHOLE = 0
/**
 * Maximum number of nodes of the tree. Once it is full, records with new shapes are stored whole.
 */
const MAX_NODES = 50_000
/** Maximum number of timestamps in each of the two caches below. */
const MAX_TIMES = 10_000

export class Shapes {
  #root = node()
  #nodes = 0
  #shapes: (readonly Field[])[] = [[]]
  #added: number[] = []
  /**
   * The times in records, in Unix milliseconds, by their text; NaN for texts that are not times.
   */
  readonly #times = new Map<string, number>()
  /** Texts of restored times, by Unix milliseconds. Cached, because records often share a time. */
  readonly #texts = new Map<number, string>()

  /**
   * Discards all shapes, and loads the rows of the table `shapes`, in the order of their numbers.
   */
  begin(rows: readonly { readonly shape: string }[]): void {
    this.#root = node()
    this.#nodes = 0
    this.#shapes = [[]]
    this.#added = []
    for (const { shape } of rows) {
      const fields = JSON.parse(shape) as Field[]
      let at: Node | undefined = this.#root
      for (const [kind, name] of fields) at = at && this.#step(at, kind, name)
      if (at) at.n = this.#shapes.length
      this.#shapes.push(fields)
    }
  }
  /** Passes each shape that is not stored yet to `store`. */
  flush(store: (n: number, shape: string) => void): void {
    for (const n of this.#added) store(n, JSON.stringify(this.#shapes[n]))
    this.#added = []
    this.#times.clear()
  }
  /**
   * Returns the compact form of a record.
   * @param label a text that is stored in the shape, such as the type of an event. There must be
   * only a few different labels.
   * @param packed the list to which the compact form is added.
   */
  pack(record: object, known: Known, label?: string, packed: unknown[] = []): Packed {
    const fields = record as Readonly<Record<string, unknown>>
    const from = packed.push(WHOLE) - 1
    let at: Node | undefined = this.#root
    if (label !== undefined) at = this.#step(at, LABEL, label)
    for (const name in fields) {
      const value = fields[name]
      if (value === undefined) continue
      const kind = this.#kindOf(value, known)
      at = at && this.#step(at, kind, name)
      if (kind === PLAIN) packed.push(value)
      else if (kind === TIME) packed.push((this.#times.get(value as string) ?? 0) - known.at)
    }
    if (at === undefined) {
      packed.length = from + 1
      packed.push(record, label ?? '')
    } else {
      if (at.n === WHOLE) at.n = this.#define(fields, known, label)
      packed[from] = at.n
    }
    return packed
  }
  /**
   * Restores the record whose compact form begins at the index `from`. Requires the same `Known`
   * with which the record was packed.
   */
  unpack<T>(packed: Packed, { texts, at }: Known, from = 0): T {
    const n = packed[from] as number
    if (n === WHOLE) return packed[from + 1] as T
    const record: Record<string, unknown> = {}
    let next = from + 1
    for (const [kind, name] of this.#shapes[n] ?? []) {
      if (kind === PLAIN) record[name] = packed[next++]
      else if (kind < TEXTS) record[name] = texts[kind]
      else if (kind === TIME) record[name] = this.#textOf(at + (packed[next++] as number))
      else if (kind !== LABEL) record[name] = constants[kind]
    }
    return record as T
  }
  /** Returns the label of the compact form that begins at an index. */
  labelOf(packed: Packed, from: number): string {
    const n = packed[from] as number
    return n === WHOLE ? (packed[from + 2] as string) : (this.#shapes[n]?.[0]?.[1] ?? '')
  }
  /** Returns the length of the compact form that begins at an index. */
  lengthOf(packed: Packed, from: number): number {
    const n = packed[from] as number
    if (n === WHOLE) return 3
    let length = 1
    for (const [kind] of this.#shapes[n] ?? []) if (kind === PLAIN || kind === TIME) length++
    return length
  }

  #kindOf(value: unknown, { texts }: Known): number {
    if (typeof value === 'string') {
      if (value === '') return EMPTY
      const index = texts.indexOf(value)
      if (index >= 0 && index < TEXTS) return index
      return value.length === 24 && value.endsWith('Z') && this.#isTime(value) ? TIME : PLAIN
    }
    if (value === null) return NULL
    if (typeof value === 'boolean') return value ? TRUE : FALSE
    return typeof value === 'function' ? STRANGE : PLAIN
  }
  /** Whether `timestamp` restores exactly this text. */
  #isTime(text: string): boolean {
    let at = this.#times.get(text)
    if (at === undefined) {
      at = Date.parse(text)
      if (!Number.isNaN(at) && timestamp(at) !== text) at = Number.NaN
      if (this.#times.size >= MAX_TIMES) this.#times.clear()
      this.#times.set(text, at)
    }
    return !Number.isNaN(at)
  }
  #textOf(at: number): string {
    let text = this.#texts.get(at)
    if (text === undefined) {
      text = timestamp(at)
      if (this.#texts.size >= MAX_TIMES) this.#texts.clear()
      this.#texts.set(at, text)
    }
    return text
  }
  /**
   * Returns the child of a node for a kind and a name, and creates it if it is missing. Returns
   * undefined if the tree is full, or if the value or the name cannot be part of a shape.
   */
  #step(from: Node, kind: number, name: string): Node | undefined {
    const { last } = from
    if (last && last.kind === kind && last.name === name) return last.node
    if (kind === STRANGE) return undefined
    const names = (from.next[kind] ??= new Map())
    let to = names.get(name)
    if (!to) {
      if (this.#nodes >= MAX_NODES || name === '__proto__') return undefined
      this.#nodes++
      names.set(name, (to = node()))
    }
    from.last = { kind, name, node: to }
    return to
  }
  #define(fields: Readonly<Record<string, unknown>>, known: Known, label?: string): number {
    const shape: Field[] = label === undefined ? [] : [[LABEL, label]]
    for (const name in fields)
      if (fields[name] !== undefined) shape.push([this.#kindOf(fields[name], known), name])
    this.#added.push(this.#shapes.length)
    return this.#shapes.push(shape) - 1
  }
}
