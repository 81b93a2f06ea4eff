/**
 * Distributions of durations as histograms with fixed logarithmic buckets, four for each power of
 * two. Histograms with the same buckets can be added. A quantile is accurate to within 10 %.
 */

/** Number of durations in each bucket. */
export type Durations = number[]
/** Number of buckets for each doubling of the duration. */
const PER_DOUBLING = 4
/** Number of buckets. The last bucket counts all durations of more than about 25 years. */
const BUCKETS = 160

export const noDurations = (): Durations => new Array<number>(BUCKETS).fill(0)
/** Adds a duration in milliseconds to a histogram. */
export function addDuration(durations: Durations, ms: number): void {
  const bucket = ms <= 1 ? 0 : Math.min(BUCKETS - 1, Math.ceil(Math.log2(ms) * PER_DOUBLING))
  durations[bucket] = (durations[bucket] ?? 0) + 1
}
/** Adds a packed histogram to another histogram. */
export function addPacked(durations: Durations, text: string): void {
  if (text === '') return
  for (const pair of text.split(' ')) {
    const colon = pair.indexOf(':')
    const bucket = Number(pair.slice(0, colon))
    durations[bucket] = (durations[bucket] ?? 0) + Number(pair.slice(colon + 1))
  }
}
/** Returns the buckets that are not empty, as `bucket:number` separated by spaces. */
export const packDurations = (durations: Durations): string =>
  durations.flatMap((n, bucket) => (n === 0 ? [] : [`${bucket}:${n}`])).join(' ')
export function unpackDurations(text: string): Durations {
  const durations = noDurations()
  addPacked(durations, text)
  return durations
}
/**
 * Returns, approximately, the duration in milliseconds that the given share of all durations does
 * not exceed. Returns undefined if the histogram is empty.
 * @param share from 0 to 1.
 */
export function quantile(durations: Durations, share: number): number | undefined {
  const total = durations.reduce((sum, n) => sum + n, 0)
  if (total === 0) return undefined
  let left = Math.max(1, Math.ceil(total * share))
  const bucket = durations.findIndex((n) => (left -= n) <= 0)
  // The middle of the bucket on a logarithmic scale.
  const ms = bucket === 0 ? 1 : 2 ** ((bucket - 0.5) / PER_DOUBLING)
  return Math.round(ms * 10) / 10
}
