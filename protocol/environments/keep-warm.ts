/** The keep-warm time of a worker: how long it stays without a job. */

/** Time in milliseconds for an empty text. */
const DEFAULT_MS = 120_000
const words: Readonly<Record<string, number>> = {
  '': DEFAULT_MS,
  'on-demand': 0,
  ondemand: 0,
  forever: Number.POSITIVE_INFINITY,
  lifetime: Number.POSITIVE_INFINITY,
  always: Number.POSITIVE_INFINITY,
  true: Number.POSITIVE_INFINITY,
}
const units: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 }

/** States which texts are keep-warm times, as the predicate of a sentence. */
export const KEEP_WARM_RULE = 'must be on-demand, a duration such as 5m, or forever'

/**
 * Parses a keep-warm time. Returns milliseconds, `Infinity` if the worker never ends by itself, and
 * undefined if the text is no keep-warm time.
 */
export const keepWarmMs = (text: string): number | undefined =>
  (Object.hasOwn(words, text.toLowerCase()) ? words[text.toLowerCase()] : undefined) ??
  durationOf(text)

/** Parses a duration such as `90s` or `1h30m`. Returns milliseconds; undefined if it is invalid. */
function durationOf(text: string): number | undefined {
  if (!/^(\d{1,9}(\.\d{1,9})?(ms|s|m|h))+$/.test(text)) return undefined
  let sum = 0
  for (const [, value, unit = ''] of text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h)/g))
    sum += Number(value) * (units[unit] ?? 0)
  return sum
}
