/**
 * Random blueprints, applied by real gateway code to real actors and a real view.
 *
 * Properties:
 * - A preview reports exactly what the apply does, and writes nothing.
 * - A second apply changes nothing: only the actor of the blueprint emits events.
 * - If the export of a project is applied to an empty project, the exports of the two projects are
 *   equal.
 * - If the gateway dies at any call of an apply, a repeat ends in the state of an uninterrupted
 *   apply, even if the last message of the dead gateway arrives during the repeat.
 * - Two concurrent applies of one blueprint end in the state that one of the two serial orders
 *   produces.
 * - No resource ever has two bindings, and no key of a blueprint ever has two resources.
 *
 * `BLUEPRINT_RUNS` sets the number of runs of each property, and `BLUEPRINT_SEED` the seed.
 */
import fc from 'fast-check'
import t from 'tap'
import { outsides, requests } from './graphs.ts'
import { plants } from './plants.ts'
import { type History, isConvergent, isRepeatable, isSerial } from './properties.ts'
import { runs, seed } from './settings.ts'
import type { Plant } from './world.ts'

const histories: fc.Arbitrary<History> = fc.record({
  first: fc.oneof(requests, fc.constant({ resources: {} })),
  outside: outsides,
})
const deaths = fc.array(fc.record({ place: fc.nat({ max: 10_000 }), late: fc.nat({ max: 12 }) }), {
  minLength: 4,
  maxLength: 4,
})
const orders = fc.array(fc.nat({ max: 30 }), { minLength: 30, maxLength: 30 })

const properties = {
  repeats: (plant?: Plant) =>
    fc.asyncProperty(histories, requests, (history, request) =>
      isRepeatable(history, request, plant),
    ),
  deaths: (plant?: Plant) =>
    fc.asyncProperty(histories, requests, deaths, (history, request, drawn) =>
      isConvergent(history, request, drawn, plant),
    ),
  races: (plant?: Plant) =>
    fc.asyncProperty(requests, fc.tuple(requests, requests), orders, (first, two, order) =>
      isSerial(first, two, order, plant),
    ),
} as const

for (const [name, few] of [
  ['repeats', 8],
  ['deaths', 5],
  ['races', 5],
] as const)
  t.test(`applies converge: ${name}`, { timeout: 3_600_000 }, async (t) => {
    t.comment(`seed ${seed}`)
    const options = { numRuns: runs(few), seed, includeErrorInReport: true }
    await fc.assert(properties[name]() as fc.IAsyncProperty<unknown>, options)
  })

for (const plant of plants)
  t.test(
    `the properties detect a planted fault: ${plant.name}`,
    { timeout: 600_000 },
    async (t) => {
      const property = properties[plant.detectedBy](plant) as fc.IAsyncProperty<unknown>
      const { failed, numRuns } = await fc.check(property, {
        numRuns: 60,
        seed: plant.seed ?? 1,
        endOnFailure: true,
      })
      t.ok(failed, `${plant.detectedBy} in run ${numRuns}`)
    },
  )
