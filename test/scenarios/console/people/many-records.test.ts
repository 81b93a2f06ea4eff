/** The console with long names and with more records than a page of a list has. */
import type { Browser } from 'playwright-core'
import t from 'tap'
import { inBrowser } from '../../support/browser.ts'
import { serviceFor, signedIn, visit } from '../../support/console.ts'

/** Number of records: more than a page of a list has. */
const COUNT = 210
const spec = { steps: [{ id: 'a', kind: 'sleep', config: { duration: '1ms' } }] }

await inBrowser(t, tryOut)

async function tryOut(browser: Browser): Promise<void> {
  const s = await serviceFor(t, browser)
  const name = 'Long-names-without-a-space-'.repeat(4).slice(0, 100)
  await s.ok('project.create', { name, handle: 'many' })
  const project = 'many'
  const first = await s.ok('workflow.create', { project, name: 'The first', spec })
  for (let at = 0; at < COUNT; at += 30)
    await Promise.all(
      Array.from({ length: 30 }, (_, index) =>
        s.ok('workflow.create', { project, name: `Workflow ${at + index}`, spec }),
      ),
    )
  const runs: string[] = []
  for (let at = 0; at < 40; at++)
    runs.push(String((await s.ok('workflow.run', { project, id: first['id'] }))['id']))

  t.test('a run shows the name of its workflow, however many there are', async (t) => {
    const { context, open, faults } = await signedIn(browser, s)
    const page = await open('/p/many/runs')
    await page.locator('.virtual .line', { hasText: 'The first' }).first().waitFor()
    t.strictSame(faults, [])
    await context.close()
  })

  t.test('Back shows the part of the list that was left', async (t) => {
    const { context, open, faults } = await signedIn(browser, s, { height: 500 })
    const page = await open('/p/many/runs')
    const oldest = page.locator(`a[href$="${runs[0]}"]`)
    await page.locator('.virtual').evaluate('(list) => list.scrollTo(0, list.scrollHeight)')
    await page.locator('.virtual').press('End')
    await oldest.click()
    await page.waitForURL(`**/runs/${runs[0]}`)
    await page.goBack()
    await oldest.waitFor()
    t.ok(await oldest.isVisible())
    t.strictSame(faults, [])
    await context.close()
  })

  t.test('an id that is pasted into the palette opens its page', async (t) => {
    const { context, open, faults } = await signedIn(browser, s)
    const page = await open('/p/many')
    const palette = page.getByRole('combobox', { name: /Search/ })
    await page.keyboard.press('Control+k')
    await palette.fill(` ${runs[3]} `)
    await page.keyboard.press('Enter')
    await page.waitForURL(`**/p/many/runs/${runs[3]}`)
    await page.keyboard.press('Control+k')
    await palette.fill('The fir')
    await page.getByRole('option', { name: /Search the runs for “The fir”/ }).click()
    await page.waitForURL('**/p/many/runs?q=The+fir')
    t.strictSame(faults, [])
    await context.close()
  })

  t.test('a long name of a project stays within the bar of a narrow screen', async (t) => {
    const { context, open } = await signedIn(browser, s, { width: 380 })
    const page = await open('/p/many')
    const bar = await page.locator('.top').boundingBox()
    const shown = await page.locator('.project-name').boundingBox()
    t.ok(bar && shown && shown.y >= bar.y && shown.y + shown.height <= bar.y + bar.height)
    await context.close()
  })

  t.test('Back shows the list of questions, and an error no empty inbox', async (t) => {
    await s.ok('interaction.create', {
      project,
      kind: 'request_approval',
      title: 'Refund?',
      target_user_ids: ['role:Operator'],
    })
    const { context, open } = await signedIn(browser, s, { width: 380 })
    const page = await open('/p/many/inbox?show=open')
    await page.getByText('Refund?').click()
    await page.waitForURL('**/inbox?show=open&id=*')
    await page.goBack()
    await page.waitForURL('**/inbox?show=open')
    await page.route('**/interactions?*', (route) => route.fulfill({ status: 500, body: '{}' }))
    await visit(page, '/p/many/inbox?show=answered')
    await page.getByRole('button', { name: 'Try again' }).waitFor()
    t.equal(await page.locator('.inbox-list .empty').count(), 0)
    await context.close()
  })
}
