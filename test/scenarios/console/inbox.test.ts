/**
 * The inbox of the console in a real browser: answering by mouse and by keyboard, live changes,
 * drafts, reviews, links, and people who may not answer. Skipped without Chromium.
 */
import type { Browser, Page } from 'playwright-core'
import t from 'tap'
import { faultsOf, inBrowser } from '../support/browser.ts'
import { serviceFor, signedIn } from '../support/console.ts'
import { people, person } from '../support/people.ts'

await inBrowser(t, tryOut)

/** Returns the faults other than refused requests, which the browser logs as errors. */
const unexpected = (faults: readonly string[]): readonly string[] =>
  faults.filter((fault) => !/status of (403|404|409)/.test(fault))
const badge = (page: Page, count: number) =>
  page.locator('.side-link', { hasText: 'Inbox' }).getByText(String(count), { exact: true })
/** Waits until the title of the tab begins with a text. */
const titled = (page: Page, start: string) =>
  page.evaluate(`new Promise((done) => {
    const check = () =>
      document.title.startsWith(${JSON.stringify(start)}) ? done() : requestAnimationFrame(check)
    check()
  })`)

async function tryOut(browser: Browser): Promise<void> {
  const s = await serviceFor(t, browser)
  const [ada, ben] = (await people(s, 'Ada', 'Ben')) as [
    Awaited<ReturnType<typeof person>>,
    Awaited<ReturnType<typeof person>>,
  ]
  const admin = await person(s, 'Root', 'role_admin')
  const viewer = await person(s, 'Vera', 'role_viewer')
  const ask = (title: string, more: Record<string, unknown> = {}) =>
    ben.ok('interaction.create', {
      kind: 'request_approval',
      title,
      target_user_ids: [ada.id],
      ...more,
    })
  const answerOf = async (id: unknown) => {
    const { status, outcome, responses } = await s.ok('interaction.get', { id })
    const [first] = responses as unknown as readonly { comment?: string }[]
    return { status, outcome, comment: first?.comment }
  }

  t.test('an approval arrives live and is answered by mouse, with a draft', async (t) => {
    const { context, open, faults } = await signedIn(browser, s, { key: ada.key })
    const page = await open('/p/default/inbox')
    await page.getByText('Nothing waits for you').waitFor()
    const { id } = await ask('Deploy 4.12?', {
      description: 'All **482** tests passed.',
      context: { version: '4.12' },
      expires_at: new Date(Date.now() + 3_000_000).toISOString(),
    })
    await page.getByRole('link', { name: /Deploy 4\.12/ }).click()
    await badge(page, 1).waitFor()
    await titled(page, '(1) Inbox')
    await page
      .getByText(/\d+ min.* left/)
      .first()
      .waitFor()
    await page.getByText('Approve').click()
    await page.getByLabel('Comment').fill('Looks good')
    await page.reload()
    t.equal(await page.getByLabel('Comment').inputValue(), 'Looks good', 'the draft is kept')
    t.equal(await page.getByRole('radio', { name: /Approve/ }).isChecked(), true)
    await page.getByRole('button', { name: 'Send answer' }).click()
    await page.locator('.question-outcome').getByText('Approved').waitFor()
    t.strictSame(await answerOf(id), { status: 'completed', outcome: true, comment: 'Looks good' })
    await titled(page, 'Inbox')
    await page.getByText('Nothing waits for you').waitFor()
    t.strictSame(unexpected(faults), [])
    await context.close()
  })

  t.test('questions are answered by keyboard alone', async (t) => {
    const { context, open, faults } = await signedIn(browser, s, { key: ada.key })
    const options = ['Europe', 'Asia', 'Africa'].map((label) => ({ value: label[1], label }))
    const many = await ask('Which regions?', {
      kind: 'request_information',
      spec: { mode: 'multi_select', options },
    })
    const no = await ask('Delete it?')
    const page = await open('/p/default/inbox')
    await page.getByRole('link', { name: /Delete it/ }).waitFor()
    await page.keyboard.press('j')
    await page.getByRole('heading', { name: 'Delete it?' }).waitFor()
    await page.keyboard.press('r')
    await page.keyboard.press('Control+Enter')
    await page.locator('.question-outcome').getByText('Rejected').waitFor()
    await page.getByRole('link', { name: /Delete it/ }).waitFor({ state: 'detached' })
    await page.keyboard.press('j')
    await page.getByRole('heading', { name: 'Which regions?' }).waitFor()
    await page.keyboard.press('Enter')
    await page.locator('.answer-form :focus').waitFor()
    await page.keyboard.press('3')
    await page.keyboard.press('1')
    await page.keyboard.press('Control+Enter')
    await page.locator('.question-outcome').getByText('Europe, Africa').waitFor()
    t.strictSame((await answerOf(no['id'])).outcome, false)
    t.strictSame((await answerOf(many['id'])).outcome, ['u', 'f'])
    await page.keyboard.press('Escape')
    await page.waitForURL(/inbox$/)
    t.strictSame(unexpected(faults), [])
    await context.close()
  })

  t.test('a proposed answer is reviewed, and refusals are shown in words', async (t) => {
    const { id } = await ask('Write the report', {
      kind: 'request_review',
      target_user_ids: [ben.id],
      spec: { mode: 'input', multiline: true },
      resolution_policy: { type: 'any_of', review: { reviewer_user_ids: [ada.id] } },
    })
    await ben.ok('interaction.respond', { id, value: 'Draft one' })
    const { context, open, faults } = await signedIn(browser, s, { key: ada.key })
    const page = await open(`/p/default/inbox?id=${id}`)
    await page.getByText('Draft one').waitFor()
    await page.getByText('Request changes', { exact: true }).click()
    await page.getByRole('button', { name: 'Send review' }).click()
    await page.getByRole('alert').getByText('Describe the requested changes.').waitFor()
    await page.getByLabel('Comment of the review').fill('Shorter, please')
    await page.keyboard.press('Control+Enter')
    await page.getByText('Requested changes').first().waitFor()
    await ben.ok('interaction.respond', { id, value: 'Draft two' })
    await page.getByText('Draft two').waitFor()
    await page.getByText('Accept', { exact: true }).click()
    await page.keyboard.press('Control+Enter')
    await page.locator('.question-outcome').getByText('Draft two').waitFor()
    t.equal((await answerOf(id)).status, 'completed')
    t.strictSame(unexpected(faults), [])
    await context.close()
  })

  t.test('administrators create links and withdraw; viewers only read', async (t) => {
    const { id } = await ask('Only for Ada')
    const asked = await signedIn(browser, s, { key: ada.key })
    const unsent = await asked.open(`/p/default/inbox?id=${id}`)
    await unsent.getByLabel('Comment').fill('Half an answer')
    const { context, open, faults } = await signedIn(browser, s, { key: admin.key })
    const page = await open(`/p/default/inbox?show=open&id=${id}`)
    await page.getByText('You are not asked.').waitFor()
    await page.getByRole('button', { name: 'More actions' }).click()
    await page.getByRole('menuitem', { name: /Links for people/ }).click()
    await page.getByRole('button', { name: 'Create links' }).click()
    const link = String(await page.locator('dialog code').textContent())
    t.match(link, /^http.*\/answer\//)
    t.equal((await fetch(link)).status, 200)
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: 'More actions' }).click()
    await page.getByRole('menuitem', { name: 'Withdraw the question' }).click()
    await page.getByLabel('Reason (optional)').fill('Not needed')
    await page.getByRole('button', { name: 'Withdraw', exact: true }).click()
    await page.locator('.question-outcome').getByText('Not needed').waitFor()
    await unsent.getByText('The question was closed without an answer').waitFor()
    await unsent.getByText('Half an answer').waitFor()
    t.equal(await unsent.getByText('This answer counts').count(), 0)
    await asked.context.close()
    await context.close()
    const other = await signedIn(browser, s, { key: viewer.key })
    const seen = await other.open(`/p/default/inbox?show=expired&id=${id}`)
    await seen.locator('.question-outcome').getByText('Not needed').waitFor()
    t.equal(await seen.getByRole('button', { name: 'More actions' }).count(), 0)
    t.strictSame(unexpected([...faults, ...other.faults]), [])
    await other.context.close()
  })

  t.test('hostile content is only text, and axe finds nothing', async (t) => {
    const deep = JSON.parse(`${'{"a":'.repeat(50)}1${'}'.repeat(50)}`) as unknown
    await ask(`<img src=x onerror=alert(1)> \u202egnp ${'W'.repeat(400)}`, {
      description: `<script>alert(1)</script> [x](javascript:alert(1)) ${'y'.repeat(8000)}`,
      context: deep,
      expires_at: new Date(Date.now() + 3_000_000).toISOString(),
    })
    for (const dark of [false, true]) {
      const { context, open, faults } = await signedIn(browser, s, {
        key: ada.key,
        dark,
        width: dark ? 320 : 1280,
        bypassCSP: true,
      })
      const page = await open('/p/default/inbox')
      await page.getByRole('link', { name: /onerror/ }).click()
      await page.getByRole('button', { name: 'Send answer' }).waitFor()
      t.equal(await page.locator('main img, main script, main a[href^=javascript]').count(), 0)
      t.strictSame(await faultsOf(page), [], `dark ${dark}`)
      t.ok(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'))
      t.strictSame(unexpected(faults), [])
      await context.close()
    }
  })
}
