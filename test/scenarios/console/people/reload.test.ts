/**
 * A reload in the middle of work. The browser asks for confirmation if input or a change in
 * progress would be lost. After the reload, the dialogs that were open are opened again, and
 * unconfirmed or interrupted changes are not stored. Skipped without Chromium.
 */
import type { Browser, Page } from 'playwright-core'
import t from 'tap'
import { service } from '../../../support/service.ts'
import { inBrowser } from '../../support/browser.ts'
import { signedIn } from '../../support/console.ts'
import { listOf, sleeping } from '../../support/given.ts'
import { dataOf, insertAll, tableOf } from '../../support/tables.ts'

await inBrowser(t, tryOut)

/** Reloads the page as a person does, and answers the confirmation dialog of the browser. */
async function reload(page: Page, answer: 'dismiss' | 'accept'): Promise<void> {
  const [question] = await Promise.all([
    page.waitForEvent('dialog'),
    page.evaluate('void setTimeout(() => location.reload())'),
  ])
  if (question.type() !== 'beforeunload') throw new Error(`the browser asked: ${question.type()}`)
  if (answer === 'dismiss') return question.dismiss()
  await Promise.all([page.waitForEvent('load'), question.accept()])
}
/** Holds the requests whose method and URL match until the returned function is called. */
async function hold(page: Page, method: string, address: RegExp): Promise<() => void> {
  let release = (): void => {}
  const released = new Promise<void>((done) => {
    release = done
  })
  await page.route(address, async (route) => {
    if (route.request().method() === method) await released
    await route.continue().catch(() => {})
  })
  return release
}

async function tryOut(browser: Browser): Promise<void> {
  const s = await service()
  const { context, open, faults } = await signedIn(browser, s)
  context.setDefaultTimeout(15_000)
  t.teardown(async () => {
    await browser.close()
    await s.stop()
  })

  t.test('a form and a dialog ask before their text is lost, and open again', async (t) => {
    const { id } = await s.ok('workflow.create', {
      name: 'Greet',
      spec: {
        input: { who: { type: 'string' } },
        steps: [{ id: 'nap', kind: 'sleep', config: { duration: '0' } }],
      },
    })
    const page = await open(`/p/default/workflows/${id}`)
    await page.getByRole('button', { name: 'Start a run' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('textbox', { name: 'who' }).click()
    await page.keyboard.type('Ada')
    await reload(page, 'dismiss')
    t.equal(await dialog.getByRole('textbox', { name: 'who' }).inputValue(), 'Ada')
    await reload(page, 'accept')
    await dialog.getByRole('textbox', { name: 'who' }).waitFor()
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'detached' })
    t.strictSame(listOf(await s.ok('run.list')), [], 'nothing was started')
    await page.reload()
    await page.getByRole('heading', { name: 'Greet' }).waitFor()
    await page.close()
  })

  t.test('a cell keeps its text, and stores nothing that was not confirmed', async (t) => {
    const table = await tableOf(s)
    await insertAll(s, table['id'], [{ number: 'A', amount: 1 }])
    const page = await open(`/p/default/tables/${table['id']}`)
    const grid = page.getByRole('grid')
    await grid.getByText('1', { exact: true }).last().dblclick()
    await page.keyboard.type('27')
    await reload(page, 'dismiss')
    t.equal(await grid.getByLabel('amount', { exact: true }).inputValue(), '27')
    await reload(page, 'accept')
    await grid.getByText('A', { exact: true }).waitFor()
    const [row] = listOf(await s.ok('table.query', { id: table['id'] }))
    t.equal(dataOf(row)['amount'], 1)
    await page.close()
  })

  t.test('an upload that ends with its page leaves no file', async (t) => {
    const page = await open('/p/default/artifacts')
    const release = await hold(page, 'POST', /\/artifacts$/)
    await page.getByRole('heading', { name: 'Artifacts', level: 1 }).click()
    await page
      .getByLabel('Upload files')
      .setInputFiles({ name: 'a.txt', mimeType: 'text/plain', buffer: Buffer.from('text') })
    await page.getByRole('button', { name: 'Cancel the upload of a.txt' }).waitFor()
    // An upload continues on other pages, so the browser asks for confirmation there, too.
    await page.getByRole('link', { name: 'Home', exact: true }).click()
    await page.getByRole('heading', { name: 'Home' }).waitFor()
    await reload(page, 'dismiss')
    await reload(page, 'accept')
    release()
    await page.getByRole('link', { name: 'Artifacts', exact: true }).click()
    await page.getByText('There are no artifacts yet').waitFor()
    t.strictSame(listOf(await s.ok('artifact.list')), [])
    await page.close()
  })

  t.test('a bulk action asks, and can be finished after the reload', async (t) => {
    for (let count = 0; count < 3; count++)
      await s.ok('run.start', { spec: sleeping('1h', { run_name: { template: 'Many' } }) })
    const page = await open('/p/default/runs')
    await page.getByRole('link', { name: 'Many' }).nth(2).waitFor()
    const cancel = async (): Promise<void> => {
      await page.getByTitle('Act on all that match').click()
      await page.getByRole('menuitem', { name: /^Cancel/ }).click()
      await page.getByText('3 runs will be affected.').waitFor()
    }
    await cancel()
    const release = await hold(page, 'POST', /\/runs\/bulk/)
    await page.getByRole('button', { name: 'Cancel runs' }).click()
    await page.getByRole('button', { name: 'Stop' }).waitFor()
    await reload(page, 'dismiss')
    await page.getByRole('button', { name: 'Stop' }).waitFor()
    await reload(page, 'accept')
    release()
    await page.unrouteAll()
    await page.getByRole('link', { name: 'Many' }).nth(2).waitFor()
    await cancel()
    await page.getByRole('button', { name: 'Cancel runs' }).click()
    await page.getByText('3 runs done.').waitFor()
    const { items } = await s.ok('run.list', { status: ['cancelled'] })
    t.equal((items as unknown as object[]).length, 3)
    await page.close()
  })

  t.test('no page has a fault of its own', async (t) => {
    t.strictSame(faults, [])
    await context.close()
  })
}
