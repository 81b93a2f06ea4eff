/**
 * The pages of sessions in a real browser, with the scripted model: starting, using, renaming and
 * finding a session by mouse and by keyboard; text that appears while it is generated; questions,
 * files and messages during a turn; a reload during a turn; refusals; hostile content; and a user
 * who may only read. Skipped without Chromium.
 */
import type { Browser, Page } from 'playwright-core'
import t from 'tap'
import { dropFiles, faultsOf, inBrowser, onElement, untilTrue } from '../support/browser.ts'
import { serviceFor, signedIn } from '../support/console.ts'
import { listOf, until } from '../support/given.ts'
import { person } from '../support/people.ts'

const HOSTILE = '<img src=x onerror=alert(1)> [a](javascript:alert(1)) \u202Eabc'
const script = `
script:
  - when: {text: "deploy *", step: 1}
    think: First a look at {{1}}.
    say: Before anything is changed I look at {{1}}.
    call: {hosts.deploy: {env: "{{1}}"}}
  - when: {after: hosts.deploy}
    say: "Version {{result.version}} is out."
  - when: break
    fail: 400
  - when: "*slowly"
    say: "One word follows the other until all has been said and the end is reached."
    chunk: 3
    pace: 150ms
  - when: "*wait"
    delay: 1m
  - when: "*hostile"
    say: '${HOSTILE}'
  - say: Good day.
`

await inBrowser(t, tryOut)

async function tryOut(browser: Browser): Promise<void> {
  const s = await serviceFor(t, browser)
  const ada = await person(s, 'Ada')
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
  const agent_id = String(agent['id'])
  await s.ok('agent.assign_toolkits', { id: agent_id, toolkit_ids: [kit['id']] })
  const worker = await s.worker({ action_names: ['hosts.deploy'] })
  t.teardown(() => worker.close())
  const { context, open, faults } = await signedIn(browser, s, { key: ada.key })
  context.setDefaultTimeout(15_000)
  const message = (page: Page) => page.getByLabel('Message to Deployer')
  const say = async (page: Page, words: string): Promise<void> => {
    await message(page).fill(words)
    await message(page).press('Enter')
  }
  const ends = (page: Page, count: number) =>
    page
      .locator('.turn-end')
      .nth(count - 1)
      .waitFor()
  const start = async (title: string, more: object = {}): Promise<string> => {
    const { id } = await ada.ok('session.create', { agent_id, mode: 'new', title, ...more })
    return `/p/default/sessions/${id}`
  }
  /** Returns the faults other than refused requests, which the browser logs as errors. */
  const unexpected = (): string[] => faults.filter((fault) => !/status of 4\d\d/.test(fault))

  t.test('a session is started by mouse, asks, and is answered in place', async (t) => {
    const page = await open('/p/default/sessions')
    await page.getByText('There is no session yet').waitFor()
    await page.getByRole('button', { name: 'New session' }).click()
    await page.getByRole('textbox', { name: 'Title' }).fill('First release')
    await page.getByRole('button', { name: 'Start the session' }).click()
    await page.waitForURL(/\/sessions\/ses_\w+$/)
    await page.getByText('There are no messages yet').waitFor()
    await say(page, 'deploy staging')
    await page.getByRole('heading', { name: 'Deployer wants to run hosts.deploy' }).waitFor()
    await page.locator('.talk-tool summary', { hasText: 'Arguments' }).click()
    t.match(await page.locator('.talk-tool .tree').textContent(), /env: staging/)
    await page.reload()
    await page.getByRole('button', { name: 'Yes' }).click()
    const job = await worker.job()
    await worker.report(job, { status: 'completed', result: { version: 'v7' } })
    await page.locator('.markdown', { hasText: 'Version v7 is out.' }).waitFor()
    await ends(page, 1)
    t.match(await page.locator('.talk-question .outcome').textContent(), /Answered: Yes/)
    t.match(await page.locator('.turn-end').textContent(), /Done.*tokens in/)
    const sender = page.locator('.talk-message.user .talk-head').first()
    await sender.getByText('Ada', { exact: true }).waitFor()
    t.equal(
      await page.evaluate('document.activeElement.tagName'),
      'TEXTAREA',
      'the message field has the focus after the answer',
    )
    await page.getByRole('link', { name: 'Sessions' }).last().click()
    await page.getByRole('link', { name: 'First release' }).waitFor()
    await page.close()
  })

  t.test(
    'text appears while it is generated, and a reload in the middle loses nothing',
    async (t) => {
      const page = await open(await start('Slow'))
      await say(page, 'speak slowly')
      const writing = page.locator('.talk-message.assistant[aria-busy=true] .markdown')
      await page.getByText(/^One word f/).waitFor()
      await message(page).fill('a draft')
      await page.reload()
      await page.getByText(/^One word follows/).waitFor()
      t.equal(await message(page).inputValue(), 'a draft', 'the draft is kept')
      await page.locator('.markdown', { hasText: 'and the end is reached.' }).waitFor()
      await ends(page, 1)
      t.equal(await writing.count(), 0)
      t.equal(await page.locator('.talk-message').count(), 2)
      await page.close()
    },
  )

  t.test('a message during a turn, taken back, and the turn cancelled by keyboard', async (t) => {
    const page = await open(await start('Waiting'))
    await message(page).waitFor()
    await page.keyboard.press('m')
    await untilTrue(page, "document.activeElement.tagName === 'TEXTAREA'")
    await page.keyboard.type('please wait')
    await page.keyboard.press('Enter')
    await page.getByRole('button', { name: 'Add to this turn' }).waitFor()
    await page.keyboard.type('hurry up')
    await page.keyboard.press('Enter')
    await page.getByText('Sent, not yet read by the agent').waitFor()
    await page.getByRole('button', { name: 'Take back' }).click()
    await page.getByText('Sent, not yet read by the agent').waitFor({ state: 'detached' })
    await message(page).focus()
    await page.keyboard.press('Escape')
    const dialog = page.getByRole('dialog', { name: 'Cancel this turn?' })
    await dialog.getByRole('button', { name: 'Cancel the turn' }).focus()
    await page.keyboard.press('Enter')
    await page.getByText('The turn was cancelled.', { exact: false }).first().waitFor()
    await dialog.waitFor({ state: 'detached' })
    await untilTrue(page, "document.activeElement.tagName === 'TEXTAREA'")
    await page.keyboard.type('one')
    await page.keyboard.press('Shift+Enter')
    await page.keyboard.type('two')
    await page.keyboard.press('Enter')
    await ends(page, 2)
    t.equal(await page.locator('.talk-message.user').last().locator('p').innerText(), 'one\ntwo')
    await page.close()
  })

  t.test(
    'a message that the running turn has read is shown as the text of its sender',
    async (t) => {
      const page = await open(await start('Direction'))
      await page.locator('h1').waitFor()
      await say(page, 'answer slowly')
      await page.getByRole('button', { name: 'Add to this turn' }).waitFor()
      await say(page, 'and **then** rest')
      const added = page.locator('.talk-message.user').last()
      await added.locator('strong', { hasText: /^then$/ }).waitFor()
      t.equal(await added.locator('details').count(), 0, 'nothing is folded')
      await page.close()
    },
  )

  t.test('files are attached, kept over a reload, sent and shown', async (t) => {
    const page = await open(await start('Files'))
    const pixel = Buffer.from(
      'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
      'base64',
    )
    await page
      .locator('input[type=file]')
      .setInputFiles({ name: 'pixel.png', mimeType: 'image/png', buffer: pixel })
    const odd = { name: 'empty.bin', type: 'application/x-unknown', content: '\u0000\u0001' }
    // Files may be dropped anywhere on the page.
    await dropFiles(page.locator('h1'), [odd])
    await page.locator('.talk-chip .fault').waitFor()
    await say(page, 'look')
    await page.getByText('Remove empty.bin first: it could not be attached.').waitFor()
    await page.getByRole('button', { name: 'Remove empty.bin' }).click()
    await page.reload()
    await page.getByRole('button', { name: 'Remove pixel.png' }).waitFor()
    t.equal(await message(page).inputValue(), 'look')
    await message(page).press('Enter')
    const image = page.locator('.talk-message.user img')
    await image.waitFor()
    await untilTrue(page, "document.querySelector('.talk-message.user img').naturalWidth === 1")
    t.equal(await page.locator('.talk-chip').count(), 0)
    await ends(page, 1)
    await page.close()
  })

  t.test('a title and messages of another client appear without a reload', async (t) => {
    const address = await start('Before')
    const session_id = address.split('/').at(-1)
    const page = await open(address)
    await page.getByText('There are no messages yet').waitFor()
    await s.ok('session.update', { session_id, title: 'After' })
    await page.getByRole('heading', { name: 'After' }).waitFor()
    await s.ok('session.start_turn', { session_id, content: [{ type: 'text', text: 'break' }] })
    await page.getByText(/The turn failed: /).waitFor()
    await s.ok('session.start_turn', {
      session_id,
      content: [{ type: 'text', text: 'so hostile' }],
    })
    await ends(page, 2)
    t.equal(await page.locator('.talk-message img').count(), 0, 'HTML is text')
    t.equal(await page.locator('.talk-message a[href^=javascript]').count(), 0)
    await page.keyboard.press('r')
    await page.getByRole('textbox', { name: 'Title' }).fill('Renamed')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Renamed' }).waitFor()
    await until(
      () => s.ok('session.get', { session_id }),
      (found) => String(found['title']) === 'Renamed',
    )
    await page.getByRole('button', { name: 'Session', exact: true }).click()
    await page.getByRole('menuitem', { name: 'Archive' }).click()
    await page.getByText('This session is archived. Restore it to continue.').waitFor()
    await page.close()
  })

  t.test('earlier messages, search, filters and keys of the list', async (t) => {
    const address = await start('Long')
    const session_id = address.split('/').at(-1)
    for (let part = 0; part < 3; part++)
      await s.ok('session.append', {
        session_id,
        messages: Array.from({ length: 100 }, (_, index) => ({
          role: 'user',
          content: [{ type: 'text', text: `Line ${part * 100 + index + 1}` }],
        })),
      })
    const page = await open(address)
    await page.getByText('Line 300', { exact: true }).waitFor()
    t.equal(await page.getByText('Line 1', { exact: true }).count(), 0)
    const shown = await page.locator('.talk-message').count()
    await page.getByRole('button', { name: 'Earlier messages' }).click()
    await untilTrue(page, `document.querySelectorAll('.talk-message').length >= ${shown + 50}`)
    await onElement(page.locator('.conversation-scroll'), '(area) => { area.scrollTop = 0 }')
    await page.getByRole('button', { name: 'Newest messages' }).click()
    await page.getByRole('button', { name: 'Newest messages' }).waitFor({ state: 'detached' })

    await page.goto(`${s.url}/p/default/sessions`)
    await page.getByRole('link', { name: 'Long' }).waitFor()
    await page.getByRole('searchbox').fill('LON')
    await untilTrue(page, "document.querySelectorAll('tbody tr').length === 1")
    t.match(page.url(), /q=LON/)
    await page.getByRole('searchbox').fill('50%')
    await page.getByText('No session matches').waitFor()
    await page.getByRole('button', { name: 'Clear the filters' }).click()
    await page.getByRole('link', { name: 'Slow' }).waitFor()
    await page.locator('select').nth(1).selectOption('archived')
    await page.getByRole('link', { name: 'Renamed' }).waitFor()
    await page.goto(`${s.url}/p/default/sessions`)
    await page.getByRole('link', { name: 'Long' }).waitFor()
    await page.keyboard.press('j')
    await page.keyboard.press('j')
    const second = String(await page.evaluate('document.activeElement.textContent'))
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: second }).waitFor()
    await page.goBack()
    await page.getByRole('heading', { name: 'Sessions' }).waitFor()
    t.equal(
      (await ada.refused('session.list', { query: '' }, 400, 'bad_request')).message !== '',
      true,
    )
    t.equal(listOf(await ada.ok('session.list', { query: 'fIrSt' })).length, 1)
    await page.close()
  })

  t.test('a reader reads, and cannot write', async (t) => {
    const reader = await person(s, 'Rita', 'role_viewer')
    const other = await signedIn(browser, s, { key: reader.key })
    const { items } = (await s.ok('session.list', { query: 'First release' })) as unknown as {
      items: { id: string }[]
    }
    const page = await other.open(`/p/default/sessions/${items[0]?.id}`)
    await page.locator('.markdown', { hasText: 'Version v7 is out.' }).waitFor()
    await page.getByText('You can read this session.', { exact: false }).waitFor()
    t.equal(await page.locator('textarea').count(), 0)
    await page.goto(`${s.url}/p/default/sessions`)
    await page.getByRole('link', { name: 'First release' }).waitFor()
    t.equal(await page.getByRole('button', { name: 'New session' }).count(), 0)
    await page.goto(`${s.url}/p/default/sessions/ses_unknown`)
    await page.locator('.notice.bad').waitFor()
    await other.context.close()
  })

  t.test('axe finds nothing, light or dark, wide or narrow', async (t) => {
    const { items } = (await s.ok('session.list', { query: 'First release' })) as unknown as {
      items: { id: string }[]
    }
    for (const dark of [false, true]) {
      const seen = await signedIn(browser, s, {
        key: ada.key,
        dark,
        width: 1440,
        bypassCSP: true,
      })
      const page = await seen.open(`/p/default/sessions/${items[0]?.id}`)
      if (dark) await page.setViewportSize({ width: 320, height: 700 })
      await page.locator('.markdown', { hasText: 'Version v7 is out.' }).waitFor()
      t.strictSame(await faultsOf(page), [], `session, dark ${dark}`)
      t.ok(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'))
      await page.goto(`${s.url}/p/default/sessions?new=1`)
      await page.getByRole('dialog').waitFor()
      await page.getByRole('row').nth(1).waitFor()
      t.strictSame(await faultsOf(page), [], `list, dark ${dark}`)
      t.ok(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'))
      await seen.context.close()
    }
    t.strictSame(unexpected(), [], 'the browser has logged no faults')
    await context.close()
  })
}
