/** The extent of the random tests of blueprints. */

/** The seed of the random tests, which their failures name. */
export const seed = Number(process.env['BLUEPRINT_SEED'] ?? Math.floor(Date.now() / 86_400_000))
/** The number of runs of a property: by default `few`, which takes some seconds. */
export const runs = (few: number): number => Number(process.env['BLUEPRINT_RUNS'] ?? few)
