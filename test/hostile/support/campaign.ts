/**
 * Seed and number of runs of the hostile tests. `HOSTILE_SEED=n` repeats a failure, and
 * `HOSTILE_RUNS=20` multiplies the number of runs by twenty. By default, the seed changes daily.
 */
import fc from 'fast-check'

export const seed = Number(process.env['HOSTILE_SEED'] ?? Math.floor(Date.now() / 86_400_000))
const factor = Number(process.env['HOSTILE_RUNS'] ?? 1)
export const tries = (some: number): number => Math.ceil(some * factor)

/**
 * Runs a property many times.
 * @param salt distinguishes properties that share a seed.
 * @param some the number of runs in a normal test.
 * @throws {Error} with the seed and a failing input, when the property fails.
 */
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
      `${what} (HOSTILE_SEED=${seed}): ${(error as Error).message.slice(0, 3000)}\n` +
        String((error as { cause?: unknown }).cause ?? '').slice(0, 2000),
    )
  }
}
