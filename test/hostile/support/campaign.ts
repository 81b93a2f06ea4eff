/**
 * How long and from where the hostile tests roll their dice. `HOSTILE_SEED=n` repeats a failure, `HOSTILE_RUNS=20` tries twenty
 * times as much; without them every day has a seed of its own.
 */
import fc from 'fast-check'

export const seed = Number(process.env['HOSTILE_SEED'] ?? Math.floor(Date.now() / 86_400_000))
const factor = Number(process.env['HOSTILE_RUNS'] ?? 1)
/** So many tries, or a multiple of them in a campaign. */
export const tries = (some: number): number => Math.ceil(some * factor)

/** Try something often; a failure names the seed and the smallest input that was found for it. @param salt tells properties apart that share a seed. */
export async function often<T>(
  what: string,
  salt: number,
  some: number,
  arbitrary: fc.Arbitrary<T>,
  holds: (value: T) => Promise<void>,
): Promise<void> {
  const parameters = { seed: seed + salt, numRuns: tries(some), endOnFailure: factor > 1 }
  try {
    await fc.assert(fc.asyncProperty(arbitrary, holds), parameters)
  } catch (error) {
    throw new Error(
      `${what} (HOSTILE_SEED=${seed}): ${(error as Error).message.slice(0, 3000)}\n${String((error as { cause?: unknown }).cause ?? '').slice(0, 2000)}`,
    )
  }
}
