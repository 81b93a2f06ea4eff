/**
 * The metrics of a node, for Prometheus. Every node has a separate registry. The number of label
 * values is bounded.
 */
import { Registry } from 'prom-client'
import type { Counters } from '../../gateway/ports.ts'
import type { ResolverMeasure } from '../resolver/resolver.ts'
import { collectProcessMetrics } from './event-loop-lag.ts'
import { createGatewayMetrics } from './gateway-metrics.ts'
import { createInstallationMetrics, type InstallationMeasure } from './installation-metrics.ts'
import { createInstruments } from './instruments.ts'
import { createResolverMetrics } from './resolver-metrics.ts'
import { createShardMetrics, type ShardMeasure } from './shard-metrics.ts'

/**
 * Collects measurements from all parts of a node: the gateway (`Counters`), the shard host, the
 * resolver and the installation.
 */
export interface Metrics extends Counters, ShardMeasure, ResolverMeasure, InstallationMeasure {
  /**
   * Adds a callback that runs before the metrics are read, for values that are looked up instead of
   * counted.
   */
  onLook(look: () => Promise<void> | void): void
  /** Returns all metrics in the Prometheus text format. */
  text(): Promise<string>
}

/** Creates the metrics of one node. */
export function createMetrics(version: string): Metrics {
  const registry = new Registry()
  collectProcessMetrics(
    registry,
    () => performance.now(),
    (ms, run) => void setInterval(run, ms).unref(),
  )
  const instruments = createInstruments(registry)
  const looks: (() => Promise<void> | void)[] = []
  return {
    ...createGatewayMetrics(instruments),
    ...createShardMetrics(instruments),
    ...createInstallationMetrics(instruments, version),
    ...createResolverMetrics(registry),
    onLook: (look) => void looks.push(look),
    text: async () => {
      // If a lookup fails, its gauge keeps the previous value.
      await Promise.allSettled(looks.map(async (look) => look()))
      return registry.metrics()
    },
  }
}
