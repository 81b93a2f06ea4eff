/**
 * The lag of the event loop: how late a timer runs. The metrics have the names that prom-client
 * uses. Its own measurement wakes up the process 100 times per second, which took a third of the
 * processor time of an idle gateway.
 */
import { createHistogram } from 'node:perf_hooks'
import { collectDefaultMetrics, Gauge, type Registry } from 'prom-client'

/**
 * The resolution in milliseconds that disables the measurement of prom-client, because its timer
 * never expires.
 */
const NEVER_MS = 2 ** 31 - 1
/** Milliseconds between two samples. */
const SAMPLE_EVERY_MS = 100

type Lag = ReturnType<typeof createHistogram>
/** The value of each metric in nanoseconds, and its description. */
const metrics: Readonly<Record<string, readonly [help: string, value: (lag: Lag) => number]>> = {
  min: ['Minimum', (lag) => lag.min],
  max: ['Maximum', (lag) => lag.max],
  mean: ['Mean', (lag) => lag.mean],
  stddev: ['Standard deviation', (lag) => lag.stddev],
  p50: ['50th percentile', (lag) => lag.percentile(50)],
  p90: ['90th percentile', (lag) => lag.percentile(90)],
  p99: ['99th percentile', (lag) => lag.percentile(99)],
}

/**
 * Adds the default metrics of prom-client to a registry, and starts to measure the lag. Each reading
 * of the metrics of the lag covers the time since the previous one.
 * @param now monotonic time in milliseconds.
 * @param every calls a function repeatedly, at intervals of the given number of milliseconds.
 */
export function collectProcessMetrics(
  registry: Registry,
  now: () => number,
  every: (ms: number, run: () => void) => void,
): void {
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: NEVER_MS })
  const lag = createHistogram()
  let due = now() + SAMPLE_EVERY_MS
  every(SAMPLE_EVERY_MS, () => {
    const at = now()
    // The smallest value of a histogram is 1.
    lag.record(Math.max(1, Math.round((at - due) * 1e6)))
    due = at + SAMPLE_EVERY_MS
  })
  const gauges = Object.entries(metrics).map(([suffix, [help, value]]) => {
    const name = `nodejs_eventloop_lag_${suffix}_seconds`
    registry.removeSingleMetric(name)
    const gauge = new Gauge({
      name,
      help: `${help} of the event loop lag since the previous reading.`,
      registers: [registry],
      // Metrics are collected in the order of their registration, and the first one reads all.
      ...(suffix === 'min' && { collect: () => read() }),
    })
    return { gauge, value }
  })
  const read = (): void => {
    for (const { gauge, value } of gauges) gauge.set(lag.count > 0 ? value(lag) / 1e9 : 0)
    lag.reset()
  }
}
