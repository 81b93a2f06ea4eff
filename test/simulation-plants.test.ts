/**
 * The checks of the simulation must detect each planted fault within a limited number of seeds. A
 * fault can name a seed that reveals it. This seed is tried first, because most of the time would
 * otherwise be spent on the search for one.
 */
import t from 'tap'
import { plants } from './simulation/faults/plants.ts'
import { runSeed } from './simulation/simulation.ts'

const SEEDS = 2000

for (const plant of plants) {
  t.test(`the checks detect an engine that ${plant.name}`, async (t) => {
    const detect = async (seed: number) => (await runSeed(seed, { plant })).violations[0]
    let seed = plant.seed ?? 0
    let found = seed > 0 ? await detect(seed) : undefined
    if (found === undefined) seed = 0
    while (found === undefined && ++seed <= SEEDS) found = await detect(seed)
    const old = plant.seed !== undefined && plant.seed !== seed ? `, no longer ${plant.seed}` : ''
    t.comment(`seed ${seed}${old}: ${found ?? 'nothing'}`)
    t.ok(found, `within ${SEEDS} seeds`)
  })
}
