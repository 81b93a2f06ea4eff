/** Takes pictures of every page of the console, with the records of a small bookshop. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { fillPath } from '../../../../console/router/match.ts'
import { service } from '../../../support/service.ts'
import { pagePaths, signedIn, visit } from '../../support/console.ts'
import { openShop, type Shop } from './shop.ts'

const DOCS = join(import.meta.dirname, '../../../../docs/console/pages')
/** Height in pixels of the pictures in the documentation. */
const DOCS_HEIGHT = 420
/** Quality of the WebP pictures, from 0 to 1. */
const QUALITY = 0.72
const heights: Readonly<Record<number, number>> = { 390: 844, 1280: 800, 2560: 1440 }
const widths = [390, 1280, 2560]
const themes = ['light', 'dark']

/** Returns the name of a page's picture, such as `runs-id`. */
const nameOf = (path: string): string =>
  path
    .replace(/^\/p\/:project/, '')
    .replaceAll(/[/:]+/g, '-')
    .replace(/^-/, '') || 'home'

/** Returns the addresses of all pages, by the names of their pictures. */
const addressesOf = ({ project, records }: Shop): ReadonlyMap<string, string> =>
  new Map(
    pagePaths().map((path) => {
      const kind = path.split('/')[3] ?? ''
      const last = path.split('/').at(-1) ?? ''
      const slots = { project, [last.slice(1)]: records[kind] ?? '' }
      const query = path.endsWith('/runs/compare')
        ? `?a=${records['runs']}&b=${records['otherRun']}`
        : path.endsWith('/inbox')
          ? `?id=${records['inbox']}`
          : path.endsWith('/blueprints/view')
            ? '?namespace=lantern&key=customer-desk'
            : ''
      return [nameOf(path), `${fillPath(path, last === ':project' ? { project } : slots)}${query}`]
    }),
  )

/** Scales pictures to one height and puts them into rows, as WebP. */
async function arranged(page: Page, rows: readonly (readonly Buffer[])[]): Promise<Buffer> {
  const addresses = rows.map((row) =>
    row.map((one) => `data:image/png;base64,${one.toString('base64')}`),
  )
  const encoded = await page.evaluate(`(async () => {
    const [gap, height] = [12, ${DOCS_HEIGHT}]
    const rows = await Promise.all(${JSON.stringify(addresses)}.map((row) =>
      Promise.all(row.map(async (address) => {
        const image = new Image()
        image.src = address
        await image.decode()
        return { image, width: Math.round(image.width * height / image.height) }
      }))))
    const widths = rows.map((row) => row.reduce((sum, { width }) => sum + width + gap, -gap))
    const canvas = document.createElement('canvas')
    canvas.width = Math.max(...widths)
    canvas.height = rows.length * (height + gap) - gap
    const context = canvas.getContext('2d')
    context.imageSmoothingQuality = 'high'
    for (const [index, row] of rows.entries()) {
      let left = 0
      for (const { image, width } of row) {
        context.drawImage(image, left, index * (height + gap), width, height)
        left += width + gap
      }
    }
    return canvas.toDataURL('image/webp', ${QUALITY}).split(',')[1]
  })()`)
  return Buffer.from(String(encoded), 'base64')
}

/**
 * Takes a picture of every page in three widths and both themes.
 * @param folder receives these pictures, if it is set.
 * @param docs whether the small pictures of the documentation are written. For each page there are
 *   two: the wide light view beside the narrow dark one, and all six views in the folder `views`.
 */
export async function takePictures(
  browser: Browser,
  { folder, docs }: { readonly folder: string | undefined; readonly docs: boolean },
): Promise<void> {
  const s = await service()
  const shop = await openShop(s)
  const addresses = addressesOf(shop)
  const pictures = new Map<string, Buffer>()
  try {
    if (folder) mkdirSync(folder, { recursive: true })
    for (const width of widths)
      for (const theme of themes) {
        const view = { dark: theme === 'dark', width, height: heights[width] ?? 800 }
        const { context, open } = await signedIn(browser, s, view)
        const page = await open('/account')
        for (const [name, address] of addresses) {
          await visit(page, address)
          const key = `${name}-${width}-${theme}`
          if (docs) pictures.set(key, await page.screenshot())
          if (folder)
            await page.screenshot({ path: join(folder, `${key}.jpg`), type: 'jpeg', quality: 70 })
        }
        await context.close()
      }
    if (docs) {
      mkdirSync(join(DOCS, 'views'), { recursive: true })
      const page = await browser.newPage()
      for (const name of addresses.keys()) {
        const of = (width: number, theme: string): Buffer => {
          const picture = pictures.get(`${name}-${width}-${theme}`)
          if (!picture) throw new Error(`no picture of ${name}, ${width} pixels wide, ${theme}`)
          return picture
        }
        const pair = [[of(1280, 'light'), of(390, 'dark')]]
        writeFileSync(join(DOCS, `${name}.webp`), await arranged(page, pair))
        const all = themes.map((theme) => widths.map((width) => of(width, theme)))
        writeFileSync(join(DOCS, 'views', `${name}.webp`), await arranged(page, all))
      }
      await page.close()
    }
  } finally {
    shop.stop()
    await s.stop()
  }
}
