/** The checks of the simulation must detect each planted fault within a limited number of seeds. */
import t from 'tap'
import { plants } from './simulation/faults/plants.ts'
import { runSeed } from './simulation/simulation.ts'

const SEEDS = 2000

for (const plant of plants) {
  t.test(`the checks detect an engine that ${plant.name}`, async (t) => {
    let seed = 0
    let found: string | undefined
    while (found === undefined && ++seed <= SEEDS)
      found = (await runSeed(seed, { plant })).violations[0]
    t.comment(`seed ${seed}: ${found ?? 'nothing'}`)
    t.ok(found, `within ${SEEDS} seeds`)
  })
}
