/**
 * Statistics of two trees that were measured in turn. Each round has its own ratio, because the
 * speed of a machine varies more from round to round than within one.
 */
import { type Figures, median } from '../support/measure.ts'

/**
 * Minimum number of rounds for a verdict. Of two equal trees, one is cheaper in every round by
 * chance: in both of two rounds with a probability of 1/2, in all of five with 1/16.
 */
export const MIN_ROUNDS = 5

/** How a figure of this tree compares with the other tree. */
type Verdict = 'less' | 'more' | 'no difference'
export interface Compared {
  readonly name: string
  /** Medians over all rounds. */
  readonly ours: number
  readonly theirs: number
  /** This tree divided by the other one, over the rounds. */
  readonly ratio: { readonly median: number; readonly min: number; readonly max: number }
  /** `less` or `more` if that holds in every round, of at least `MIN_ROUNDS`. */
  readonly verdict: Verdict
}

/**
 * Returns the order in which trees 0 and 1 are measured: 0 1, 1 0, 0 1, …, so that neither profits
 * from a machine that becomes faster or slower.
 */
export const turns = (rounds: number): (readonly [0 | 1, 0 | 1])[] =>
  Array.from({ length: rounds }, (_, round) => (round % 2 === 0 ? [0, 1] : [1, 0]))

/**
 * Compares each figure. A figure that is missing in a round, or zero in both trees, is left out of
 * that round's ratio; without any ratio, it is NaN.
 * @param ours figures of this tree, one element per round.
 * @param theirs figures of the other tree, in the same rounds.
 */
export function compare(ours: readonly Figures[], theirs: readonly Figures[]): Compared[] {
  const names = new Set([...ours, ...theirs].flatMap((figures) => Object.keys(figures)))
  return [...names].map((name) => {
    const of = (rounds: readonly Figures[]) => rounds.map((figures) => figures[name] ?? Number.NaN)
    const [left, right] = [of(ours), of(theirs)]
    const ratios = left
      .map((value, round) => value / (right[round] ?? Number.NaN))
      .filter((ratio) => !Number.isNaN(ratio))
    const known = ratios.length > 0
    const ratio = {
      median: median(ratios),
      min: known ? Math.min(...ratios) : Number.NaN,
      max: known ? Math.max(...ratios) : Number.NaN,
    }
    const verdict =
      ratios.length < MIN_ROUNDS
        ? 'no difference'
        : ratio.max < 1
          ? 'less'
          : ratio.min > 1
            ? 'more'
            : 'no difference'
    return { name, ours: median(left), theirs: median(right), ratio, verdict }
  })
}
