/**
 * Every page of the console, with records of each kind, in two views: wide and light, narrow and
 * dark. axe finds no violations, the page does not scroll sideways, no error is logged, and the
 * layout matches the recorded layout. Skipped without Chromium.
 *
 * PICTURES=accept records the layouts. PICTURES=docs retakes the pictures in docs/console/pages/.
 * BATON_SCREENSHOT names a folder that receives pictures of every page in three widths and both
 * themes.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Browser, CDPSession } from 'playwright-core'
import t from 'tap'
import { fillPath } from '../../../console/router/match.ts'
import { furnish, type Place } from '../../hostile/support/rows.ts'
import { faultsOf, inBrowser } from '../support/browser.ts'
import { pagePaths, serviceFor, signedIn, visit } from '../support/console.ts'
import { listOf } from '../support/given.ts'
import { layoutDifference, layoutOf } from './picture.ts'
import { takePictures } from './pictures/take.ts'

const LAYOUTS = join(import.meta.dirname, 'layouts.json')
/**
 * Share of the cells of a layout that may differ, because records, times and fonts vary between
 * runs.
 */
const TOLERATED = 0.12
const accept = process.env['PICTURES'] === 'accept'
const docs = process.env['PICTURES'] === 'docs'
const folder = process.env['BATON_SCREENSHOT']
const views = [
  { name: 'light', dark: false, width: 1280, height: 800 },
  { name: 'dark', dark: true, width: 390, height: 844 },
]
/**
 * Takes a picture of the visible part of a page, as PNG. The weak compression without filters saves
 * processor time here and in the browser.
 */
async function pictureOf(cdp: CDPSession): Promise<Buffer> {
  const options = { format: 'png', optimizeForSpeed: true } as const
  const { data } = await cdp.send('Page.captureScreenshot', options)
  return Buffer.from(data, 'base64')
}
/** Returns the id of the record for the last parameter of a route. */
function recordOf(path: string, place: Place, action: string): string {
  const named: Readonly<Record<string, string>> = {
    runs: place.run,
    workflows: place.workflow,
    loops: place.loop,
    actions: action,
    events: place.event,
    channels: place.channel,
    sessions: place.session,
    agents: place.agent,
    toolkits: place.toolkit,
    skills: place.skill,
    tables: place.table,
    artifacts: place.upload,
    environments: place.environment,
    webhooks: place.webhook,
  }
  const kind = path.split('/')[3] ?? ''
  const record = named[kind]
  if (record === undefined) throw new Error(`${path}: say here which record it shows`)
  return record
}

await inBrowser(t, tryOut)

async function tryOut(browser: Browser): Promise<void> {
  const s = await serviceFor(t, browser)
  const place = await furnish(s)
  const [first] = listOf(await s.ok('action.list', { project: place.handle }))
  const action = String(first?.['name'])
  const paths = pagePaths().map((path) => {
    const slots = { project: place.handle }
    const last = path.split('/').at(-1) ?? ''
    const filled = fillPath(
      path,
      last.startsWith(':') && last !== ':project'
        ? { ...slots, [last.slice(1)]: recordOf(path, place, action) }
        : slots,
    )
    return { path, filled }
  })
  const layouts: Record<string, string> = accept
    ? {}
    : (JSON.parse(readFileSync(LAYOUTS, 'utf8')) as Record<string, string>)

  for (const { name, dark, width, height } of views)
    t.test(`every page, ${name} and ${width} pixels wide`, async (t) => {
      const { context, open, faults } = await signedIn(browser, s, {
        dark,
        width,
        height,
        bypassCSP: true,
      })
      const page = await open('/account')
      const cdp = await context.newCDPSession(page)
      for (const { path, filled } of paths) {
        await visit(page, filled)
        t.strictSame(await faultsOf(page), [], `axe, ${path}`)
        t.ok(
          await page.evaluate('document.documentElement.scrollWidth <= innerWidth'),
          `${path} does not scroll sideways`,
        )
        const key = `${path} ${name}`
        const layout = layoutOf(await pictureOf(cdp))
        if (accept) layouts[key] = layout
        else
          t.ok(
            layoutDifference(layout, layouts[key] ?? '') <= TOLERATED,
            `the layout of ${key} is the recorded one (PICTURES=accept records it)`,
          )
      }
      t.strictSame(faults, [])
      await context.close()
    })

  t.test('the recorded layouts are those of existing pages', async (t) => {
    if (accept) writeFileSync(LAYOUTS, `${JSON.stringify(layouts, undefined, 1)}\n`)
    const wanted = paths.flatMap(({ path }) => views.map(({ name }) => `${path} ${name}`))
    t.strictSame(Object.keys(layouts).toSorted(), wanted.toSorted())
  })

  if (folder || docs)
    t.test('pictures', { timeout: 0 }, async () => takePictures(browser, { folder, docs }))
}
