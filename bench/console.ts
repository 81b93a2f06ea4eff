/**
 * Benchmarks the console in Chromium with the browser's own measurements: the time until pages are
 * usable, the script time of each frame while a long list is scrolled, the processor time of live
 * pages, the time to open a large run, and the growth of pages during a soak.
 */
import { rmSync } from 'node:fs'
import { missingChromium, type Signed, startChromium } from './console/browser.ts'
import { type LiveCost, liveCost, liveViews, startLoad, startLongRun } from './console/live.ts'
import {
  type LiveLine,
  type Loads,
  liveTable,
  runTable,
  scrollTable,
  soakTable,
  viewsTable,
  worst,
} from './console/report.ts'
import { type Scrolled, scrolled } from './console/scroll.ts'
import { soak } from './console/soak.ts'
import { homeView, listView, loads, opened, runView, type View } from './console/views.ts'
import { fill } from './load/fill.ts'
import { Http } from './load/http.ts'
import { forEachOf, runsOf, startRun } from './load/work.ts'
import { type Baton, newFolder, startBaton } from './support/baton.ts'
import { median, SYNCS, type Terms } from './support/measure.ts'
import { ms, whole } from './support/table.ts'

export const about =
  'The console in Chromium: first views, scrolling through 100,000 runs, live pages, a soak, a run of 5,000 steps'
/**
 * The benchmark is not repeated as a whole, because its parts repeat the measurements that vary.
 */
export const repeats = { standard: 1, quick: 1 }
/** Returns what must be installed before the benchmark can run; undefined if nothing is missing. */
export const missing = missingChromium

const EVENTS_PER_SECOND = 200
/** Maximum time in milliseconds until the server has started and its views contain all runs. */
const READY_TIMEOUT_MS = 600_000
const amounts = (quick: boolean, seconds: number | undefined) =>
  quick
    ? { runs: 2000, steps: 2000, loads: 2, passes: 1, live: 4, soak: seconds ?? 12 }
    : { runs: 100_000, steps: 5000, loads: 10, passes: 3, live: 15, soak: seconds ?? 240 }

/** Executes a run with `steps` steps, and returns its id. */
async function largeRun(server: Baton, steps: number, say: Terms['say']): Promise<string> {
  let id = ''
  // Each item of a `for_each` counts as a step, and so does the `for_each` itself.
  const { work, stop } = await runsOf(() => forEachOf(steps - 1), server, say)
  await work('')
  stop()
  const http = new Http(server.port, server.key, 1)
  const { body } = await http.get('/v1/projects/default/runs?limit=1')
  id = (JSON.parse(body) as { items: { id: string }[] }).items[0]?.id ?? ''
  http.close()
  return id
}
/** Starts a run that waits for a signal that is never sent. */
async function waitingRun(server: Baton): Promise<string> {
  const http = new Http(server.port, server.key, 1)
  const steps = [{ id: 'gate', kind: 'wait_for_event', config: { event_type: 'signal.go' } }]
  const id = await startRun(http, JSON.stringify({ spec: { steps } }))
  http.close()
  return id
}

async function bothCaches(
  signed: Signed,
  name: string,
  view: View,
  count: number,
  say: Terms['say'],
): Promise<Loads[]> {
  const all: Loads[] = []
  for (const cache of ['cold', 'warm'] as const) {
    const times = await loads(signed, view, cache, count)
    all.push({ name: `${name}, ${cache}`, times })
    const shown = median(times.map((one) => one.shown))
    const reacted = median(times.map((one) => one.reacted))
    say(`${name}, ${cache}: shown after ${whole(shown)} ms, reacts after ${whole(reacted)} ms`)
  }
  return all
}

type Costs = Map<string, Map<string, LiveCost>>
/** Measures the live pages on a server and adds their costs to `costs`, by page and setting. */
async function measureLive(
  server: Baton,
  signed: Signed,
  setting: string,
  { quick, say }: Terms,
  seconds: number,
  costs: Costs,
): Promise<void> {
  const http = new Http(server.port, server.key, 1)
  const views = liveViews(await startLongRun(http))
  http.close()
  const load = await startLoad(server, EVENTS_PER_SECOND, 'live')
  try {
    for (const [name, open] of quick ? views.slice(-1) : views) {
      const cost = await liveCost(signed, open, load, seconds)
      costs.set(name, (costs.get(name) ?? new Map<string, LiveCost>()).set(setting, cost))
      say(`${name}, ${setting}: ${(cost.renderers * 100).toFixed(1)} % of a core`)
    }
  } finally {
    load.stop()
  }
}

/** Starts a server with the data, and a browser that is signed in; stops both at the end. */
async function withServer<T>(
  data: string,
  sync: string,
  profile: string | undefined,
  work: (server: Baton, signed: Signed) => Promise<T>,
): Promise<T> {
  const server = await startBaton({ sync, data, within: READY_TIMEOUT_MS, profile })
  try {
    const signed = await startChromium(server)
    try {
      return await work(server, signed)
    } finally {
      await signed.close()
    }
  } finally {
    await server.stop()
  }
}

/** Runs the benchmark and returns its tables. */
export async function bench(terms: Terms): Promise<string> {
  const { quick, say, profile } = terms
  const amount = amounts(quick, terms.seconds)
  const data = newFolder()
  const costs: Costs = new Map()
  const [[setting, sync], ...others] = SYNCS
  try {
    await fill(data, amount.runs, say)
    const tables = await withServer(data, sync, profile, async (server, signed) => {
      const run = await largeRun(server, amount.steps, say)
      const first = [
        ...(await bothCaches(signed, 'home page', homeView, amount.loads, say)),
        ...(await bothCaches(signed, 'list of runs', listView, amount.loads, say)),
      ]
      const large = await bothCaches(signed, 'by a link', runView(run), amount.loads, say)
      const clicks = await opened(signed, run, amount.loads)
      say(`by a click: shown after ${whole(median(clicks))} ms`)
      const passes: Scrolled[] = []
      for (let pass = 1; pass <= amount.passes; pass++) {
        const result = await scrolled(signed, amount.runs, { quick })
        passes.push(result)
        const greatest = [result.wheel, result.bar].map((of) => ms(worst(of.processor)))
        say(
          `${whole(result.runs)} runs scrolled: script up to ${greatest.join(' and ')} ms per frame`,
        )
      }
      const waiting = await waitingRun(server)
      await measureLive(server, signed, setting, terms, amount.live, costs)
      const load = await startLoad(server, EVENTS_PER_SECOND, 'soak')
      const rows = await soak(signed, waiting, amount.soak, say).finally(load.stop)
      return {
        before: [
          viewsTable(first, passes[0]?.runs ?? 0),
          runTable(amount.steps, large, clicks),
          scrollTable(passes),
        ],
        after: [soakTable(rows, amount.soak)],
      }
    })
    // Only the results for live pages depend on the fsync setting of the journal. With the other
    // settings, nothing else is therefore measured.
    if (!quick)
      for (const [other, lazy] of others)
        await withServer(data, lazy, undefined, (server, signed) =>
          measureLive(server, signed, other, terms, amount.live, costs),
        )
    const lines = [...costs].map(([name, of]): LiveLine => ({ name, costs: of }))
    return [...tables.before, liveTable(lines, amount.live), ...tables.after].join('\n\n')
  } finally {
    rmSync(data, { recursive: true, force: true })
  }
}
