/**
 * Chromium for the console benchmark: signed-in browser contexts, the processes of the pages, and
 * measurements over the DevTools protocol.
 */
import { readFileSync } from 'node:fs'
import {
  type Browser,
  type BrowserContext,
  type CDPSession,
  chromium,
  type Page,
} from 'playwright-core'
import { signedIn } from '../../test/scenarios/support/console.ts'
import { CHROMIUM_ARGS, chromiumPath } from '../../test/support/chromium.ts'
import type { Target } from '../support/baton.ts'
import { isRelevant, type TraceEvent } from './trace.ts'

/** Maximum time in milliseconds to wait for an expected state of a page. */
export const MAX_WAIT_MS = 60_000
/** Size of the browser window in pixels. */
const VIEW = { width: 1440, height: 900 }

/** Returns what must be installed before the benchmark can run; undefined if nothing is missing. */
export const missingChromium = (): string | undefined =>
  chromiumPath() === undefined
    ? 'There is no Chromium on the PATH. Install it (Debian: apt install chromium), ' +
      'or name its executable with BATON_CHROMIUM.'
    : undefined

/** A browser that has signed in to a server. */
export interface Signed {
  readonly browser: Browser
  readonly url: string
  /** A DevTools session with the browser itself. */
  readonly session: CDPSession
  /** Creates a signed-in context with an empty cache. */
  context(): Promise<BrowserContext>
  close(): Promise<void>
}
/** Starts Chromium, with visible scroll bars, and signs in with the key of the server. */
export async function startChromium({ port, key }: Target): Promise<Signed> {
  const executablePath = chromiumPath()
  if (executablePath === undefined) throw new Error(missingChromium())
  const url = `http://127.0.0.1:${port}`
  const browser = await chromium.launch({
    executablePath,
    args: [...CHROMIUM_ARGS],
    ignoreDefaultArgs: ['--hide-scrollbars'],
  })
  const { context: first, open } = await signedIn(browser, { url, key })
  // The first page stores the signed-in state in the browser.
  await open('/')
  const storageState = await first.storageState()
  await first.close()
  return {
    browser,
    url,
    session: await browser.newBrowserCDPSession(),
    context: async () => {
      const context = await browser.newContext({ viewport: VIEW, storageState, locale: 'en-US' })
      context.setDefaultTimeout(MAX_WAIT_MS)
      return context
    },
    close: () => browser.close(),
  }
}

/**
 * Whether a process belongs to the user interface of the browser itself, which is not shown, or has
 * ended.
 */
function isWindow(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes('--top-chrome-webui')
  } catch {
    return true
  }
}
/**
 * Returns the ids of a browser's processes in two groups: those of pages and workers, and all
 * others.
 */
export async function processesOf(
  session: CDPSession,
): Promise<{ readonly renderers: number[]; readonly others: number[] }> {
  const { processInfo } = await session.send('SystemInfo.getProcessInfo')
  const idsOf = (wanted: boolean): number[] =>
    processInfo
      .filter(({ type, id }) => (type === 'renderer' && !isWindow(id)) === wanted)
      .map(({ id }) => id)
  return { renderers: idsOf(true), others: idsOf(false) }
}

/** The categories of trace events that `trace.ts` evaluates. */
const CATEGORIES = [
  'blink.user_timing',
  'devtools.timeline',
  'disabled-by-default-devtools.timeline',
  'disabled-by-default-devtools.timeline.frame',
  'disabled-by-default-lighthouse',
  'v8.execute',
]
const BUFFER_KB = 400_000

/**
 * Traces a page during `work`. Returns the relevant events, including the performance mark `mark`,
 * which identifies the page's main thread.
 * @throws Error if the buffer of the browser was too small.
 */
export async function traced(
  { session }: Signed,
  page: Page,
  mark: string,
  work: () => Promise<void>,
): Promise<TraceEvent[]> {
  const events: TraceEvent[] = []
  const collect = ({ value }: { readonly value: readonly object[] }): void => {
    for (const event of value as TraceEvent[]) if (isRelevant(event, mark)) events.push(event)
  }
  session.on('Tracing.dataCollected', collect)
  await session.send('Tracing.start', {
    transferMode: 'ReportEvents',
    traceConfig: {
      recordMode: 'recordUntilFull',
      traceBufferSizeInKb: BUFFER_KB,
      includedCategories: CATEGORIES,
      excludedCategories: ['*'],
    },
  })
  await page.evaluate(`void performance.mark(${JSON.stringify(mark)})`)
  await work()
  const complete = new Promise<boolean>((done) =>
    session.once('Tracing.tracingComplete', ({ dataLossOccurred }) => done(dataLossOccurred)),
  )
  await session.send('Tracing.end')
  const lost = await complete
  session.off('Tracing.dataCollected', collect)
  if (lost) throw new Error('the trace is incomplete, because its buffer is too small')
  return events
}

/** The size of a page after garbage collection. */
export interface PageSize {
  /** Used bytes of the JavaScript heap. */
  readonly heap: number
  readonly nodes: number
  readonly listeners: number
}
/** Runs garbage collection in a page, and returns the size of the page afterwards. */
export async function sizeOf(cdp: CDPSession): Promise<PageSize> {
  // The second collection frees the objects that the first one has finalized.
  for (let round = 0; round < 2; round++) await cdp.send('HeapProfiler.collectGarbage')
  const { metrics } = await cdp.send('Performance.getMetrics')
  const of = (wanted: string): number =>
    metrics.find(({ name }) => name === wanted)?.value ?? Number.NaN
  return { heap: of('JSHeapUsedSize'), nodes: of('Nodes'), listeners: of('JSEventListeners') }
}
/** Opens a DevTools session with a page, for `sizeOf`. */
export async function measuring(page: Page): Promise<CDPSession> {
  const cdp = await page.context().newCDPSession(page)
  await cdp.send('Performance.enable')
  return cdp
}
