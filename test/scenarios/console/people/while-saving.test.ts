/**
 * A person who types in the editor of a definition while it is saved, in a real browser. Skipped
 * without Chromium.
 */
import type { Browser } from 'playwright-core'
import t from 'tap'
import { inBrowser } from '../../support/browser.ts'
import { serviceFor, signedIn } from '../../support/console.ts'

await inBrowser(t, tryOut)

async function tryOut(browser: Browser): Promise<void> {
  const s = await serviceFor(t, browser)
  const spec = (duration: string) => ({
    steps: [{ id: 'nap', kind: 'sleep', config: { duration } }],
  })

  t.test('what is typed while a definition is saved stays an unsaved change', async (t) => {
    const { context, open } = await signedIn(browser, s)
    const { id } = await s.ok('workflow.create', { name: 'Typed', spec: spec('0s') })
    const page = await open(`/p/default/workflows/${id}`)
    const gate: { open?: () => void } = {}
    const opened = new Promise<void>((done) => {
      gate.open = done
    })
    await page.route(`**/workflows/${id}*`, async (route) => {
      if (route.request().method() !== 'GET') await opened
      await route.continue()
    })
    const editor = page.getByRole('textbox', { name: 'Definition' })
    await page.locator('.editor-frame[data-loaded=true]').waitFor()
    await editor.fill(JSON.stringify(spec('1s')))
    await page.keyboard.press('Control+s')
    await editor.fill(JSON.stringify(spec('2s')))
    gate.open?.()
    await page.getByText('Version 2 was saved.').waitFor()
    t.match((await s.ok('workflow.get', { id }))['spec'], spec('1s'))
    t.match(await editor.textContent(), '2s')
    t.equal(await page.getByRole('button', { name: 'Keep my text' }).count(), 0)
    const saved = page.getByText('Version 3 was saved.')
    // Until the page has read version 2, the service refuses to save.
    for (let tries = 0; tries < 5 && !(await saved.isVisible()); tries++) {
      await editor.focus()
      await page.keyboard.press('Control+s')
      await saved.waitFor({ timeout: 6000 }).catch(() => {})
    }
    t.match((await s.ok('workflow.get', { id }))['spec'], spec('2s'))
    await context.close()
  })
}
