/** The seed and the number of runs of the random blueprint tests. */

/** The seed changes daily by default. The output of each test contains it. */
export const seed = Number(process.env['BLUEPRINT_SEED'] ?? Math.floor(Date.now() / 86_400_000))
/** The number of runs of a property. The default `few` takes some seconds. */
export const runs = (few: number): number => Number(process.env['BLUEPRINT_RUNS'] ?? few)
