/**
 * Measures lists of runs in a project with a large number of runs: pages of 50 with and without
 * filters, and deep pages. It also measures how fast lost views are rebuilt, by deleting the views
 * before the server starts.
 */

import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { fill } from './load/fill.ts'
import type { Http } from './load/http.ts'
import { served } from './load/served.ts'
import { typeOf } from './load/templates.ts'
import { newFolder } from './support/baton.ts'
import { atRate, type Figures, inFlight, inTurn, spread, type Terms } from './support/measure.ts'
import { cell, ms, note, table, whole } from './support/table.ts'

export const about =
  'Pages of 50 of 1,000,000 runs, filtered and deep: time of a page; how fast views are rebuilt'

const RUNS = '/v1/projects/default/runs?limit='
/** Number of pages of 200 runs that are read to reach a deep page. */
const DEEP = 100
const RATE = 50
/** Maximum time for rebuilding the views, in milliseconds. */
const REBUILD_TIMEOUT_MS = 3_600_000

interface Page {
  readonly items: readonly { readonly id: string }[]
  readonly next_cursor?: string
}
async function pageOf(http: Http, path: string, full: number): Promise<Page> {
  const { status, body } = await http.get(path)
  if (status !== 200) throw new Error(`${path} was answered ${status}: ${body}`)
  const page = JSON.parse(body) as Page
  if (page.items.length !== full)
    throw new Error(`${path} has ${page.items.length} items instead of ${full}`)
  return page
}

/**
 * Reads `DEEP` pages, and returns the query parameters for the next page: the filter and the last
 * cursor.
 */
async function deep(http: Http, filter: string): Promise<string> {
  let cursor = ''
  for (let i = 0; i < DEEP; i++)
    cursor =
      (
        await pageOf(
          http,
          `${RUNS}200${filter}${cursor && `&cursor=${encodeURIComponent(cursor)}`}`,
          200,
        )
      ).next_cursor ?? ''
  return `${filter}&cursor=${encodeURIComponent(cursor)}`
}

async function measure(
  data: string,
  count: number,
  runs: number,
  profile: string | undefined,
): Promise<Figures> {
  rmSync(join(data, 'views'), { recursive: true, force: true })
  return served(
    { sync: 'always', data, within: REBUILD_TIMEOUT_MS, profile },
    16,
    async (server, http) => {
      const figures: Record<string, number> = { rebuild: runs / (server.took / 1000) }
      const queries = {
        'newest first': '',
        'status=failed': '&status=failed',
        'status=completed': '&status=completed',
        'one type of four': `&workflow_type=${typeOf(0)}`,
        'one type and status=completed': `&workflow_type=${typeOf(0)}&status=completed`,
        [`deep: ${whole(DEEP * 200)} runs further`]: await deep(http, ''),
        [`deep, status=completed: ${whole(DEEP * 200)} runs further`]: await deep(
          http,
          '&status=completed',
        ),
      }
      for (const [name, query] of Object.entries(queries)) {
        const get = () => pageOf(http, `${RUNS}50${query}`, 50)
        await inFlight(4, 40, get)
        const times = await atRate(RATE, count, get)
        Object.assign(figures, spread(name, times))
        const started = performance.now()
        await inFlight(16, count, get)
        figures[`${name} rate`] = count / ((performance.now() - started) / 1000)
      }
      return figures
    },
  )
}

/** Runs the benchmark and returns its table. */
export async function bench(terms: Terms): Promise<string> {
  const runs = terms.quick ? 50_000 : 1_000_000
  const count = terms.quick ? 200 : 1000
  const data = newFolder()
  try {
    const started = performance.now()
    const { bytes } = await fill(data, runs, terms.say)
    terms.say(
      `${whole(runs)} runs, ${whole(bytes / 2 ** 20)} MiB of journal, ` +
        `written in ${whole((performance.now() - started) / 1000)} s`,
    )
    const [[, figures] = ['', {} as Figures]] = await inTurn(
      [['list', () => measure(data, count, runs, terms.profile)]],
      terms,
      ({ rebuild = 0, 'newest first p99': p99 = 0 }) =>
        `views rebuilt at ${whole(rebuild)} runs/s, newest page p99 ${ms(p99)} ms`,
    )
    const names = Object.keys(figures)
      .filter((name) => name.endsWith(' p50'))
      .map((name) => name.slice(0, -4))
    const lines = names.map((name) => [
      name,
      cell(ms(figures[`${name} p50`] ?? Number.NaN), ms(figures[`${name} p99`] ?? Number.NaN)),
      whole(figures[`${name} rate`] ?? Number.NaN),
    ])
    return (
      table(
        [
          `pages of 50 of ${whole(runs)} runs`,
          `p50 / p99 ms at ${RATE} pages/s`,
          'pages/s, 16 in flight',
        ],
        [
          ...lines,
          ['*target (1,000,000 runs)*', 'p99 ≤ 20', ''],
          [
            'start with lost views',
            `${whole(figures['rebuild'] ?? Number.NaN)} runs/s rebuilt`,
            '',
          ],
        ],
      ) +
      note(
        `${whole(count)} pages each, begun at a fixed rate and timed from when they should have begun.`,
        `The journal (${whole(bytes / 2 ** 20)} MiB) is written directly, ` +
          'with the entries of real runs; its sync setting does not matter to lists.',
      )
    )
  } finally {
    rmSync(data, { recursive: true, force: true })
  }
}
