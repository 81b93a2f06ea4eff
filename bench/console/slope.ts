/**
 * Computes the growth of a figure during a soak: the slope of the line that best fits its values.
 */

/** A value at a time. Times are in seconds. */
export interface Sample {
  readonly at: number
  readonly value: number
}
/** The growth of a figure. */
export interface Growth {
  /** Change per hour. */
  readonly perHour: number
  /** Change over the measured time, as a share of the first value of the line. */
  readonly share: number
}
const HOUR_S = 3600

/** Returns the growth over the samples, by least squares; NaN for fewer than two distinct times. */
export function growthOf(samples: readonly Sample[]): Growth {
  const count = samples.length
  const mean = (of: (sample: Sample) => number): number =>
    samples.reduce((sum, sample) => sum + of(sample), 0) / count
  const middle = mean(({ at }) => at)
  const average = mean(({ value }) => value)
  const spread = mean(({ at }) => (at - middle) ** 2)
  const slope = mean(({ at, value }) => (at - middle) * (value - average)) / spread
  const first = samples[0]?.at ?? 0
  const duration = (samples.at(-1)?.at ?? 0) - first
  const begin = average + slope * (first - middle)
  return { perHour: slope * HOUR_S, share: (slope * duration) / begin }
}
