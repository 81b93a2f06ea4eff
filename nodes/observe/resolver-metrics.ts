/**
 * The metrics of the definition resolver. They have no label for the organization, because an
 * installation has only one.
 */
import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import type { ResolverMeasure } from '../resolver/resolver.ts'

/** Bucket bounds of the ages of definitions, in seconds: from one second to 30 days. */
const AGES = [1, 10, 60, 300, 1800, 3600, 6 * 3600, 86_400, 7 * 86_400, 30 * 86_400]
/** Bucket bounds of the durations of resolver requests, in seconds. */
const DURATIONS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30]

/** Creates the metrics in a registry. */
export function createResolverMetrics(registry: Registry): ResolverMeasure {
  const registers = [registry]
  const calls = new Counter({
    name: 'baton_definition_calls_total',
    help: 'Calls to the definition resolver, by outcome',
    labelNames: ['outcome'],
    registers,
  })
  const durations = new Histogram({
    name: 'baton_definition_call_seconds',
    help: 'Duration of calls to the definition resolver',
    buckets: DURATIONS,
    registers,
  })
  const success = new Gauge({
    name: 'baton_definition_last_success_timestamp_seconds',
    help: 'Unix time at which the definition resolver last gave this node a valid answer',
    registers,
  })
  const ages = new Histogram({
    name: 'baton_definition_age_seconds',
    help: 'Age of stored definitions when they were used, fresh or as the last known good',
    buckets: AGES,
    labelNames: ['use'],
    registers,
  })
  const failures = new Counter({
    name: 'baton_definition_failures_total',
    help: 'Turns that did not start because of the definition resolver, by error type',
    labelNames: ['type'],
    registers,
  })
  return {
    resolverCalled: (outcome, ok, seconds, at) => {
      calls.inc({ outcome })
      durations.observe(seconds)
      if (ok) success.set(at / 1000)
    },
    definitionServed: (use, age) => ages.observe({ use }, age),
    definitionFailed: (type) => failures.inc({ type }),
  }
}
