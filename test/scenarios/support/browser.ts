/**
 * The browser of scenarios: the executable that BATON_CHROMIUM names, or else Chromium or Chrome
 * from the PATH.
 */
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import axe from 'axe-core'
import { type Browser, chromium, type Locator, type Page } from 'playwright-core'
import type { TAP } from 'tap'

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

/** Runs tests in a browser. Without a browser, reports one skipped test with the reason. */
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
  // Chromium's sandbox does not work in containers. The only pages opened here are those of the
  // service.
  await tryOut(
    await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-dev-shm-usage'] }),
  )
}
/**
 * Returns the accessibility violations that axe finds on a page. The page's browser context must
 * bypass its content security policy, because the policy forbids foreign scripts such as axe.
 */
export async function faultsOf(page: Page): Promise<string[]> {
  await page.evaluate(axe.source)
  const { violations } = (await page.evaluate('axe.run()')) as {
    violations: { id: string; nodes: { html: string }[] }[]
  }
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`)
}
/**
 * Waits until an expression of the page is true, looking once per frame. Playwright's
 * `waitForFunction` evaluates its text in the page, which the content security policy forbids.
 * @param condition a JavaScript expression.
 */
export const untilTrue = (page: Page, condition: string): Promise<unknown> =>
  page.evaluate(
    `(async () => { while (!(${condition})) await new Promise(requestAnimationFrame) })()`,
  )
/** Drops files on an element, as from another program. `content` is text. */
export async function dropFiles(
  target: Locator,
  files: readonly { readonly name: string; readonly type: string; readonly content: string }[],
): Promise<void> {
  const dataTransfer = await target.page().evaluateHandle(
    `(() => {
      const data = new DataTransfer()
      for (const { name, type, content } of ${JSON.stringify(files)})
        data.items.add(new File([content], name, { type }))
      return data
    })()`,
  )
  await target.dispatchEvent('dragover', { dataTransfer })
  await target.dispatchEvent('drop', { dataTransfer })
}
/**
 * Presses Tab until the control has the focus.
 * @param control matches the text that `focused` returns for the control.
 * @throws {Error} when the control does not have the focus after `most` key presses.
 */
export async function tabTo(page: Page, control: RegExp, most = 12): Promise<void> {
  const seen: string[] = []
  for (let i = 0; i < most; i++) {
    await page.keyboard.press('Tab')
    seen.push(await focused(page))
    if (control.test(seen.at(-1) ?? '')) return
  }
  throw new Error(`Tab does not reach ${control.source}, only ${seen.join(', ')}`)
}
/** Returns the name of the focused control, or else its type, followed by its value. */
export const focused = (page: Page): Promise<string> =>
  page.evaluate(
    '[document.activeElement.name || document.activeElement.type, document.activeElement.value].join(" ").trim()',
  ) as Promise<string>
