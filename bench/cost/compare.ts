/**
 * Compares the figures of two trees that were measured in turn. Each round has a separate ratio,
 * because the speed of a machine varies more between rounds than within a round.
 */
import { type Figures, median } from '../support/measure.ts'

/**
 * Minimum number of rounds for a verdict. If two trees are equal, the probability that the same
 * tree is cheaper in every round by chance is 1/2 with two rounds, and 1/16 with five.
 */
export const MIN_ROUNDS = 5

/** How a figure of this tree compares with the other tree. */
type Verdict = 'less' | 'more' | 'no difference'
export interface Compared {
  readonly name: string
  /** Median across all rounds for this tree; `theirs`: for the other tree. */
  readonly ours: number
  readonly theirs: number
  /** Ratio of this tree's figure to that of the other tree, across the rounds. */
  readonly ratio: { readonly median: number; readonly min: number; readonly max: number }
  /** `less` or `more` if every round agrees and there are at least `MIN_ROUNDS` rounds. */
  readonly verdict: Verdict
}

/**
 * Compares each figure by its ratio in every round. A round has no ratio for a figure that is
 * missing in one of the trees or is zero in both. If no round has a ratio, the statistics are NaN.
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
