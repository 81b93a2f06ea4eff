/**
 * A soak: pages stay open while runs start and end, and one page repeatedly visits the pages of the
 * console. A leak shows as growth of the heap, elements or listeners of a page.
 */
import type { CDPSession, Page } from 'playwright-core'
import { pause } from '../support/measure.ts'
import { measuring, type PageSize, type Signed, sizeOf } from './browser.ts'
import { objectBytes } from './heap-objects.ts'
import { openView } from './live.ts'
import { homeView, listView, runView } from './views.ts'

/** Maximum number of rows of measurements. */
const MAX_ROWS = 12
/** Milliseconds that the visiting page spends on each page. */
const STAY_MS = 300
/**
 * Paths, below the project, of the pages that are visited in turn. After `/runs`, the newest run is
 * opened. The visiting page is measured at the last path.
 */
const VISITED = ['/runs', '/workflows', '/inbox', '/runs', '/workers', '/tables', '/agents', '']
/**
 * Minimum duration of an interval in seconds, which is enough for all visits. A soak has at least
 * three intervals, even if they are shorter.
 */
const MIN_INTERVAL_S = 4

/**
 * Maximum duration of the warm-up in seconds. The pages fill the caches during the warm-up and are
 * measured only afterwards. The warm-up is never longer than the soak.
 */
const MAX_WARM_UP_S = 60

/** The names of the pages, in the order of `SoakRow.sizes`. */
export const SOAKED = ['list', 'list, scrolled down', 'run', 'home', 'visits'] as const
/** The size of a page during a soak. */
interface SoakSize extends PageSize {
  /** Bytes of the objects in the heap, without compiled code. */
  readonly objects: number
}
/** The sizes of the pages, `at` seconds after the start. */
export interface SoakRow {
  readonly at: number
  readonly sizes: readonly SoakSize[]
}

/** Follows the links of the navigation, and opens the newest run of the list. */
async function visitAll(page: Page): Promise<void> {
  for (const path of VISITED) {
    await page.evaluate(`document.querySelector('a.side-link[href="/p/default${path}"]')?.click()`)
    await pause(STAY_MS)
    if (path !== '/runs') continue
    await page.evaluate(`document.querySelector('a.run-name')?.click()`)
    await pause(STAY_MS)
  }
}

/**
 * Keeps the pages open for a warm-up, in which caches fill, and then for `seconds` seconds.
 * Measures the pages at the start and at the end of each interval.
 * @param run id of a waiting run.
 */
export async function soak(
  { context: create, url }: Signed,
  run: string,
  seconds: number,
  say: (line: string) => void,
): Promise<SoakRow[]> {
  const context = await create()
  try {
    const pages: Page[] = []
    for (const view of [listView, listView, runView(run), homeView, homeView])
      pages.push(await openView(context, url, view))
    await pages[1]?.evaluate(`document.querySelector('.virtual').scrollTop = 4000`)
    const sessions: CDPSession[] = []
    for (const page of pages) sessions.push(await measuring(page))
    const visitor = pages.at(-1) as Page
    const rows: SoakRow[] = []
    const intervals = Math.min(MAX_ROWS - 1, Math.max(3, Math.floor(seconds / MIN_INTERVAL_S)))
    const opened = performance.now()
    const from = opened + Math.min(MAX_WARM_UP_S, seconds) * 1000
    for (let interval = 0; interval <= intervals; interval++) {
      const end = from + (interval * seconds * 1000) / intervals
      do await visitAll(visitor)
      while (performance.now() < end)
      const sizes: SoakSize[] = []
      for (const session of sessions)
        sizes.push({ ...(await sizeOf(session)), objects: await objectBytes(session) })
      const at = (performance.now() - opened) / 1000
      rows.push({ at, sizes })
      const all = sizes.map(({ objects }) => (objects / 2 ** 20).toFixed(2)).join(' / ')
      say(`soak, ${Math.round(at)} s: ${all} MiB of objects`)
    }
    return rows
  } finally {
    await context.close()
  }
}
