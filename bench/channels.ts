/**
 * Measures one channel with a large number of messages: the rate at which messages are accepted,
 * the time to read pages of lists, and the delay until a message reaches many followers. Each
 * message is sent and acknowledged separately.
 */

import { type Lateness, startCrowd } from './load/crowd.ts'
import type { Http } from './load/http.ts'
import { served } from './load/served.ts'
import { allowed } from './support/limits.ts'
import {
  atRate,
  type Figures,
  inFlight,
  inTurn,
  pause,
  percentile,
  spread,
  type Terms,
} from './support/measure.ts'
import { cell, ms, note, table, whole } from './support/table.ts'

export const about =
  'Messages per second into one channel, pages of 50 of 1,000,000 messages, a message to 1,000 followers'

const CHANNELS = '/v1/projects/default/channels'
/** Number of messages in flight. */
const CONCURRENCY = 256
const WORDS = ['deploy', 'review', 'lunch', 'release', 'incident', 'thanks', 'merged', 'blocked']
/** Every 1,000th message is a reply in the thread of the first message. */
const EVERY = 1000
const PAGES_PER_SECOND = 50
const MESSAGES_PER_SECOND = 5

async function made(http: Http, path: string, body: object): Promise<string> {
  const { status, body: text } = await http.post(path, JSON.stringify(body))
  const id = status === 201 ? /"id":"(\w+)"/.exec(text)?.[1] : undefined
  if (id === undefined) throw new Error(`${path} was answered ${status}: ${text}`)
  return id
}
async function pageOf(http: Http, path: string, least: number): Promise<string | undefined> {
  const { status, body } = await http.get(path)
  const { items, next_cursor } = JSON.parse(body) as {
    items?: readonly unknown[]
    next_cursor?: string
  }
  if (status !== 200 || !items || items.length < least)
    throw new Error(`${path} was answered ${status} with ${items?.length ?? 0} items`)
  return next_cursor
}

/** Returns the delivery delay of messages to many followers, in milliseconds. */
async function delivery(
  port: number,
  key: string,
  channel: string,
  http: Http,
  clients: number,
  seconds: number,
): Promise<Lateness> {
  const crowd = startCrowd('followers-load.ts', [
    String(port),
    key,
    String(clients),
    `${CHANNELS}/${channel}/events`,
    '}},"created_at":"',
  ])
  try {
    await crowd.ready()
    await pause(1000)
    const { lateness } = await crowd.counting(async () => {
      await atRate(MESSAGES_PER_SECOND, MESSAGES_PER_SECOND * seconds, (i) =>
        made(http, `${CHANNELS}/${channel}/messages`, { content: `live ${i}`, metadata: {} }),
      )
      await pause(1000)
    })
    return lateness
  } finally {
    crowd.stop()
  }
}

async function measure(
  sync: string,
  count: number,
  pages: number,
  clients: number,
  seconds: number,
  profile: string | undefined,
): Promise<Figures> {
  return served({ sync, profile }, CONCURRENCY, async (server, http) => {
    const channel = await made(http, CHANNELS, { name: 'talk' })
    const path = `${CHANNELS}/${channel}/messages`
    const root = await made(http, path, { content: 'the first one' })
    const send = (i: number) =>
      made(http, path, {
        content: `${WORDS[i % WORDS.length]} ${i} ${WORDS[(i >> 3) % WORDS.length]}`,
        ...(i % EVERY === 0 && { reply_to: root }),
      })
    await inFlight(CONCURRENCY, 1000, send)
    const started = performance.now()
    const times = await inFlight(CONCURRENCY, count, send)
    const figures: Record<string, number> = {
      rate: count / ((performance.now() - started) / 1000),
      'sent p50': percentile(times, 0.5),
      'sent p99': percentile(times, 0.99),
    }
    let cursor: string | undefined
    for (let i = 0; i < 20; i++)
      cursor = await pageOf(
        http,
        `${path}?limit=200${cursor === undefined ? '' : `&cursor=${encodeURIComponent(cursor)}`}`,
        200,
      )
    const lists = {
      newest: `${path}?limit=50`,
      'deep: 4,000 messages further': `${path}?limit=50&cursor=${encodeURIComponent(cursor ?? '')}`,
      'one thread': `${path}?limit=50&reply_to=${root}`,
      channels: `${CHANNELS}?limit=50`,
      'search for a common word': `${CHANNELS}/search?limit=50&q=deploy`,
      'search for two words': `${CHANNELS}/search?limit=50&q=deploy%20lunch`,
    }
    for (const [name, list] of Object.entries(lists)) {
      const get = () => pageOf(http, list, 1)
      await inFlight(4, 20, get)
      const taken = await atRate(PAGES_PER_SECOND, pages, get)
      Object.assign(figures, spread(name, taken))
    }
    const { p50, p99, events } = await delivery(
      server.port,
      server.key,
      channel,
      http,
      clients,
      seconds,
    )
    return {
      ...figures,
      'delivered p50': p50,
      'delivered p99': p99,
      events,
      expected: clients * MESSAGES_PER_SECOND * seconds,
    }
  })
}

/** Runs the benchmark and returns its table. */
export async function bench(terms: Terms): Promise<string> {
  const count = terms.quick ? 10_000 : 1_000_000
  const pages = terms.quick ? 100 : 1000
  const clients = allowed(terms.quick ? 300 : 1000, terms.say)
  const seconds = terms.quick ? 5 : 30
  const [[, figures] = ['', {} as Figures]] = await inTurn(
    [
      [
        'Baton, fsync always',
        () => measure('always', count, pages, clients, seconds, terms.profile),
      ],
    ],
    terms,
    ({ rate = 0, 'newest p99': page = 0, 'delivered p99': late = 0 }) =>
      `${whole(rate)} messages/s, newest page p99 ${ms(page)} ms, delivered p99 ${ms(late)} ms`,
  )
  const of = (name: string) => figures[name] ?? Number.NaN
  const lists = Object.keys(figures)
    .filter((name) => name.endsWith(' p50') && !/^(sent|delivered)/.test(name))
    .map((name) => name.slice(0, -4))
  return (
    table(
      [`one channel, ${whole(count)} messages, fsync always`, 'rate', 'p50 / p99 ms'],
      [
        [
          `messages, ${CONCURRENCY} in flight`,
          `${whole(of('rate'))}/s`,
          cell(ms(of('sent p50')), ms(of('sent p99'))),
        ],
        ...lists.map((name) => [
          `page of 50: ${name}`,
          `${PAGES_PER_SECOND}/s`,
          cell(ms(of(`${name} p50`)), ms(of(`${name} p99`))),
        ]),
        [
          `a message to ${whole(clients)} followers, ${whole(of('events'))} of ${whole(of('expected'))} delivered`,
          `${MESSAGES_PER_SECOND}/s`,
          cell(whole(of('delivered p50')), whole(of('delivered p99'))),
        ],
        ['*target*', '≥ 2,000/s', 'pages p99 ≤ 20, delivery p99 ≤ 100'],
      ],
    ) +
    note(
      'Messages come from one client process with 256 connections; each is answered after its fsync.',
    )
  )
}
