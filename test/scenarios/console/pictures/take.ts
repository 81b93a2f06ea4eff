/** Takes pictures of every page of the console, with the records of a small bookshop. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { fillPath } from '../../../../console/router/match.ts'
import { service } from '../../../support/service.ts'
import { pagePaths, signedIn, visit } from '../../support/console.ts'
import { openShop, type Shop } from './shop.ts'

const DOCS = join(import.meta.dirname, '../../../../docs/console/pages')
/** Height in pixels of the pictures in the documentation, and the quality of WebP (0 to 1). */
const DOCS_HEIGHT = 420
const QUALITY = 0.72
const heights: Readonly<Record<number, number>> = { 390: 844, 1280: 800, 2560: 1440 }
const themes = [false, true]

/** Returns the name of the picture of a page, such as `runs-id`. */
const nameOf = (path: string): string =>
  path
    .replace(/^\/p\/:project/, '')
    .replaceAll(/[/:]+/g, '-')
    .replace(/^-/, '') || 'home'

/** Returns the addresses of all pages by the name of their picture. */
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

/** Scales pictures to one height and puts them side by side, as WebP. */
async function beside(page: Page, pictures: readonly Buffer[]): Promise<Buffer> {
  const addresses = pictures.map((one) => `data:image/png;base64,${one.toString('base64')}`)
  const encoded = await page.evaluate(`(async () => {
    const gap = 12
    const images = await Promise.all(${JSON.stringify(addresses)}.map(async (address) => {
      const image = new Image()
      image.src = address
      await image.decode()
      return image
    }))
    const widths = images.map(({ width, height }) => Math.round(width * ${DOCS_HEIGHT} / height))
    const canvas = document.createElement('canvas')
    canvas.width = widths.reduce((sum, width) => sum + width + gap, -gap)
    canvas.height = ${DOCS_HEIGHT}
    const context = canvas.getContext('2d')
    context.imageSmoothingQuality = 'high'
    let left = 0
    for (const [index, image] of images.entries()) {
      context.drawImage(image, left, 0, widths[index], canvas.height)
      left += widths[index] + gap
    }
    return canvas.toDataURL('image/webp', ${QUALITY}).split(',')[1]
  })()`)
  return Buffer.from(String(encoded), 'base64')
}

/**
 * Takes the pictures.
 * @param folder receives large pictures in three widths and both themes, if it is set.
 * @param docs whether the small pictures of the documentation are written: for each page, the wide
 *   light view and the narrow dark view side by side.
 */
export async function takePictures(
  browser: Browser,
  { folder, docs }: { readonly folder: string | undefined; readonly docs: boolean },
): Promise<void> {
  const s = await service()
  const shop = await openShop(s)
  const addresses = addressesOf(shop)
  const parts = new Map<string, Buffer[]>()
  const each = async (
    dark: boolean,
    width: number,
    take: (name: string, page: Page) => Promise<void>,
  ): Promise<void> => {
    const view = { dark, width, height: heights[width] ?? 800 }
    const { context, open } = await signedIn(browser, s, view)
    const page = await open('/account')
    for (const [name, address] of addresses) {
      await visit(page, address)
      await take(name, page)
    }
    await context.close()
  }
  try {
    if (folder) {
      mkdirSync(folder, { recursive: true })
      for (const width of Object.keys(heights).map(Number))
        for (const dark of themes)
          await each(dark, width, async (name, page) => {
            const file = `${name}-${width}-${dark ? 'dark' : 'light'}.jpg`
            await page.screenshot({ path: join(folder, file), type: 'jpeg', quality: 70 })
          })
    }
    if (docs) {
      for (const [dark, width] of [
        [false, 1280],
        [true, 390],
      ] as const)
        await each(dark, width, async (name, page) => {
          parts.set(name, [...(parts.get(name) ?? []), await page.screenshot()])
        })
      mkdirSync(DOCS, { recursive: true })
      const page = await browser.newPage()
      for (const [name, pictures] of parts)
        writeFileSync(join(DOCS, `${name}.webp`), await beside(page, pictures))
      await page.close()
    }
  } finally {
    shop.stop()
    await s.stop()
  }
}
