/**
 * Measures a session with a large number of messages: how long its transcript takes to load, and
 * whether appending a message takes longer than in a new session.
 */

import type { Http } from './load/http.ts'
import { served } from './load/served.ts'
import { follow } from './load/sse.ts'
import { agentOf } from './load/turns.ts'
import {
  type Figures,
  inFlight,
  inTurn,
  percentile,
  spread,
  type Terms,
} from './support/measure.ts'
import { cell, ms, note, table, whole } from './support/table.ts'

export const about =
  'A transcript of 10,000 messages: its first page, its stream, and one message more'

const SESSIONS = '/v1/projects/default/sessions'
/** Number of messages per request. */
const BATCH = 100
const WORDS =
  'The third host of the second rack is being restarted, the others are green and take requests again.'

async function sessionOf(http: Http, agent_id: string): Promise<string> {
  const { status, body } = await http.post(
    SESSIONS,
    JSON.stringify({ agent_id, mode: 'new', compaction_policy: { strategy: 'disabled' } }),
  )
  const id = status === 200 ? /"id":"(\w+)"/.exec(body)?.[1] : undefined
  if (id === undefined) throw new Error(`a session was answered ${status}: ${body}`)
  return id
}
const append = async (http: Http, session: string, count: number): Promise<void> => {
  const messages = Array.from({ length: count }, (_, i) => ({
    role: i % 2 === 0 ? 'user' : 'assistant',
    content: [{ type: 'text', text: WORDS }],
  }))
  const { status, body } = await http.post(
    `${SESSIONS}/${session}/messages`,
    JSON.stringify({ messages }),
  )
  if (status >= 300) throw new Error(`messages were answered ${status}: ${body}`)
}
/**
 * Returns the milliseconds from the request for a stream until the stream reports that the stored
 * transcript is complete.
 */
function ready(port: number, key: string, session: string): Promise<number> {
  const from = performance.now()
  return new Promise((done, failed) => {
    let stop = () => {}
    let over = false
    follow(
      port,
      key,
      `${SESSIONS}/${session}/transcript/stream`,
      (text) => {
        if (!text.includes('event: stream.ready\n')) return
        over = true
        done(performance.now() - from)
        stop()
      },
      () => {
        if (!over) failed(new Error('a stream ended before it was ready'))
      },
    ).then((end) => {
      stop = end
      if (over) end()
    }, failed)
  })
}

async function measure(
  sync: string,
  count: number,
  looks: number,
  profile: string | undefined,
): Promise<Figures> {
  return served({ sync, profile }, 4, async (server, http) => {
    const agent = await agentOf(http, 'keeper', { system_prompt: 'script:\n  - say: Noted.\n' })
    const [long, young] = [await sessionOf(http, agent), await sessionOf(http, agent)]
    for (let i = 0; i < count; i += BATCH) await append(http, long, BATCH)
    const page = async () => {
      const { status, body } = await http.get(`${SESSIONS}/${long}/transcript`)
      if (status !== 200 || !body.includes('"messages":[{'))
        throw new Error(`a page was answered ${status}: ${body.slice(0, 200)}`)
    }
    const first = performance.now()
    await page()
    const cold = performance.now() - first
    const pages = await inFlight(1, looks, page)
    const streams: number[] = []
    for (let i = 0; i < looks / 2; i++) streams.push(await ready(server.port, server.key, long))
    const written = async (session: string) =>
      percentile(await inFlight(1, looks, () => append(http, session, 1)), 0.5)
    await written(young)
    return {
      cold,
      ...spread('page', pages),
      ...spread('stream', streams),
      young: await written(young),
      long: await written(long),
    }
  })
}

/** Runs the benchmark and returns its table. */
export async function bench(terms: Terms): Promise<string> {
  const [count, looks] = terms.quick ? [10_000, 50] : [10_000, 300]
  const measured = await inTurn(
    [['Baton, fsync always', () => measure('always', count, looks, terms.profile)]],
    terms,
    ({ 'page p50': page = 0, 'page p99': late = 0 }) =>
      `first page ${ms(page)} ms, p99 ${ms(late)} ms`,
  )
  const lines = measured.map(
    ([
      name,
      {
        cold = 0,
        'page p50': page = 0,
        'page p99': late = 0,
        'stream p50': stream = 0,
        'stream p99': slow = 0,
        young = 0,
        long = 0,
      },
    ]) => [
      name,
      cell(ms(page), ms(late)),
      ms(cold),
      cell(ms(stream), ms(slow)),
      cell(ms(young), ms(long)),
    ],
  )
  return (
    table(
      [
        `a session of ${whole(count)} messages`,
        'first page p50 / p99 ms',
        'the very first ms',
        'stream until ready p50 / p99 ms',
        'one message more p50 ms: new session / this one',
      ],
      [...lines, ['*target*', '≤ 30', '', '', 'equal']],
    ) +
    note(
      'One request at a time; the messages were appended a hundred at a time, and the session does not compact.',
    )
  )
}
