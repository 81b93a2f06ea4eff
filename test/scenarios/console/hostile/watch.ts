/**
 * A signed-in browser that is watched while it shows hostile content. `test/console/inspect/` is
 * injected into its pages. Requests to other origins, new windows, exceptions and errors in the log
 * of the browser are faults.
 */
import { join } from 'node:path'
import { buildSync } from 'esbuild'
import type { Browser, BrowserContext, CDPSession, Page } from 'playwright-core'
import type { Service } from '../../../support/service.ts'
import { signedIn, visit } from '../../support/console.ts'

/** The findings on a page, as `test/console/inspect/walk.ts` reports them. */
interface Walked {
  readonly faults: readonly string[]
  readonly seen: readonly number[]
  readonly steps: number
}
export interface Watched {
  readonly context: BrowserContext
  readonly page: Page
  /**
   * Opens the page at a path, and uses its tabs and at most `most` buttons in each tab, with their
   * menus and dialogs. The reported faults contain the path.
   */
  walk(path: string, most: number): Promise<Walked>
  /** Inspects the current state of the page. */
  look(where: string): Promise<readonly string[]>
  /** Returns the processor time, in seconds, that the page has used so far. */
  spent(): Promise<number>
  /**
   * Returns the new faults since the last call that were observed outside the document, such as
   * requests to other origins.
   */
  faults(): readonly string[]
  close(): Promise<void>
}

const inspection = (): string => {
  const entry = join(import.meta.dirname, '../../../console/inspect/main.ts')
  const { outputFiles } = buildSync({
    entryPoints: [entry],
    bundle: true,
    write: false,
    format: 'iife',
    tsconfigRaw: '{}',
  })
  return outputFiles[0]?.text ?? ''
}

/**
 * Opens a signed-in browser context and begins to watch it.
 * @param tolerated pattern of log errors that are not faults.
 */
export async function watched(
  browser: Browser,
  s: Service,
  tolerated = /status of 4\d\d/,
): Promise<Watched> {
  const { context, open, faults } = await signedIn(browser, s)
  await context.addInitScript({ content: inspection() })
  await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: s.url })
  const outside: string[] = []
  let known = 0
  context.on('request', (request) => {
    const url = request.url()
    if (!url.startsWith(`${s.url}/`) && !/^(blob|data|chrome(-extension)?):/.test(url))
      outside.push(`request of ${url}`)
  })
  const page = await open('/account')
  page.on('dialog', (dialog) => void dialog.accept())
  context.on('page', (opened) => outside.push(`new window ${opened.url()}`))
  const cdp: CDPSession = await context.newCDPSession(page)
  await cdp.send('Performance.enable', { timeDomain: 'threadTicks' })
  return {
    context,
    page,
    async walk(path, most) {
      if (page.url() !== `${s.url}${path}`) await visit(page, path)
      const found = (await page.evaluate(`inspection.walk(${most})`)) as Walked
      return { ...found, faults: found.faults.map((fault) => `${path} ${fault}`) }
    },
    async look(where) {
      const found = (await page.evaluate('inspection.settle().then(inspection.look)')) as Walked
      return found.faults.map((fault) => `${where}: ${fault}`)
    },
    async spent() {
      const { metrics } = await cdp.send('Performance.getMetrics')
      return metrics.find(({ name }) => name === 'TaskDuration')?.value ?? 0
    },
    faults() {
      const all = [...outside, ...faults.filter((fault) => !tolerated.test(fault))]
      const fresh = all.slice(known)
      known = all.length
      return fresh
    },
    close: () => context.close(),
  }
}
