/** The loads under which the cost is measured. Other benchmarks use the same loads. */
import { Http } from '../load/http.ts'
import { interactionsOf } from '../load/interactions.ts'
import { forEachOf, runOf, runsOf } from '../load/work.ts'
import type { Target } from '../support/baton.ts'

/** A load that keeps a server busy. */
export interface Scenario {
  /** Name of the unit to which the figures refer, in the singular. */
  readonly unit: string
  /** Number of units in one work item. */
  readonly units: number
  /** Number of work items in flight. */
  readonly concurrency: number
  /** Number of work items that are measured by default. */
  readonly count: number
  /** Number of work items that are measured with `--quick`. */
  readonly quick: number
  /** Prepares the load; `stop` ends it. */
  open(
    target: Target,
    say: (line: string) => void,
  ): Promise<{ work(name: string): Promise<unknown>; stop(): void }>
}

const ITEMS = 500
const CONNECTIONS = 128

export const scenarios: Readonly<Record<string, Scenario>> = {
  runs: {
    unit: 'run',
    units: 1,
    concurrency: 200,
    count: 15_000,
    quick: 3000,
    open: (target, say) => runsOf((name) => runOf(1, name), target, say),
  },
  steps: {
    unit: 'step',
    units: 10,
    concurrency: 50,
    count: 3000,
    quick: 400,
    open: (target, say) => runsOf((name) => runOf(10, name), target, say),
  },
  foreach: {
    unit: 'item',
    units: ITEMS,
    concurrency: 1,
    count: 20,
    quick: 4,
    open: (target, say) => runsOf(() => forEachOf(ITEMS), target, say),
  },
  interactions: {
    unit: 'interaction',
    units: 1,
    concurrency: CONNECTIONS,
    count: 20_000,
    quick: 3000,
    open: async (target) => {
      const http = new Http(target.port, target.key, CONNECTIONS)
      const { ask, answer } = await interactionsOf(http)
      return { work: async () => answer(await ask()), stop: () => http.close() }
    },
  },
}
