/** The metrics of the event loop's lag. */
import { collectDefaultMetrics, Registry } from 'prom-client'
import t from 'tap'
import { collectProcessMetrics } from '../../../nodes/observe/event-loop-lag.ts'

const SUFFIXES = ['min', 'max', 'mean', 'stddev', 'p50', 'p90', 'p99']

t.test('a reading covers the lag of all timers since the previous reading', async (t) => {
  const registry = new Registry()
  let now = 0
  let sample = () => {}
  const usual = new Registry()
  collectDefaultMetrics({ register: usual })
  const known = usual.getMetricsAsArray().map(({ name }) => name)
  collectProcessMetrics(
    registry,
    () => now,
    (_, run) => {
      sample = run
    },
  )
  t.strictSame(
    registry
      .getMetricsAsArray()
      .map(({ name }) => name)
      .sort(),
    known.sort(),
    'the names are those of prom-client',
  )
  const values = async () => {
    const lines = (await registry.metrics()).split('\n')
    return SUFFIXES.map((suffix) => {
      const line = lines.find((one) => one.startsWith(`nodejs_eventloop_lag_${suffix}_seconds `))
      return Math.round(Number(line?.split(' ')[1]) * 1000)
    })
  }
  t.strictSame(await values(), [0, 0, 0, 0, 0, 0, 0], 'nothing was measured yet')
  for (const late of [0, 0, 0, 300]) {
    now += 100 + late
    sample()
  }
  t.strictSame(await values(), [0, 300, 75, 130, 0, 300, 300])
  now += 100
  sample()
  t.strictSame(await values(), [0, 0, 0, 0, 0, 0, 0], 'only the time since then')
})
