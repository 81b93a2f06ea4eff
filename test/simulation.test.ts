/**
 * Simulates the service with faults, for 150 seeds that change every day. `SIM_SEED=n` starts at
 * seed n. `npm run simulate -- --from n --seeds 1` shows the end of a failing seed's trace.
 */
import t from 'tap'
import { simulate } from './simulation/run.ts'
import { runSeed } from './simulation/simulation.ts'

const SEEDS = 150
const from = Number(process.env['SIM_SEED'] ?? Math.floor(Date.now() / 86_400_000) * 1000)

t.test(`the engine keeps its guarantees under all faults (seeds from ${from})`, async (t) => {
  t.comment(`SIM_SEED=${from}`)
  const { failures } = await simulate({ from, seeds: SEEDS })
  t.strictSame(failures, [])
})

t.test('the same seed yields the same trace', async (t) => {
  const [one, two] = [await runSeed(from, { trace: true }), await runSeed(from, { trace: true })]
  t.strictSame(one.trace, two.trace)
})
