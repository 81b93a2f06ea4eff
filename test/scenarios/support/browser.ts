/** A browser for scenarios: Chromium from the PATH, or the one that BATON_CHROMIUM names. */
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import axe from 'axe-core'
import type { TAP } from 'tap'
import { chromium, type Browser, type Page } from 'playwright-core'

const names = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable', 'chrome']
const found = (): string | undefined =>
  (process.env['PATH'] ?? '')
    .split(delimiter)
    .flatMap((folder) => names.map((name) => join(folder, name)))
    .find((file) => {
      try {
        accessSync(file, constants.X_OK)
      } catch {
        return false
      }
      return true
    })

/** Try something out in a browser; without one the file is skipped, and says what is missing. */
export async function inBrowser(
  t: Pick<TAP, 'test'>,
  tryOut: (browser: Browser) => Promise<void>,
): Promise<void> {
  const executablePath = process.env['BATON_CHROMIUM'] || found()
  if (executablePath === undefined) {
    const skip = 'no Chromium on the PATH; name one with BATON_CHROMIUM'
    await t.test('pages in a browser', { skip }, () => {})
    return
  }
  // Containers have no sandbox; the only pages opened here are our own.
  await tryOut(
    await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-dev-shm-usage'] }),
  )
}
/** What axe finds wrong with a page. Its context must bypass the page's policy, which forbids foreign scripts. */
export async function faultsOf(page: Page): Promise<string[]> {
  await page.evaluate(axe.source)
  const { violations } = (await page.evaluate('axe.run()')) as {
    violations: { id: string; nodes: { html: string }[] }[]
  }
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`)
}
/** Tab until the control is reached, as somebody without a mouse does. @param control matches its name or type, and its value. */
export async function tabTo(page: Page, control: RegExp, most = 12): Promise<void> {
  const seen: string[] = []
  for (let i = 0; i < most; i++) {
    await page.keyboard.press('Tab')
    seen.push(await focused(page))
    if (control.test(seen.at(-1) ?? '')) return
  }
  throw new Error(`Tab does not reach ${control.source}, only ${seen.join(', ')}`)
}
/** Name or type, and value, of what has the focus. */
export const focused = (page: Page): Promise<string> =>
  page.evaluate(
    '[document.activeElement.name || document.activeElement.type, document.activeElement.value].join(" ").trim()',
  ) as Promise<string>
