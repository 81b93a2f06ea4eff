/** The loads under which the cost is measured. Other benchmarks use the same loads. */
import { Http } from '../load/http.ts'
import { interactionsOf } from '../load/interactions.ts'
import { follow } from '../load/sse.ts'
import { agentOf, finish, quick, SLOTS, type Speaking, say, speaker, turn } from '../load/turns.ts'
import { EVENTS_PER_RUN, forEachOf, runOf, runsOf } from '../load/work.ts'
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
/** Number of followers of the project's stream. */
const FOLLOWERS = 500
/** Number of chunks of a generated answer. */
const CHUNKS = 100
/** Milliseconds between two chunks of an answer. */
const CHUNK_EVERY_MS = 10
/** Number of connections of the worker that generates answers. */
const TALKERS = 2

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
  turns: {
    unit: 'turn',
    units: 1,
    concurrency: 32,
    count: 4000,
    quick: 400,
    open: async (target) => {
      const http = new Http(target.port, target.key, 1)
      const agent = await agentOf(http, 'quick', { system_prompt: quick })
      return { work: () => turn(target, agent), stop: () => http.close() }
    },
  },
  followers: {
    unit: 'delivered event',
    units: FOLLOWERS * EVENTS_PER_RUN,
    concurrency: 4,
    count: 600,
    quick: 100,
    open: async (target, say) => {
      const runs = await runsOf((name) => runOf(1, name), target, say)
      const { port, key } = target
      const path = '/v1/projects/default/runs/events'
      const stops = await Promise.all(
        Array.from({ length: FOLLOWERS }, () => follow(port, key, path, () => {})),
      )
      return {
        work: runs.work,
        stop: () => {
          for (const stop of [...stops, runs.stop]) stop()
        },
      }
    },
  },
  deltas: {
    unit: 'chunk',
    units: CHUNKS,
    concurrency: TALKERS * SLOTS,
    count: 2000,
    quick: 400,
    open: async (target) => {
      const speaking = new Set<Speaking>()
      const talkers = await Promise.all(
        Array.from({ length: TALKERS }, (_, i) =>
          speaker(target, `talker-${i}`, (one) => void speaking.add(one)),
        ),
      )
      const chunks = setInterval(() => {
        for (const one of speaking)
          if (one.said < CHUNKS) say(one, 'another word ')
          else {
            speaking.delete(one)
            finish(one)
          }
      }, CHUNK_EVERY_MS)
      const http = new Http(target.port, target.key, 1)
      const agent = await agentOf(http, 'talker', {
        model_route: { mode: 'worker', provider: 'local', model: 'talker' },
      })
      return {
        work: () => turn(target, agent),
        stop: () => {
          clearInterval(chunks)
          for (const talker of talkers) talker.close()
          http.close()
        },
      }
    },
  },
}
