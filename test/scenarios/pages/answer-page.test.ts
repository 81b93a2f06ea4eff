/**
 * The pages of answer links and of device codes in a real browser: every kind of question can be
 * answered with the keyboard alone, axe reports no violations, and a used link is reported as used.
 * Skipped without Chromium. BATON_CHROMIUM can contain its path. If BATON_SCREENSHOT is the path of
 * a PNG file, a screenshot is written to it.
 */
import type { Browser, Page } from 'playwright-core'
import t from 'tap'
import { DEVICE_GRANT } from '../../../protocol/access/unauthenticated-rows.ts'
import { deviceForm, waitingDevice } from '../../hostile/support/people.ts'
import { faultsOf, focused, inBrowser, tabTo } from '../support/browser.ts'
import { serviceFor } from '../support/console.ts'
import { listOf } from '../support/given.ts'
import { people } from '../support/people.ts'

await inBrowser(t, tryOut)

async function tryOut(browser: Browser): Promise<void> {
  const s = await serviceFor(t, browser)
  const [ada] = await people(s, 'ada')
  if (!ada) throw new Error('nobody came')

  /** Creates a question for Ada and opens her answer link. */
  const open = async (
    question: Record<string, unknown>,
    look: { colorScheme?: 'dark' | 'light'; width?: number } = {},
  ): Promise<{ id: string; url: string; page: Page }> => {
    const { id } = await s.ok('interaction.create', {
      title: 'A question',
      target_user_ids: [ada.id],
      ...question,
    })
    const url = s.url + String(listOf(await s.ok('interaction.link', { id }))[0]?.['url'])
    // The page's content security policy is bypassed, because it forbids foreign scripts such as
    // axe.
    const page = await browser.newPage({
      bypassCSP: true,
      colorScheme: look.colorScheme ?? 'light',
      viewport: { width: look.width ?? 760, height: 720 },
    })
    await page.goto(url)
    return { id: String(id), url, page }
  }
  const press = async (page: Page, ...keys: readonly string[]): Promise<void> => {
    for (const key of keys) await page.keyboard.press(key)
  }
  const send = async (page: Page): Promise<void> => {
    await tabTo(page, /^(submit|decision allow)/)
    await Promise.all([page.waitForEvent('load'), page.keyboard.press('Enter')])
  }
  const options = ['red', 'green', 'blue'].map((value) => ({
    value,
    label: `Paint it ${value}`,
    description: `as ${value} as can be`,
  }))
  const cases: readonly (readonly [
    string,
    Record<string, unknown>,
    (page: Page) => Promise<void>,
    unknown,
  ])[] = [
    [
      'confirm',
      { kind: 'request_approval', spec: { mode: 'confirm' } },
      async (page) => {
        await tabTo(page, /^value/)
        await press(page, 'Space', 'ArrowDown')
      },
      false,
    ],
    [
      'select',
      { kind: 'request_information', spec: { mode: 'select', options } },
      async (page) => {
        await tabTo(page, /^value/)
        await press(page, 'ArrowDown', 'ArrowDown')
      },
      'blue',
    ],
    [
      'multi_select',
      { kind: 'request_information', spec: { mode: 'multi_select', options } },
      async (page) => {
        await tabTo(page, /^value red/)
        await press(page, 'Space')
        await tabTo(page, /^value blue/)
        await press(page, 'Space')
      },
      ['red', 'blue'],
    ],
    [
      'input of one line',
      { kind: 'request_information', spec: { mode: 'input', placeholder: 'one word' } },
      async (page) => {
        await tabTo(page, /^value/)
        await page.keyboard.type('Grüße')
      },
      'Grüße',
    ],
    [
      'input of many lines',
      { kind: 'request_review', spec: { mode: 'input', multiline: true } },
      async (page) => {
        await tabTo(page, /^value/)
        await page.keyboard.type('one')
        await press(page, 'Enter')
        await page.keyboard.type('two')
      },
      'one\ntwo',
    ],
  ]
  for (const [what, question, answer, value] of cases)
    await t.test(`${what}: the question can be answered with the keyboard alone`, async (t) => {
      const { id, url, page } = await open(question)
      t.strictSame(await faultsOf(page), [], 'axe: the form')
      t.match(await page.textContent('main > .note'), /You answer as ada\./)
      await page.reload()
      await answer(page)
      await tabTo(page, /^comment/)
      await page.keyboard.type('because')
      await send(page)
      t.match(await page.textContent('h1'), /Thank you/)
      t.strictSame(await faultsOf(page), [], 'axe: the confirmation')
      t.match(await s.ok('interaction.get', { id }), {
        status: 'completed',
        outcome: value,
        responses: [{ responder_user_id: ada.id, comment: 'because' }],
      })
      const again = await page.goto(url)
      t.equal(again?.status(), 410)
      t.match(await page.textContent('main'), /This link is no longer valid.*already received/s)
      t.strictSame(await faultsOf(page), [], 'axe: the used link')
      await page.close()
    })

  await t.test('a complete page is accessible, light and dark, wide and narrow', async (t) => {
    for (const look of [
      { colorScheme: 'light', width: 760 },
      { colorScheme: 'dark', width: 320 },
    ] as const) {
      const { page } = await open(
        {
          kind: 'request_approval',
          title: 'Deploy build 88 to production?',
          description:
            'All checks passed. The migration takes about two minutes.\nNobody can sign in meanwhile.',
          context: { build: 88, branch: 'main', commit: 'a'.repeat(200) },
          references: [
            {
              kind: 'external_url',
              url: 'https://example.org/changes/88',
              label: 'Changes since build 87',
            },
          ],
          spec: { mode: 'confirm' },
          expires_at: new Date(Date.now() + 86_400_000).toISOString(),
        },
        look,
      )
      t.strictSame(await faultsOf(page), [], `axe: ${look.colorScheme}`)
      t.ok(
        await page.evaluate('document.documentElement.scrollWidth <= innerWidth'),
        `the page fits into ${look.width} pixels`,
      )
      t.strictSame(
        await page.evaluate('[...document.scripts].filter((script) => script.src).length'),
        0,
      )
      const path = process.env['BATON_SCREENSHOT']
      if (path && look.colorScheme === 'light') {
        await tabTo(page, /^value/)
        await page.screenshot({ path, fullPage: true })
      }
      await page.close()
    }
  })

  await t.test('an error is announced next to its field, and the input is preserved', async (t) => {
    // The browser itself rejects a missing answer. Once its validation is off, the service reports
    // the error.
    const { id, page } = await open({ kind: 'request_approval', spec: { mode: 'confirm' } })
    await tabTo(page, /^submit/)
    await press(page, 'Enter')
    t.equal(await focused(page), 'value true', 'the browser focuses the missing field')
    await page.evaluate('document.forms[0].noValidate = true')
    await tabTo(page, /^comment/)
    await page.keyboard.type('<b>why</b>')
    await send(page)
    t.match(await page.textContent('[role=alert]'), /choose an answer/)
    t.equal(await page.inputValue('#comment'), '<b>why</b>')
    t.strictSame(await faultsOf(page), [], 'axe: the error')
    t.match(await s.ok('interaction.get', { id }), { status: 'pending', responses: [] })
    await page.close()
  })

  await t.test('a device is approved with the keyboard alone', async (t) => {
    const { device_code, user_code } = await waitingDevice(s)
    const user = await s.ok('user.create', { name: 'Grace' })
    const { key } = await s.ok('token.create', { id: user['id'], name: 'first' })
    const page = await browser.newPage({ bypassCSP: true })
    await page.goto(`${s.url}/device`)
    t.strictSame(await faultsOf(page), [], 'axe: the code')
    await tabTo(page, /^user_code/)
    await page.keyboard.type(user_code.toLowerCase())
    await send(page)
    t.match(await page.textContent('main'), /laptop requests access to act as you/)
    await tabTo(page, /^credential/)
    await page.keyboard.type('batc_wrong')
    await send(page)
    t.match(await page.textContent('[role=alert]'), /not valid/)
    t.strictSame(await faultsOf(page), [], 'axe: the error')
    await tabTo(page, /^credential/)
    await page.keyboard.type(String(key))
    await send(page)
    t.match(await page.textContent('h1'), /signed in/)
    t.strictSame(await faultsOf(page), [], 'axe: the end')
    const token = await s.raw('POST', '/v1/auth/device/token', {
      key: null,
      ...deviceForm({ grant_type: DEVICE_GRANT, device_code }),
    })
    t.equal(token.status, 200)
    await page.close()
  })
}
