/**
 * Every page of the console, with records of each kind: wide and light, narrow and dark. axe finds
 * nothing, the page does not scroll sideways, no error is logged, and the layout is the recorded
 * one. Skipped without Chromium.
 *
 * PICTURES=accept records the layouts. BATON_SCREENSHOT names a folder that receives a picture of
 * every page in three widths and both themes.
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import t from 'tap'
import { fillPath } from '../../../console/router/match.ts'
import { furnish, type Place } from '../../hostile/support/rows.ts'
import { service } from '../../support/service.ts'
import { faultsOf, inBrowser, untilTrue } from '../support/browser.ts'
import { signedIn } from '../support/console.ts'
import { listOf } from '../support/given.ts'
import { layoutDifference, layoutOf } from './picture.ts'

const LAYOUTS = join(import.meta.dirname, 'layouts.json')
/** Share of cells that may differ: lists of other records, times and fonts. */
const TOLERATED = 0.12
const accept = process.env['PICTURES'] === 'accept'
const folder = process.env['BATON_SCREENSHOT']
const views = [
  { name: 'light', dark: false, width: 1280, height: 800 },
  { name: 'dark', dark: true, width: 390, height: 844 },
]
const pictured = [390, 1280, 2560].flatMap((width) =>
  [false, true].map((dark) => ({
    name: `${width}-${dark ? 'dark' : 'light'}`,
    dark,
    width,
    height: width === 390 ? 844 : width === 1280 ? 800 : 1440,
  })),
)

/**
 * Returns the addresses in the table of pages. They are read from its source, because its modules
 * need a browser.
 */
function patterns(): string[] {
  const router = join(import.meta.dirname, '../../../console/router')
  return readdirSync(router).flatMap((name) => {
    const text = readFileSync(join(router, name), 'utf8')
    const prefix = /const P = '([^']+)'/.exec(text)?.[1] ?? ''
    return [...text.matchAll(/\bpath: (?:['`](\/[^'`]+|\$\{P\}[^'`]*)['`]|P,)/g)].map(
      ([, path = prefix]) => path.replace('${P}', prefix),
    )
  })
}

/** Returns the record that the last slot of a route names. */
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

/** Goes to an address as a link of the console does, and waits until the page has its data. */
async function visit(page: Page, path: string): Promise<void> {
  await page.evaluate(`(() => {
    const link = document.createElement('a')
    link.href = ${JSON.stringify(path)}
    document.body.append(link)
    link.click()
    link.remove()
  })()`)
  await page.waitForURL((url) => url.pathname === path)
  await untilTrue(
    page,
    `document.querySelector('main h1') !== null && document.querySelector('.skeleton') === null`,
  )
}

await inBrowser(t, tryOut)

async function tryOut(browser: Browser): Promise<void> {
  const s = await service()
  t.teardown(async () => {
    await browser.close()
    await s.stop()
  })
  const place = await furnish(s)
  const [first] = listOf(await s.ok('action.list', { project: place.handle }))
  const action = String(first?.['name'])
  const paths = patterns().map((path) => {
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
      for (const { path, filled } of paths) {
        await visit(page, filled)
        t.strictSame(await faultsOf(page), [], `axe, ${path}`)
        t.ok(
          await page.evaluate('document.documentElement.scrollWidth <= innerWidth'),
          `${path} does not scroll sideways`,
        )
        const key = `${path} ${name}`
        const layout = layoutOf(await page.screenshot())
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

  if (folder)
    t.test('pictures', async () => {
      mkdirSync(folder, { recursive: true })
      for (const { name, ...view } of pictured) {
        const { context, open } = await signedIn(browser, s, { ...view, bypassCSP: true })
        const page = await open('/account')
        for (const { path, filled } of paths) {
          await visit(page, filled)
          const file = path.replace(/^\/(p\/:project)?/, '').replaceAll(/[/:]+/g, '-') || 'home'
          await page.screenshot({
            path: join(folder, `${file.replace(/^-/, '')}-${name}.jpg`),
            type: 'jpeg',
            quality: 55,
          })
        }
        await context.close()
      }
    })
}
