/**
 * Measures source events against 1,000 triggers, ten per event type, whose conditions are never
 * true. It reports how many events per second are stored and matched against the triggers, and the
 * delay until a run that waits for an event resumes. The benchmark registers the triggers with the
 * project's `events` actor directly, as loops do, not through the API.
 */

import type { Nats } from '../nodes/nats/server/connect.ts'
import type { Watch } from '../protocol/events/sources.ts'
import { shardOf } from '../protocol/subjects.ts'
import { Http } from './load/http.ts'
import { follow } from './load/sse.ts'
import { completedIn, startRun } from './load/work.ts'
import { type Baton, startBaton } from './support/baton.ts'
import { connectTo, SHARDS } from './support/journal.ts'
import {
  atRate,
  costOf,
  type Figures,
  inFlight,
  inTurn,
  pause,
  spread,
  type Terms,
  withEachSync,
} from './support/measure.ts'
import { cell, ms, note, table, whole } from './support/table.ts'

export const about =
  'Source events per second against 1,000 event triggers with conditions, ' +
  'and from an event to the run that waited for it'

const P = '/v1/projects/default'
const TYPES = 100
const TRIGGERS = 1000
const BATCH = 100
/** Events published per second while runs wait. */
const EVENTS_PER_SECOND = 5000
/** Waiting runs that are resumed per second. */
const WAKES_PER_SECOND = 25

const triggers: readonly Watch[] = Array.from({ length: TRIGGERS }, (_, i) => ({
  trigger_id: `trg_${i}`,
  event_type: `load.type${i % TYPES}`,
  condition:
    i % 2 === 0
      ? `event.amount > ${1000 + i} && meta.region == "eu"`
      : `event.name startsWith "x${i}" || event.amount < 0`,
}))
const eventOf = (i: number) => ({
  event_type: `load.type${i % TYPES}`,
  source_id: 'bench',
  event: { amount: i % 500, name: `order ${i}`, lines: [1, 2, 3] },
  meta: { region: 'eu' },
})

/** Sends a command or a query to the project's `events` actor. */
async function say(nats: Nats, project: string, message: object): Promise<unknown> {
  const subject = `shard.0.${shardOf('events', project, SHARDS)}`
  const reply = await nats.connection.request(
    subject,
    new TextEncoder().encode(JSON.stringify(message)),
    { timeout: 5000 },
  )
  return (JSON.parse(reply.string()) as { reply?: unknown }).reply
}
async function register(nats: Nats, project: string): Promise<void> {
  const to = { project, kind: 'events', id: project }
  const origin = { at: 0, principal: { type: 'system', id: 'bench' } }
  await say(nats, project, {
    type: 'command',
    command: {
      ...to,
      command_id: 'bench',
      name: 'triggers.set',
      input: { loop_id: 'loop_bench', version: 1, triggers },
      origin,
    },
  })
  const { triggers: count } = (await say(nats, project, {
    type: 'ask',
    to,
    name: 'listening',
    input: {},
  })) as { triggers: number }
  if (count !== TRIGGERS) throw new Error(`${count} triggers listen`)
}
async function accepted(http: Http, path: string, body: object): Promise<void> {
  const { status, body: text } = await http.post(`${P}${path}`, JSON.stringify(body))
  if (status !== 202) throw new Error(`${path} was answered ${status}: ${text}`)
}

/**
 * Starts runs that each wait for a different event, and resumes them at a fixed rate under load.
 * @returns the latency of each run in milliseconds. It begins at the scheduled time of the request
 * that publishes the event, and ends when the project's stream reports the end of the run.
 */
async function wake(
  server: Baton,
  http: Http,
  nats: Nats,
  project: string,
  runs: number,
): Promise<number[]> {
  const waiting = new Map<string, () => void>()
  const stop = await follow(server.port, server.key, `${P}/runs/events`, (text) => {
    for (const run of completedIn(text)) waiting.get(run)?.()
  })
  const ids: string[] = []
  await inFlight(32, runs, async (of) => {
    ids[of] = await startRun(
      http,
      JSON.stringify({
        spec: {
          steps: [
            { id: 'w', kind: 'wait_for_event', config: { event_type: 'wake.now', match: { of } } },
          ],
        },
      }),
    )
  })
  const listening = async () =>
    (
      (await say(nats, project, {
        type: 'ask',
        to: { project, kind: 'events', id: project },
        name: 'listening',
        input: {},
      })) as { waits: number }
    ).waits
  while ((await listening()) < runs) await pause(20)
  await pause(500)
  const seconds = runs / WAKES_PER_SECOND
  const [, times] = await Promise.all([
    atRate(EVENTS_PER_SECOND / BATCH, (EVENTS_PER_SECOND / BATCH) * seconds, (i) =>
      accepted(http, '/events/batch', {
        events: Array.from({ length: BATCH }, (_, k) => eventOf(i * BATCH + k)),
      }),
    ),
    atRate(WAKES_PER_SECOND, runs, async (of) => {
      const done = new Promise<void>((over) => waiting.set(ids[of] ?? '', over))
      await accepted(http, '/events', { event_type: 'wake.now', event: { of } })
      await done
    }),
  ])
  stop()
  return times
}

async function measure(sync: string, { quick, profile }: Terms): Promise<Figures> {
  const server = await startBaton({ sync, profile })
  const http = new Http(server.port, server.key, 128)
  const nats = await connectTo(server.data)
  try {
    const { body } = await http.get(P)
    const project = /"id":"(prj_\w+)"/.exec(body)?.[1] ?? ''
    await register(nats, project)
    const batches = quick ? 200 : 1000
    const many = (i: number) =>
      accepted(http, '/events/batch', {
        events: Array.from({ length: BATCH }, (_, k) => eventOf(i * BATCH + k)),
      })
    await inFlight(4, batches / 4, many)
    const batched = await costOf(
      () => server.processes,
      () => inFlight(4, batches, many),
    )
    const singles = quick ? 3000 : 15_000
    const one = await costOf(
      () => server.processes,
      () => inFlight(128, singles, (i) => accepted(http, '/events', eventOf(i))),
    )
    const late = await wake(server, http, nats, project, quick ? 100 : 500)
    return {
      batched: (batches * BATCH) / batched.seconds,
      single: singles / one.seconds,
      server: (batched.cpu('server') * 1e3) / (batches * BATCH),
      store: (batched.cpu('store') * 1e3) / (batches * BATCH),
      ...spread('late', late),
    }
  } finally {
    await nats.close()
    http.close()
    await server.stop()
  }
}

/** Runs the benchmark and returns its table. */
export async function bench(terms: Terms): Promise<string> {
  const measured = await inTurn(
    withEachSync((sync) => measure(sync, terms)),
    terms,
    (run) =>
      `${whole(run['batched'] ?? Number.NaN)} events/s in batches, ` +
      `${whole(run['single'] ?? Number.NaN)}/s one by one, a run goes on after p50 ` +
      `${ms(run['late p50'] ?? Number.NaN)} ms, p99 ${ms(run['late p99'] ?? Number.NaN)} ms`,
  )
  const lines = measured.map(
    ([
      name,
      { batched = 0, single = 0, server = 0, store = 0, 'late p50': p50 = 0, 'late p99': p99 = 0 },
    ]) => [
      name,
      whole(batched),
      whole(single),
      cell(ms(p50), ms(p99)),
      cell(ms(server), ms(store)),
    ],
  )
  return (
    table(
      [
        '1,000 triggers with conditions',
        'events/s, batches of 100',
        'events/s, one by one',
        'event → waiting run has completed p50 / p99 ms',
        'CPU ms per event in batches: server / store',
      ],
      [...lines, ['*target*', '≥ 5,000', '', '≤ 50 at p99', '']],
    ) +
    note(
      'Four batches in flight; one by one over 128 connections. ' +
        `The last figure under a load of ${whole(EVENTS_PER_SECOND)} events/s, ` +
        `${WAKES_PER_SECOND} runs/s that wait by type and match.`,
    )
  )
}
