/**
 * Measures many concurrent generations. Workers stream the output of many sessions in chunks, and
 * each session has one follower. The followers run in a separate process. Each chunk contains the
 * time at which its worker sent it.
 */

import { startCrowd } from './load/crowd.ts'
import { served } from './load/served.ts'
import type { Socket } from './load/socket.ts'
import { agentOf, finish, SLOTS, type Speaking, say, speaker } from './load/turns.ts'
import { allowed } from './support/limits.ts'
import {
  costOf,
  type Figures,
  inFlight,
  inTurn,
  pause,
  percentile,
  type Terms,
} from './support/measure.ts'
import { cell, ms, note, table, whole } from './support/table.ts'

export const about =
  '1,000 sessions whose models say 20 chunks per second each, each to one follower: time until a chunk is delivered'

/** Chunks per second of each generation. */
const CHUNKS_PER_SECOND = 20
/** Milliseconds between checks for due chunks. */
const CHECK_EVERY_MS = 5

/**
 * Streams chunks of all generations for the given number of seconds.
 * @returns how late each chunk was sent, in milliseconds.
 */
async function speak(all: readonly Speaking[], seconds: number): Promise<number[]> {
  const every = 1000 / CHUNKS_PER_SECOND
  const late: number[] = []
  const began = performance.now()
  for (let passed = 0; passed < seconds * 1000; passed = performance.now() - began) {
    const time = Date.now()
    for (const [index, one] of all.entries()) {
      const due = one.said * every + (index * every) / all.length
      if (due > passed || one.said >= seconds * CHUNKS_PER_SECOND) continue
      late.push(passed - due)
      say(one, `${time} word `)
    }
    await pause(CHECK_EVERY_MS)
  }
  return late
}

async function measure(
  sync: string,
  sessions: number,
  seconds: number,
  profile: string | undefined,
): Promise<Figures> {
  return served({ sync, profile }, 32, async (server, http) => {
    const crowd = startCrowd('deltas-load.ts', [String(server.port), server.key])
    try {
      const speaking: Speaking[] = []
      const sockets: Socket[] = []
      for (let i = 0; i < Math.ceil(sessions / SLOTS); i++)
        sockets.push(await speaker(server, `talker-${i}`, (one) => speaking.push(one)))
      const agent = await agentOf(http, 'talker', {
        model_route: { mode: 'worker', provider: 'local', model: 'talker' },
      })
      const ids: string[] = []
      await inFlight(32, sessions, async () => {
        const { status, body } = await http.post(
          '/v1/projects/default/agents/invoke',
          JSON.stringify({
            agent_ref: { id: agent },
            session: { mode: 'new' },
            input: { content: [{ type: 'text', text: 'Talk.' }] },
          }),
        )
        const id = status < 300 ? /"session":\{"id":"(\w+)"/.exec(body)?.[1] : undefined
        if (id === undefined) throw new Error(`an invocation was answered ${status}: ${body}`)
        ids.push(id)
      })
      await crowd.ready(ids)
      for (let waited = 0; speaking.length < sessions; waited++) {
        if (waited > 300)
          throw new Error(`only ${speaking.length} of ${sessions} generations were handed out`)
        await pause(100)
      }
      await speak(speaking, 1)
      await pause(1000)
      for (const one of speaking) one.said = 0
      const processes = { ...server.processes, load: [process.pid, crowd.pid] }
      const {
        result: { result: late, seconds: elapsed, cpu },
        lateness,
      } = await crowd.counting(async () => {
        const cost = await costOf(
          () => processes,
          () => speak(speaking, seconds),
        )
        await pause(1000)
        return cost
      })
      speaking.forEach(finish)
      await pause(500)
      for (const socket of sockets) socket.close()
      return {
        expected: late.length,
        ...lateness,
        lag: percentile(late, 0.99),
        rate: late.length / elapsed,
        server: (cpu('server') / elapsed) * 100,
        load: (cpu('load') / elapsed) * 100,
      }
    } finally {
      crowd.stop()
    }
  })
}

/** Runs the benchmark and returns its table. */
export async function bench(terms: Terms): Promise<string> {
  const sessions = allowed(terms.quick ? 300 : 1000, terms.say)
  const seconds = terms.quick ? 5 : 20
  const measured = await inTurn(
    [['Baton, fsync always', () => measure('always', sessions, seconds, terms.profile)]],
    terms,
    ({ events = 0, expected = 0, p99 = 0, rate = 0 }) =>
      `${whole(events)} of ${whole(expected)} chunks delivered, ${whole(rate)}/s, p99 ${ms(p99)} ms`,
  )
  const lines = measured.map(
    ([
      name,
      {
        events = 0,
        expected = 0,
        p50 = 0,
        p99 = 0,
        max = 0,
        lag = 0,
        rate = 0,
        server = 0,
        load = 0,
      },
    ]) => [
      name,
      `${whole(events)} of ${whole(expected)}`,
      whole(rate),
      cell(whole(p50), whole(p99), whole(max)),
      ms(lag),
      cell(whole(server), whole(load)),
    ],
  )
  return (
    table(
      [
        `${whole(sessions)} sessions, ${CHUNKS_PER_SECOND} chunks/s each`,
        'delivered',
        'chunks/s',
        'worker → follower p50 / p99 / max ms',
        'sent late p99 ms',
        'CPU % of a core: server / worker and followers',
      ],
      [...lines, ['*target (1,000)*', 'all', '20,000', 'p99 ≤ 100', '', '']],
    ) +
    note(`${seconds} s; the chunks come over ${Math.ceil(sessions / SLOTS)} worker connections.`)
  )
}
