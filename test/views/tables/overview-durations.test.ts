/** Histograms of durations: their quantiles, and their packed form. */
import fc from 'fast-check'
import t from 'tap'
import {
  addDuration,
  noDurations,
  packDurations,
  quantile,
  unpackDurations,
} from '../../../views/tables/overview/durations.ts'

t.test('quantiles are within 10 %, and histograms survive their packed form', (t) => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 1e9 }), { minLength: 1 }), (all) => {
      const durations = noDurations()
      for (const ms of all) addDuration(durations, ms)
      const sorted = [...all].sort((a, b) => a - b)
      for (const share of [0.5, 0.95]) {
        const exact = sorted[Math.ceil(all.length * share) - 1] as number
        const found = quantile(unpackDurations(packDurations(durations)), share) as number
        if (Math.abs(found - exact) > exact * 0.1) throw new Error(`${exact} ${found}`)
      }
    }),
    { numRuns: 50, seed: 3 },
  )
  t.equal(quantile(noDurations(), 0.5), undefined)
  t.end()
})
