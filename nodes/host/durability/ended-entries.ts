/**
 * Entries of the index of ended actors (`ended-index.ts`): a hash of the actor's key and the cursor
 * of its last event. Each entry is stored as 16 bytes: two IEEE 754 doubles in little-endian order,
 * which represent both integers exactly. Two actors may have the same hash.
 */

/** Entries in ascending order of their hashes. Both arrays have the same length. */
export interface Entries {
  readonly hashes: Float64Array
  readonly cursors: Float64Array
}

/**
 * Bits of a segment's Bloom filter per entry. The rate of false positives is 0.002 %. It must be
 * this low, because a shard with a million ended actors has about 200 filters, and every false
 * positive costs a read.
 */
const BITS_PER_ENTRY = 24
/** Number of bits that each entry sets. */
const PROBES = 10

/**
 * Returns a 53-bit hash of a text (https://github.com/bryc/code, cyrb53). Hashes are stored, so the
 * function must never change. It is not suitable for security.
 */
export function hashOfKey(key: string): number {
  let low = 0xdeadbeef
  let high = 0x41c6ce57
  for (let i = 0; i < key.length; i++) {
    const unit = key.charCodeAt(i)
    low = Math.imul(low ^ unit, 0x9e3779b1)
    high = Math.imul(high ^ unit, 0x5f356495)
  }
  low = Math.imul(low ^ (low >>> 16), 0x85ebca6b) ^ Math.imul(high ^ (high >>> 13), 0xc2b2ae35)
  high = Math.imul(high ^ (high >>> 16), 0x85ebca6b) ^ Math.imul(low ^ (low >>> 13), 0xc2b2ae35)
  return 2 ** 32 * (high & 0x1fffff) + (low >>> 0)
}

/** Returns the entries of actors, given the key and the last cursor of each. */
export function entriesOf(
  actors: readonly { readonly key: string; readonly prev: number }[],
): Entries {
  const sorted = actors
    .map(({ key, prev }) => ({ hash: hashOfKey(key), prev }))
    .sort((a, b) => a.hash - b.hash)
  return {
    hashes: Float64Array.from(sorted, ({ hash }) => hash),
    cursors: Float64Array.from(sorted, ({ prev }) => prev),
  }
}

/** Merges two lists of entries into one in ascending order of the hashes. */
export function mergeEntries(a: Entries, b: Entries): Entries {
  const length = a.hashes.length + b.hashes.length
  const merged = { hashes: new Float64Array(length), cursors: new Float64Array(length) }
  for (let i = 0, j = 0; i + j < length; ) {
    const first =
      j === b.hashes.length ||
      (i < a.hashes.length && (a.hashes[i] as number) <= (b.hashes[j] as number))
    const [from, at] = first ? [a, i] : [b, j]
    merged.hashes[i + j] = from.hashes[at] as number
    merged.cursors[i + j] = from.cursors[at] as number
    if (first) i++
    else j++
  }
  return merged
}

/** Returns the cursors of the entries with this hash. */
export function cursorsOf({ hashes, cursors }: Entries, hash: number): number[] {
  let from = 0
  for (let to = hashes.length; from < to; ) {
    const middle = (from + to) >>> 1
    if ((hashes[middle] as number) < hash) from = middle + 1
    else to = middle
  }
  let end = from
  while (hashes[end] === hash) end++
  return end === from ? [] : [...cursors.subarray(from, end)]
}

/** Returns the stored form of entries: all hashes, then all cursors. */
export function packEntries({ hashes, cursors }: Entries): Uint8Array {
  const both = new Float64Array(hashes.length * 2)
  both.set(hashes)
  both.set(cursors, hashes.length)
  return new Uint8Array(both.buffer)
}
/**
 * Parses the stored form of entries. Returns undefined when it does not contain `count` entries.
 */
export function unpackEntries(data: Uint8Array, count: number): Entries | undefined {
  if (data.byteLength !== count * 16) return undefined
  // The bytes are copied, because they may not be aligned.
  const both = new Float64Array(new Uint8Array(data).buffer)
  return { hashes: both.subarray(0, count), cursors: both.subarray(count) }
}

/** Returns a Bloom filter of the hashes (Bloom 1970). */
export function filterOf({ hashes }: Entries): Uint8Array {
  const filter = new Uint8Array((hashes.length * BITS_PER_ENTRY) / 8)
  for (const hash of hashes)
    for (let probe = 0; probe < PROBES; probe++) {
      const bit = bitOf(hash, probe, filter)
      filter[bit >>> 3] = (filter[bit >>> 3] as number) | (1 << (bit & 7))
    }
  return filter
}
/** Whether the filter's entries may include this hash. */
export function mayInclude(filter: Uint8Array, hash: number): boolean {
  for (let probe = 0; probe < PROBES; probe++) {
    const bit = bitOf(hash, probe, filter)
    if (((filter[bit >>> 3] as number) & (1 << (bit & 7))) === 0) return false
  }
  return true
}
/** Returns the index of a probe's bit, by double hashing (Kirsch and Mitzenmacher 2008). */
const bitOf = (hash: number, probe: number, filter: Uint8Array): number => {
  const step = Math.imul(hash / 2 ** 32, 0x9e3779b1) | 1
  return ((hash + Math.imul(probe, step)) >>> 0) % (filter.length * 8)
}
