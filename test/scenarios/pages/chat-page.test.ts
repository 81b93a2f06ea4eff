/**
 * The chat page in a real browser, with the scripted model. An agent's text appears while it is
 * generated. Tool calls and questions are shown and answered. A reload during a turn loses nothing.
 * No settled row is removed or re-rendered. Skipped without Chromium. BATON_CHROMIUM can contain
 * its path. If BATON_SCREENSHOT is the path of a PNG file, a screenshot is written to it.
 */
import type { Browser, Page } from 'playwright-core'
import t from 'tap'
import { shortTime } from '../../../client/chat/time.ts'
import { faultsOf, focused, inBrowser, tabTo, untilTrue } from '../support/browser.ts'
import { serviceFor } from '../support/console.ts'
import { listOf } from '../support/given.ts'
import { person } from '../support/people.ts'
import { attachFiles } from './chat-files.ts'

const ASKED_AGAIN =
  'Each of them was asked again afterwards, and each of them answered within its time.'
const HOSTILE = '<img src=x onerror=alert(1)> [a](javascript:alert(1)) [b](https://b.example/)'
const script = `
script:
  - when: {text: "deploy *", step: 1}
    think: First a look at the hosts of {{1}}.
    say: Before anything is changed I check the hosts of {{1}}.
    chunk: 4
    pace: 40ms
    call: {hosts.check: {env: "{{1}}"}}
  - when: {after: hosts.check}
    say: All {{result.hosts}} answer. The next step changes them.
    call: {hosts.deploy: {hosts: "{{result.hosts}}"}}
  - when: {after: hosts.deploy}
    say: "Version {{result.version}} is out on all hosts. ${ASKED_AGAIN}"
    chunk: 4
    pace: 60ms
  - when: "*wait"
    delay: 1m
  - when: break
    fail: 400
  - when: "*format"
    say: "First **bold** words.\\n\\n- one\\n- \`two\`\\n\\n${HOSTILE}\\n\\nThe end."
    chunk: 8
    pace: 50ms
  - say: I can deploy.
`
const last = `Version v7 is out on all hosts. ${ASKED_AGAIN}`

/**
 * Script that the page runs from the start. It records rows that were removed, rows that were added
 * twice, and settled rows that were modified.
 */
const watcher = `
window.watched = { removed: [], twice: [], touched: [] }
const known = new Set(), settled = new Set()
const rows = (nodes) => [...nodes].filter((node) => node.nodeName === 'LI' && node.dataset.id)
new MutationObserver((records) => {
  for (const { target, type, addedNodes, removedNodes } of records) {
    for (const { dataset } of rows(removedNodes)) watched.removed.push(dataset.id)
    for (const { dataset } of rows(addedNodes))
      known.has(dataset.id) ? watched.twice.push(dataset.id) : known.add(dataset.id)
    const row = (target.nodeType === 1 ? target : target.parentElement)?.closest('li.message')
    if (row && settled.has(row.dataset.id) && (type === 'characterData' || removedNodes.length > 0))
      watched.touched.push(row.dataset.id)
  }
  for (const { dataset } of document.querySelectorAll('li.message[aria-busy=false]')) settled.add(dataset.id)
}).observe(document, { childList: true, subtree: true, characterData: true })
`

await inBrowser(t, tryOut)

async function tryOut(browser: Browser): Promise<void> {
  const s = await serviceFor(t, browser)
  const ada = await person(s, 'ada')
  await s.ok('action.create', {
    name: 'hosts.check',
    endpoint_kind: 'worker',
    description: 'Check hosts',
    annotations: { read_only: true },
  })
  await s.ok('action.create', {
    name: 'hosts.deploy',
    endpoint_kind: 'worker',
    description: 'Put the newest version on hosts',
    annotations: { destructive: true },
  })
  const kit = await s.ok('toolkit.create', {
    name: 'hosts',
    actions: [{ selector_type: 'group', selector: 'hosts' }],
  })
  const agent = await s.ok('agent.create', { name: 'Deployer', system_prompt: script })
  await s.ok('agent.assign_toolkits', { id: agent['id'], toolkit_ids: [kit['id']] })
  const worker = await s.worker({ action_names: ['hosts.check', 'hosts.deploy'] })
  void (async () => {
    for (;;) {
      const job = await worker.job()
      await worker.report(job, {
        status: 'completed',
        result: String(job['action_name']) === 'hosts.check' ? { hosts: 3 } : { version: 'v7' },
      })
    }
  })().catch(() => {})
  t.teardown(() => worker.close())

  const asked: string[] = []
  const signIn = async (page: Page): Promise<void> => {
    page.on('request', (request) => asked.push(request.url()))
    await page.getByLabel('Key or token').waitFor()
    t.equal(await focused(page).catch(() => 'password'), 'password', 'the key field has the focus')
    await page.keyboard.type(ada.key)
    await page.keyboard.press('Enter')
  }
  const watched = (page: Page) =>
    page.evaluate('window.watched') as Promise<Record<'removed' | 'twice' | 'touched', string[]>>
  const badges = (page: Page): Promise<string[]> => page.locator('.tool .badge').allTextContents()

  await t.test(
    'a turn and its question are shown while the page is reloaded twice',
    { timeout: 60_000 },
    async (t) => {
      // axe is a foreign script, which the page's content security policy forbids. The next test
      // keeps the policy.
      const page = await browser.newPage({ bypassCSP: true, viewport: { width: 820, height: 900 } })
      page.setDefaultTimeout(15_000)
      await page.addInitScript(watcher)
      await page.goto(`${s.url}/chat`)
      t.strictSame(await faultsOf(page), [], 'axe: the sign-in form')
      await signIn(page)
      await page.getByText('This agent has no sessions yet.').waitFor()
      t.strictSame(await faultsOf(page), [], 'axe: the choice of a session')
      await tabTo(page, /^button/)
      await page.keyboard.press('Enter')
      await page.getByLabel('Message').waitFor()
      const session_id = /#session=(ses_\w+)$/.exec(page.url())?.[1] ?? ''
      await page.getByLabel('Message').fill('deploy staging')
      await page.keyboard.press('Enter')
      const writing = page.locator('.message.assistant[aria-busy=true] .text')
      await untilTrue(
        page,
        "(document.querySelector('.message.assistant[aria-busy=true] .blocks > .text')" +
          "?.textContent ?? '').length.toString().match(/^([5-9]|[1-3]\\d)$/)",
      )
      t.match(await page.locator('.bar .badge').textContent(), 'running')
      t.match(
        await page.locator('.thinking').textContent(),
        /First a look at the hosts of staging\./,
      )

      await page.getByRole('button', { name: 'Yes' }).waitFor()
      t.strictSame(await page.locator('.tool code').allTextContents(), [
        'hosts.check',
        'hosts.deploy',
      ])
      t.strictSame(await badges(page), ['done', 'waiting for a person'])
      t.match(
        await page.locator('.question').textContent(),
        /Deployer wants to run hosts\.deploy.*Put the newest version on hosts.*"hosts": 3/s,
      )
      t.match(await page.locator('.bar .badge').textContent(), 'waiting for an answer')
      t.match(
        await page.locator('#announcements').textContent(),
        /Question: Deployer wants to run hosts\.deploy/,
        'screen readers are notified of the question',
      )
      t.strictSame(await faultsOf(page), [], 'axe: a question')
      await page.locator('.tool summary', { hasText: 'Result' }).first().click()
      t.match(await page.locator('.tool pre').allTextContents(), [/"env": "staging"/, /"hosts": 3/])
      const path = process.env['BATON_SCREENSHOT']
      if (path) {
        await page.setViewportSize({ width: 820, height: 1500 })
        await page.screenshot({ path })
        await page.setViewportSize({ width: 820, height: 900 })
      }
      t.strictSame(await watched(page), { removed: [], twice: [], touched: [] })

      const before = await page.locator('.conversation > li').allTextContents()
      await page.reload()
      await page.getByRole('button', { name: 'Yes' }).waitFor()
      t.strictSame(
        await page.locator('.conversation > li').allTextContents(),
        before,
        'the reloaded page shows the same rows',
      )
      await tabTo(page, /^submit true/, 20)
      await page.keyboard.press('Enter')
      await untilTrue(
        page,
        '/^Version .{14,}/.test(' +
          "[...document.querySelectorAll('.message.assistant[aria-busy=true] .text')]" +
          ".at(-1)?.textContent ?? '')",
      )
      t.equal(await focused(page), 'textarea', 'the message field has the focus')
      t.match(await page.locator('.outcome').textContent(), /Answered: yes/)
      t.strictSame(await watched(page), { removed: [], twice: [], touched: [] })

      const half = (await writing.last().textContent()) ?? ''
      t.ok(
        half.length > 20 && last.startsWith(half) && half !== last,
        `half of the text was shown: ${half}`,
      )
      await page.reload()
      await writing.last().waitFor()
      const again = (await writing.last().textContent()) ?? ''
      t.ok(again.length >= half.length && last.startsWith(again), `no text is lost: ${again}`)
      await page.locator('.end.completed').waitFor()
      t.equal(await page.locator('.message.assistant .text').last().textContent(), last)
      t.strictSame(await badges(page), ['done', 'done'])
      t.match(await page.locator('#announcements').textContent(), `Deployer: ${last}`)
      t.strictSame(await watched(page), { removed: [], twice: [], touched: [] })
      const shown = listOf(await s.ok('session.messages', { session_id, limit: 100 })).filter(
        ({ content }) =>
          (content as unknown as { type: string }[]).some(({ type }) => type !== 'tool_result'),
      )
      t.strictSame(
        await page
          .locator('.message')
          .evaluateAll((rows) =>
            rows.map((row) => (row as unknown as { dataset: { id: string } }).dataset.id),
          ),
        shown.map(({ id }) => id),
        'every message once, in order',
      )
      t.strictSame(await faultsOf(page), [], 'axe: the end')

      await page.getByLabel('Message').fill('break')
      await page.keyboard.press('Enter')
      await page.locator('.end.failed', { hasText: 'provider_refused' }).waitFor()
      await page.getByLabel('Message').fill('wait')
      await page.keyboard.press('Enter')
      await page.getByRole('button', { name: 'Cancel the turn' }).click()
      await page.getByText('The turn was cancelled.', { exact: true }).first().waitFor()
      await page.getByRole('button', { name: 'Cancel the turn' }).waitFor({ state: 'hidden' })
      await page.emulateMedia({ colorScheme: 'dark' })
      await page.setViewportSize({ width: 320, height: 700 })
      t.strictSame(await faultsOf(page), [], 'axe: dark and narrow')
      t.ok(
        await page.evaluate('document.documentElement.scrollWidth <= innerWidth'),
        'the page fits into the viewport',
      )
      t.strictSame((await watched(page)).twice, [])
      await page.close()
    },
  )

  await t.test('the page works under its policy and stores the key only in its tab', async (t) => {
    const faults: string[] = []
    const place = { locale: 'de-DE', timezoneId: 'Asia/Tokyo' }
    const page = await browser.newPage(place)
    // Playwright intercepts file dialogs only while the page has a `filechooser` listener. Without
    // this permanent listener, the interception might begin too late.
    page.on('filechooser', () => {})
    page.setDefaultTimeout(15_000)
    page.on('console', (line) => {
      if (line.type() === 'error') faults.push(line.text())
    })
    page.on('pageerror', (error) => faults.push(error.message))
    const [session] = listOf(await s.ok('session.list', { agent_id: agent['id'] }))
    await page.goto(`${s.url}/chat#session=${String(session?.['id'])}`)
    await page.getByLabel('Key or token').fill(ada.key)
    await page.keyboard.press('Enter')
    await page.locator('.end.cancelled').waitFor()
    t.equal(await page.locator('.end').count(), 3)
    await page.getByLabel('Message').fill('format')
    await page.keyboard.press('Enter')
    const written = page.locator('.message.assistant .markdown').last()
    await written.locator('li').first().waitFor()
    await page.evaluate(
      `window.kept = document.querySelector('.markdown strong'); getSelection().selectAllChildren(kept)`,
    )
    const title = 'Rollout of v7'
    await s.ok('session.update', { session_id: session?.['id'], title })
    await written.getByText('The end.').waitFor()
    await page.getByRole('heading', { name: title }).waitFor()
    t.match(await page.title(), /^Rollout of v7 · \w+ chat$/, 'a new title is shown')
    t.match(await page.locator('.message.assistant .speaker').first().textContent(), /^Deployer /)
    const times = (await page.evaluate(
      `[...document.querySelectorAll('.speaker time')].map(({ dateTime, textContent }) => [dateTime, textContent])`,
    )) as [string, string][]
    t.ok(times.length > 3)
    for (const [time, text] of times)
      t.equal(
        text,
        shortTime(time, Date.now(), { locale: place.locale, timeZone: place.timezoneId }),
      )
    t.equal(await page.evaluate('String(getSelection())'), 'bold', 'the selection is preserved')
    t.equal(await page.evaluate('kept.isConnected'), true)
    t.strictSame(await written.locator(':scope > *').allInnerTexts(), [
      'First bold words.',
      'one\ntwo',
      '<img src=x onerror=alert(1)> [a](javascript:alert(1)) b',
      'The end.',
    ])
    t.strictSame(
      await page.evaluate(
        `[...document.querySelectorAll('.markdown a')].map(({ outerHTML }) => outerHTML)`,
      ),
      ['<a href="https://b.example/" target="_blank" rel="noopener noreferrer">b</a>'],
    )
    t.strictSame(faults, [])
    await attachFiles(t, page, s, String(session?.['id']))
    t.strictSame(
      faults.filter((fault) => !/status of 4(00|13)/.test(fault)),
      [],
      'the policy allows previews and downloads',
    )
    t.notMatch(asked.join(' '), ada.key, 'no URL contains the key')
    t.notMatch(page.url(), ada.key)
    t.strictSame((await page.context().storageState()).origins, [], 'no storage outlives the tab')
    await page.getByRole('link', { name: 'All sessions' }).click()
    await page.getByRole('link', { name: title }).waitFor()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByLabel('Key or token').fill('bat_nobody')
    await page.keyboard.press('Enter')
    await page.getByText('The service does not accept this key.').waitFor()
    const served = await s.raw('GET', '/chat', { key: null })
    t.match(
      served.headers.get('content-security-policy'),
      /default-src 'none'; script-src 'self'; style-src 'sha256-/,
    )
    for (const [, address] of served.text.matchAll(/(?:src|href)="(\/[^"]+)"/g))
      t.match(
        await s.raw('HEAD', String(address), { key: null }),
        { status: 200, text: '' },
        `${address} is served from here`,
      )
    t.equal(
      (await s.raw('GET', '/modules/nodes/node.ts', { key: null })).status,
      404,
      'no other modules are served',
    )
    await page.close()
  })
}
