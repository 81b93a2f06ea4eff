/** The seed and the number of runs of the random blueprint tests. */

/** The seed of all random tests. It changes daily by default, and each test prints it. */
export const seed = Number(process.env['BLUEPRINT_SEED'] ?? Math.floor(Date.now() / 86_400_000))
/** Returns the number of runs of a property: `BLUEPRINT_RUNS`, or by default `few`. */
export const runs = (few: number): number => Number(process.env['BLUEPRINT_RUNS'] ?? few)
