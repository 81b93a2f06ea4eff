/** Measures the processor time and the long tasks of open pages while runs start and end. */
import type { BrowserContext, Page } from 'playwright-core'
import { Http } from '../load/http.ts'
import { follow } from '../load/sse.ts'
import { runOf, startRun } from '../load/work.ts'
import { instantWorker } from '../load/worker.ts'
import type { Target } from '../support/baton.ts'
import { pause } from '../support/measure.ts'
import { cpuSeconds } from '../support/processes.ts'
import { processesOf, type Signed } from './browser.ts'
import { LONG } from './trace.ts'
import { homeView, listView, runView, type View } from './views.ts'

/** Number of events that a run of one step adds to the stream of its project. */
const EVENTS_PER_RUN = 10
/** Milliseconds to wait until opened pages have settled. */
const SETTLE_MS = 4000
const SLOTS = 50
/** Number of items in the run whose page is open during the measurement. */
const ITEMS = 5000

/** A load of runs that start and end. */
export interface LiveLoad {
  /** Number of events of the project since the load began. */
  readonly events: number
  stop(): void
}
/**
 * Starts runs of one step, so that the project has the given number of events per second.
 * @param name name of the worker, different from that of the previous load.
 */
export async function startLoad(
  target: Target,
  eventsPerSecond: number,
  name: string,
): Promise<LiveLoad> {
  const http = new Http(target.port, target.key, SLOTS)
  const stopWorker = await instantWorker(target, SLOTS, () => {}, name)
  let events = 0
  const stopFollowing = await follow(
    target.port,
    target.key,
    '/v1/projects/default/runs/events',
    (text) => {
      events += text.split('\ndata:').length - 1
    },
  )
  let started = 0
  const from = performance.now()
  const timer = setInterval(() => {
    const due = ((performance.now() - from) / 1000) * (eventsPerSecond / EVENTS_PER_RUN)
    for (; started < due; started++)
      void startRun(http, runOf(1, `live ${started}`)).catch(() => {})
  }, 25)
  return {
    get events() {
      return events
    },
    stop: () => {
      clearInterval(timer)
      stopFollowing()
      stopWorker()
      http.close()
    },
  }
}

/** Starts a long run, which produces about ten events per second. */
export function startLongRun(http: Http): Promise<string> {
  const nap = { id: 'nap', kind: 'sleep', config: { duration: '1s' } }
  const items = Array.from({ length: ITEMS }, (_, item) => item)
  return startRun(
    http,
    JSON.stringify({
      spec: {
        limits: { max_steps: 2 * ITEMS },
        steps: [
          { id: 'all', kind: 'for_each', config: { items, max_concurrency: 2, steps: [nap] } },
        ],
      },
    }),
  )
}

/** Opens a view in a new page and waits for its data. */
export async function openView(context: BrowserContext, url: string, view: View): Promise<Page> {
  const page = await context.newPage()
  await page.goto(`${url}${view.path}`)
  await page.locator(view.shown).first().waitFor()
  return page
}

/** The cost of open pages. */
export interface LiveCost {
  /** Share of a core that the renderer processes used: those of pages and of the SharedWorker. */
  readonly renderers: number
  /** Share of a core that the other processes of the browser used, for drawing and the network. */
  readonly others: number
  readonly longTasks: number
  readonly eventsPerSecond: number
}
/** Returns the pages that are measured: each alone, and all together. */
export const liveViews = (run: string): readonly (readonly [string, readonly View[]])[] => {
  const views = [
    ['the list of runs', listView],
    ['a run that works', runView(run)],
    ['the home page', homeView],
  ] as const
  return [
    ...views.map(([name, view]) => [name, [view]] as const),
    ['all three, each in a visible window', views.map(([, view]) => view)],
  ]
}

/** Opens pages and measures their cost for `seconds` seconds during a load. */
export async function liveCost(
  { context: create, session, url }: Signed,
  views: readonly View[],
  load: LiveLoad,
  seconds: number,
): Promise<LiveCost> {
  const context = await create()
  try {
    const pages: Page[] = []
    for (const view of views) pages.push(await openView(context, url, view))
    await pause(SETTLE_MS)
    for (const page of pages)
      await page.evaluate(`void new PerformanceObserver((list) => {
        globalThis.benchLong = (globalThis.benchLong ?? 0) +
          list.getEntries().filter(({ duration }) => duration > ${LONG}).length
      }).observe({ type: 'longtask' })`)
    const { renderers, others } = await processesOf(session)
    const look = () => ({
      at: performance.now() / 1000,
      events: load.events,
      renderers: cpuSeconds({ load: renderers }).load ?? 0,
      others: cpuSeconds({ load: others }).load ?? 0,
    })
    const before = look()
    await pause(seconds * 1000)
    const after = look()
    const rate = (name: keyof typeof before): number =>
      (after[name] - before[name]) / (after.at - before.at)
    let longTasks = 0
    for (const page of pages) longTasks += Number(await page.evaluate('globalThis.benchLong ?? 0'))
    return {
      renderers: rate('renderers'),
      others: rate('others'),
      longTasks,
      eventsPerSecond: rate('events'),
    }
  } finally {
    await context.close()
  }
}
