/** Opens the console in a browser, signed in, and goes to its pages. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import type { TAP } from 'tap'
import { type Service, service } from '../../support/service.ts'
import { untilTrue } from './browser.ts'

/**
 * Starts a service for a test in a browser. When the test ends, the browser is closed, and then the
 * service is stopped.
 */
export async function serviceFor(t: TAP, browser: Browser): Promise<Service> {
  const s = await service()
  t.teardown(async () => {
    await browser.close()
    await s.stop()
  })
  return s
}

/** A browser context that is signed in to the console. */
export interface ConsoleBrowser {
  readonly context: BrowserContext
  /** Opens a tab at an address of the console, such as `/p/default/runs`. */
  open(path: string): Promise<Page>
  /** Errors of pages: exceptions, errors in the log of the browser, and blocked content. */
  readonly faults: readonly string[]
}

/**
 * Signs in with a key, without the sign-in page, and returns the browser context. The content
 * security policy of pages stays in force unless `bypassCSP` is set.
 */
export async function signedIn(
  browser: Browser,
  s: Pick<Service, 'url' | 'key'>,
  {
    key = s.key,
    width = 1280,
    height = 800,
    dark = false,
    bypassCSP = false,
  }: {
    readonly key?: string
    readonly width?: number
    readonly height?: number
    readonly dark?: boolean
    /** Whether to bypass the content security policy, which blocks the script of axe. */
    readonly bypassCSP?: boolean
  } = {},
): Promise<ConsoleBrowser> {
  const context = await browser.newContext({
    viewport: { width, height },
    colorScheme: dark ? 'dark' : 'light',
    reducedMotion: 'reduce',
    bypassCSP,
    locale: 'en-US',
    timezoneId: 'UTC',
  })
  const faults: string[] = []
  const watch = (page: Page): void => {
    page.on('pageerror', (error) => faults.push(String(error.stack ?? error)))
    page.on('console', (message) => {
      if (message.type() === 'error') faults.push(message.text())
    })
  }
  // The sign-in page itself is tested in `test/scenarios/console/frame.test.ts`.
  const answer = await context.request.post(`${s.url}/v1/auth/console/sessions`, {
    data: { credential: key },
    headers: { origin: s.url },
  })
  if (!answer.ok()) throw new Error(`the sign-in failed: ${await answer.text()}`)
  return {
    context,
    faults,
    async open(path) {
      const page = await context.newPage()
      watch(page)
      await page.goto(`${s.url}${path}`)
      await page.locator('h1').first().waitFor()
      return page
    },
  }
}

/**
 * Returns the URL patterns of all pages. They are read from the source of the route table, because
 * its modules need a browser.
 */
export function pagePaths(): string[] {
  const router = join(import.meta.dirname, '../../../console/router')
  return readdirSync(router).flatMap((name) => {
    const text = readFileSync(join(router, name), 'utf8')
    const prefix = /const P = '([^']+)'/.exec(text)?.[1] ?? ''
    return [...text.matchAll(/\bpath: (?:['`](\/[^'`]+|\$\{P\}[^'`]*)['`]|P,)/g)].map(
      ([, path = prefix]) => path.replace('${P}', prefix),
    )
  })
}

/** Navigates to a path as a link does, and waits until the page has its data. */
export async function visit(page: Page, path: string): Promise<void> {
  await page.evaluate(`(() => {
    const link = document.createElement('a')
    link.href = ${JSON.stringify(path)}
    document.body.append(link)
    link.click()
    link.remove()
  })()`)
  await page.waitForURL((url) => url.pathname === path.split('?')[0])
  await untilTrue(
    page,
    `document.querySelector('main h1') !== null && document.querySelector('.skeleton') === null`,
  )
}
