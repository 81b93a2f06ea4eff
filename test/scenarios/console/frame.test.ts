/**
 * The frame of the console in a real browser: signing in and out, navigation by mouse and keyboard,
 * the command palette, confirmation before input is lost, themes, the security policy, and ten tabs
 * with one live connection. Skipped without Chromium.
 */
import type { Browser, Page } from 'playwright-core'
import t from 'tap'
import { faultsOf, inBrowser, untilTrue } from '../support/browser.ts'
import { serviceFor, signedIn } from '../support/console.ts'
import { person } from '../support/people.ts'

await inBrowser(t, tryOut)

async function tryOut(browser: Browser): Promise<void> {
  const s = await serviceFor(t, browser)

  t.test('a wrong key is refused in words, and a right one leads to the wanted page', async (t) => {
    const context = await browser.newContext()
    const page = await context.newPage()
    await page.goto(`${s.url}/p/default?minutes=360`)
    await page.waitForURL(/\/sign-in\?return=/)
    await page.getByLabel('API key or personal token').fill('bat_wrong')
    await page.keyboard.press('Enter')
    await page.locator('.field .fault').waitFor()
    await page.getByLabel('API key or personal token').fill(s.key)
    await page.keyboard.press('Enter')
    await page.waitForURL(`${s.url}/p/default?minutes=360`)
    await page.getByRole('heading', { name: 'Home' }).waitFor()
    const [cookie] = await context.cookies()
    t.equal(cookie?.httpOnly, true)
    t.equal(
      await page.evaluate('Object.keys(localStorage).sort().join()'),
      'console.project,console.signed-in',
    )
    await page.getByRole('button', { name: 'Account' }).click()
    await page.getByRole('menuitem', { name: 'Sign out' }).click()
    await page.waitForURL(/\/sign-in/)
    t.equal(await page.evaluate(`fetch('/v1/projects').then((answer) => answer.status)`), 401)
    const answer = await context.request.post(`${s.url}/v1/auth/console/sessions`, {
      data: { credential: s.key },
      headers: { origin: s.url },
    })
    t.equal(answer.status(), 201)
    await page.goto(`${s.url}/sign-in`)
    await page.getByLabel('API key or personal token').waitFor()
    await page.goto(`${s.url}/sign-in?return=%2Fp%2Fdefault%2Fruns`)
    await page.waitForURL(`${s.url}/p/default/runs`)
    await context.close()
  })

  t.test('a sign-in link signs in once', async (t) => {
    const { url } = await s.ok('sign_in_link.create')
    const { pathname, hash } = new URL(String(url), s.url)
    const first = await browser.newContext()
    const page = await first.newPage()
    await page.goto(`${s.url}${pathname}${hash}`)
    await page.getByRole('heading', { name: 'Home' }).waitFor()
    t.notMatch(String(await page.evaluate('location.href')), /code/, 'the address has no code')
    await first.close()
    const second = await browser.newContext()
    const other = await second.newPage()
    await other.goto(`${s.url}${pathname}${hash}`)
    await other.locator('.field .fault').waitFor()
    await second.close()
  })

  t.test('pages are reached by keys, by the palette and by the menu', async (t) => {
    await s.ok('project.create', { name: 'Second', handle: 'second' })
    const { context, open, faults } = await signedIn(browser, s)
    const page = await open('/p/default')
    await page.keyboard.press('Control+k')
    await page.getByRole('combobox', { name: /Search/ }).fill('seco')
    await page.keyboard.press('Enter')
    await page.waitForURL(`${s.url}/p/second`)
    await page.goBack()
    await page.waitForURL(`${s.url}/p/default`)
    await page.getByRole('button', { name: /default/ }).click()
    await page.getByRole('menuitem', { name: 'Second' }).click()
    await page.waitForURL(`${s.url}/p/second`)
    await page.goto(`${s.url}/p/second/no-such-page`)
    await page.getByRole('heading', { name: 'There is no such page.' }).waitFor()
    await page.keyboard.press('g')
    await page.keyboard.press('h')
    await page.waitForURL(`${s.url}/p/second`)
    t.strictSame(faults, [])
    await context.close()
  })

  t.test(
    'history buttons and the closing of the tab ask before the input of a dialog is lost',
    async (t) => {
      const { context, open } = await signedIn(browser, s)
      const page = await open('/p/default')
      await page.getByRole('link', { name: 'Agents', exact: true }).click()
      await page.getByRole('button', { name: 'New agent' }).first().click()
      const name = page.getByRole('dialog').getByLabel('Name', { exact: true })
      const asked: string[] = []
      const answers: boolean[] = []
      page.on('dialog', (dialog) => {
        asked.push(dialog.type())
        void (answers.shift() ? dialog.accept() : dialog.dismiss())
      })
      /** Performs a change that asks for confirmation, and checks the type of the dialog. */
      const asks = async (type: string, change: () => Promise<unknown>): Promise<void> => {
        const question = page.waitForEvent('dialog')
        await change()
        t.equal((await question).type(), type)
      }
      await name.click()
      await name.pressSequentially('Half')
      const address = page.url()
      await asks('confirm', () => page.evaluate('history.back()'))
      await untilTrue(page, `location.href === ${JSON.stringify(address)}`)
      t.equal(await name.inputValue(), 'Half', 'a refused Back keeps the dialog and its input')
      await asks('beforeunload', () => page.close({ runBeforeUnload: true }))
      t.equal(await name.inputValue(), 'Half', 'a refused closing keeps them as well')
      answers.push(true)
      await asks('confirm', () => page.evaluate('history.back()'))
      await page.getByRole('heading', { name: 'Home' }).waitFor()
      t.equal(await page.getByRole('dialog').count(), 0)
      t.strictSame(asked, ['confirm', 'beforeunload', 'confirm'])
      // A page without unsaved input closes without a confirmation dialog.
      const closed = page.waitForEvent('close')
      await page.close({ runBeforeUnload: true })
      await closed
      t.equal(asked.length, 3)
      await context.close()
    },
  )

  t.test('Back and Escape ask before the input of a dialog in the address is lost', async (t) => {
    const { context, open, faults } = await signedIn(browser, s)
    const page = await open('/p/default/loops')
    const asked: string[] = []
    const answers = [false, false, false, true, true]
    page.on('dialog', (dialog) => {
      asked.push(dialog.type())
      void (answers.shift() ? dialog.accept() : dialog.dismiss())
    })
    const dialog = page.getByRole('dialog')
    const name = dialog.getByLabel('Name', { exact: true })
    const begin = async (): Promise<void> => {
      await page.getByRole('button', { name: 'New loop' }).first().click()
      await page.waitForURL(/new=1/)
      await name.click()
      await name.pressSequentially('Half')
    }
    await begin()
    const refused = page.waitForEvent('dialog')
    await page.evaluate('history.back()')
    await refused
    await untilTrue(page, `location.search === '?new=1'`)
    await page.keyboard.press('Escape')
    await page.keyboard.press('Escape')
    await untilTrue(page, `document.querySelector('dialog').open`)
    t.equal(await name.inputValue(), 'Half', 'the dialog keeps its input')
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'detached' })
    t.equal(asked.length, 4)
    await begin()
    await page.evaluate('history.back()')
    await dialog.waitFor({ state: 'detached' })
    t.equal(asked.length, 5)
    // Without input, neither asks.
    await page.getByRole('button', { name: 'New loop' }).first().click()
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'detached' })
    t.equal(asked.length, 5)
    t.strictSame(faults, [])
    await context.close()
  })

  t.test('the policy forbids HTML from texts; the language is a choice', async (t) => {
    const { context, open, faults } = await signedIn(browser, s)
    const page = await open('/p/default')
    const outcome = await page.evaluate(`(() => {
      try {
        document.createElement('div').innerHTML = '<img src=x>'
        return 'parsed'
      } catch (error) {
        return error.name
      }
    })()`)
    t.equal(outcome, 'TypeError', 'HTML cannot be assigned')
    t.equal(await page.evaluate('document.documentElement.lang'), 'en')
    await page.goto(`${s.url}/account?tab=preferences`)
    await page.getByLabel('Language').selectOption({ label: 'Deutsch' })
    await page.getByRole('heading', { name: 'Konto' }).waitFor()
    t.strictSame(
      await page.evaluate('[document.documentElement.lang, document.documentElement.dir].join()'),
      'de,ltr',
    )
    await page.goto(`${s.url}/p/default`)
    await page.getByRole('heading', { name: 'Start', exact: true }).waitFor()
    await page.locator('.figure', { hasText: 'Wartend' }).waitFor()
    t.strictSame(
      faults.filter((fault) => !/TrustedHTML/.test(fault)),
      [],
    )
    await context.close()
  })

  t.test('ten tabs share one live connection and all see a change', async (t) => {
    const { context, open } = await signedIn(browser, s)
    const pages: Page[] = []
    let streams = 0
    context.on('request', (request) => {
      if (request.url().endsWith('/v1/streams')) streams++
    })
    for (let i = 0; i < 10; i++) pages.push(await open('/p/default'))
    const waiting = (page: Page, count: string) =>
      page.locator('.figure', { hasText: 'Waiting' }).getByText(count, { exact: true }).waitFor()
    for (const page of pages) await waiting(page, '0')
    await s.ok('run.start', {
      spec: { steps: [{ id: 'pause', kind: 'sleep', config: { duration: '1h' } }] },
    })
    for (const page of pages) await waiting(page, '1')
    t.equal(streams, 0, 'no page has a connection of its own')
    await context.close()
  })

  t.test('axe finds nothing, light or dark, wide or narrow', async (t) => {
    const ada = await person(s, 'Ada')
    for (const dark of [false, true]) {
      const { context, open } = await signedIn(browser, s, {
        key: ada.key,
        dark,
        width: dark ? 390 : 1280,
        bypassCSP: true,
      })
      const page = await open('/p/default')
      await page.locator('.figure').first().waitFor()
      t.strictSame(await faultsOf(page), [], `home, dark ${dark}`)
      t.ok(
        await page.evaluate('document.documentElement.scrollWidth <= innerWidth'),
        'the page does not scroll sideways',
      )
      await page.keyboard.press('Control+k')
      await page.getByRole('combobox', { name: /Search/ }).waitFor()
      t.strictSame(await faultsOf(page), [], `palette, dark ${dark}`)
      await context.close()
    }
  })
}
