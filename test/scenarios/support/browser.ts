/** Starts the browser in which scenarios run, and provides helpers for its pages. */
import axe from 'axe-core'
import { type Browser, chromium, type Locator, type Page } from 'playwright-core'
import type { TAP } from 'tap'
import { CHROMIUM_ARGS, chromiumPath } from '../../support/chromium.ts'

/** Maximum length of the text of a page in the report of a failed test. */
const MAX_REPORTED_LENGTH = 1500

/**
 * Runs tests in a browser. Without a browser, reports one skipped test with the reason. If a test
 * fails, its open pages are added to the report, because the failure is often that a page showed
 * something else than expected.
 */
export async function inBrowser(
  t: Pick<TAP, 'test' | 'afterEach' | 'comment'>,
  tryOut: (browser: Browser) => Promise<void>,
): Promise<void> {
  const executablePath = chromiumPath()
  if (executablePath === undefined) {
    const skip = 'no Chromium on the PATH; name one with BATON_CHROMIUM'
    await t.test('pages in a browser', { skip }, () => {})
    return
  }
  const browser = await chromium.launch({ executablePath, args })
  t.afterEach(async (test) => {
    if (test.passing()) return
    for (const page of browser.contexts().flatMap((context) => context.pages()))
      t.comment(`failed page: ${await describePage(page)}`)
  })
  await tryOut(browser)
}
async function describePage(page: Page): Promise<string> {
  const text = await page.evaluate('document.body.innerText').catch(String)
  return `${page.url()}: ${String(text).replaceAll(/\s+/g, ' ').slice(0, MAX_REPORTED_LENGTH)}`
}
/**
 * Arguments of the browser. Pages share processes, which saves a fifth of the processor time.
 * Without the zygote process, every process is a child of the browser. The browser's processor time
 * then includes that of the children that have ended, and `npm test -- --cpu` counts it.
 */
const args = [
  ...CHROMIUM_ARGS,
  '--in-process-gpu',
  '--disable-site-isolation-trials',
  '--renderer-process-limit=1',
  '--no-zygote',
]

/**
 * Returns the accessibility violations that axe finds on a page. The page's browser context must
 * bypass its content security policy, because the policy forbids foreign scripts such as axe. axe
 * is loaded once per document, and collects only violations.
 */
export async function faultsOf(page: Page): Promise<string[]> {
  if (!(await page.evaluate('"axe" in window'))) await page.evaluate(axe.source)
  return (await page.evaluate(
    `axe.run({ resultTypes: ['violations'] }).then(({ violations }) => violations.map(
      ({ id, nodes }) => id + ': ' + nodes.map(({ html }) => html).join(' ')))`,
  )) as string[]
}
/**
 * Waits until an expression is true in the page. It is evaluated once per frame. Playwright's
 * `waitForFunction` would call `eval` in the page, which the content security policy forbids.
 * @param condition a JavaScript expression.
 */
export const untilTrue = (page: Page, condition: string): Promise<unknown> =>
  page.evaluate(
    `(async () => { while (!(${condition})) await new Promise(requestAnimationFrame) })()`,
  )
/** Drops files on an element, like a drag from another program. `content` is text. */
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
 * Calls a JavaScript function, given as text, with the element of a locator, and returns its
 * result. `Locator.evaluate` returns nothing for a function that is given as text.
 */
export const onElement = (control: Locator, text: string): Promise<unknown> =>
  control.evaluate(new Function('element', `return (${text})(element)`) as () => unknown)
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
/**
 * Returns the name and the value of the focused control. If the control has no name, its type
 * replaces the name.
 */
export const focused = (page: Page): Promise<string> =>
  page.evaluate(
    '[document.activeElement.name || document.activeElement.type, document.activeElement.value].join(" ").trim()',
  ) as Promise<string>
