/** Creates the instruments of a node in its registry. Their names begin with `baton_`. */
import { Counter, Gauge, Histogram, type Registry } from 'prom-client'

/** Bucket bounds in seconds for operations that take milliseconds. */
export const FAST = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5]

export type Instruments = ReturnType<typeof createInstruments>

export function createInstruments(registry: Registry) {
  const registers = [registry]
  return {
    counter: <L extends string>(name: string, help: string, ...labelNames: L[]) =>
      new Counter({ name: `baton_${name}_total`, help, labelNames, registers }),
    gauge: <L extends string>(name: string, help: string, ...labelNames: L[]) =>
      new Gauge({ name: `baton_${name}`, help, labelNames, registers }),
    histogram: <L extends string>(
      name: string,
      help: string,
      buckets: number[],
      ...labelNames: L[]
    ) => new Histogram({ name: `baton_${name}`, help, buckets, labelNames, registers }),
  }
}
