/**
 * The channels of the console in a real browser: creating a channel, writing and reading messages
 * live, threads, pins, mentions, files, search, unread messages, and people who may not write.
 * Skipped without Chromium.
 */
import { readFile } from 'node:fs/promises'
import type { Browser, Page } from 'playwright-core'
import t from 'tap'
import { dropFiles, faultsOf, inBrowser } from '../support/browser.ts'
import { serviceFor, signedIn } from '../support/console.ts'
import { editor, person } from '../support/people.ts'

await inBrowser(t, tryOut)

const unexpected = (faults: readonly string[]): readonly string[] =>
  faults.filter((fault) => !/status of (403|404|409)/.test(fault))
const artifactIn = (path: string | null) => /art_\w+/.exec(path ?? '')?.[0] ?? ''
const composer = (page: Page) => page.getByRole('textbox', { name: /^Message to/ })
const timeline = (page: Page) => page.getByRole('region', { name: 'Messages' })

async function tryOut(browser: Browser): Promise<void> {
  const s = await serviceFor(t, browser)
  const [ada, ben] = [await editor(s, 'Ada'), await editor(s, 'Ben')]
  const viewer = await person(s, 'Vera', 'role_viewer')
  const agent = await s.ok('agent.create', { name: 'ops-bot', system_prompt: 'Help.' })
  const { context, open, faults } = await signedIn(browser, s, { key: ada.key })
  let id = ''
  const say = (content: string, more: Record<string, unknown> = {}) =>
    ben.ok('channel.send', { id, content, ...more })

  t.test('a channel is created, and messages appear live', async (t) => {
    const page = await open('/p/default/channels')
    await page.getByText('There is no channel yet').waitFor()
    await page.getByRole('button', { name: 'New channel' }).first().click()
    await page.getByLabel('Name', { exact: true }).fill('Release Notes')
    await page.getByRole('checkbox', { name: /Ben/ }).check()
    await page.getByRole('checkbox', { name: /ops-bot/ }).check()
    await page.getByRole('button', { name: 'Create' }).click()
    await page.getByRole('heading', { name: 'release-notes' }).waitFor()
    id = /channels\/(chan_\w+)/.exec(page.url())?.[1] ?? ''
    await page.getByText('No message yet').waitFor()
    await say('Hello **Ada**')
    await timeline(page).locator('strong', { hasText: /^Ada$/ }).waitFor()
    await composer(page).fill('Hello')
    await page.keyboard.press('Shift+Enter')
    await page.keyboard.type('Ben')
    await page.reload()
    t.equal(await composer(page).inputValue(), 'Hello\nBen', 'the draft is kept')
    const read = page.waitForResponse(
      (answer) => answer.ok() && (answer.request().postData() ?? '').includes('"seq":2'),
    )
    await composer(page).press('Enter')
    await timeline(page)
      .getByText(/Hello\s*Ben/)
      .waitFor()
    t.equal(await composer(page).inputValue(), '')
    await read
    const { items } = await ben.ok('channel.members', { id })
    const own = (items as unknown as readonly Record<string, unknown>[]).find(
      ({ member_id }) => member_id === ada.id,
    )
    t.equal(own?.['last_read_seq'], 2, 'what is shown is read')
    await page.close()
  })

  t.test('mentions are completed, and threads, pins and edits work by keyboard', async (t) => {
    const page = await open(`/p/default/channels/${id}`)
    await timeline(page)
      .getByText(/Hello\s*Ben/)
      .waitFor()
    await page.keyboard.press('c')
    await page.locator('textarea:focus').waitFor()
    await page.keyboard.type('ask @op')
    await page.getByRole('option', { name: 'ops-bot' }).waitFor()
    await page.keyboard.press('Enter')
    t.equal(await composer(page).inputValue(), 'ask @ops-bot ')
    await composer(page).fill('Shall we ship?')
    await page.keyboard.press('Enter')
    await timeline(page).getByText('Shall we ship?').waitFor()
    await timeline(page).focus()
    await page.keyboard.press('k')
    await page.keyboard.press('p')
    await timeline(page).getByText('Pinned').waitFor()
    await page.keyboard.press('e')
    await page.getByLabel('Edit the message').fill('Shall we ship now?')
    await page.keyboard.press('Enter')
    await timeline(page).getByText('Shall we ship now?').waitFor()
    await page.keyboard.press('t')
    const thread = page.getByRole('complementary', { name: 'Thread' })
    await thread.getByLabel('Reply').fill('Yes')
    await thread.getByLabel('Reply').press('Enter')
    await thread.getByText('Yes', { exact: true }).waitFor()
    await timeline(page)
      .getByRole('button', { name: /1 reply/ })
      .waitFor()
    const root = /thread=(cmsg_\w+)/.exec(page.url())?.[1]
    await say('Wait', { reply_to: root })
    await thread.getByText('Wait', { exact: true }).waitFor()
    await timeline(page)
      .getByRole('button', { name: /2 replies/ })
      .waitFor()
    await thread.getByLabel('Reply').press('Escape')
    await thread.waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Pinned messages' }).click()
    const pins = page.getByRole('complementary', { name: 'Pinned messages' })
    await pins.getByText('Shall we ship now?').waitFor()
    await page.close()
  })

  t.test('files are attached, and can be read by others', async (t) => {
    const page = await open(`/p/default/channels/${id}`)
    await page.locator('input[type=file]').setInputFiles({
      name: 'notes.txt',
      mimeType: 'text/plain',
      buffer: Buffer.from('content'),
    })
    await page.getByRole('button', { name: 'Remove notes.txt' }).waitFor()
    const dropped = { name: 'dropped.txt', type: 'text/plain', content: 'x' }
    await dropFiles(composer(page), [dropped])
    await page.getByRole('button', { name: 'Remove dropped.txt' }).waitFor()
    await page.getByRole('button', { name: 'Send' }).click()
    const link = timeline(page).getByRole('link', { name: /notes\.txt/ })
    await link.waitFor()
    const answer = await page.request.get(
      new URL(String(await link.getAttribute('href')), s.url).href,
    )
    t.equal(await answer.text(), 'content')

    const other = await signedIn(browser, s, { key: ben.key })
    const reader = await other.open(`/p/default/channels/${id}`)
    const saved = reader.waitForEvent('download')
    await timeline(reader)
      .getByRole('link', { name: /notes\.txt/ })
      .click()
    t.equal((await readFile(await (await saved).path())).toString(), 'content')
    await ada.ok('artifact.delete', { artifact_id: artifactIn(await link.getAttribute('href')) })
    await timeline(reader)
      .getByRole('link', { name: /notes\.txt/ })
      .click()
    await reader.getByText('The file was deleted, or is not shared with you.').waitFor()
    await other.context.close()
    await page.close()
  })

  t.test('what is written while a message is being sent is kept', async (t) => {
    const page = await open(`/p/default/channels/${id}`)
    const gate: { open?: () => void } = {}
    const opened = new Promise<void>((done) => {
      gate.open = done
    })
    await page.route(/\/messages(\?|$)/, async (route) => {
      if (route.request().method() === 'POST') await opened
      await route.continue()
    })
    await composer(page).fill('The first half')
    await composer(page).press('Enter')
    await composer(page).fill('The second half')
    await dropFiles(composer(page), [{ name: 'late.txt', type: 'text/plain', content: 'x' }])
    await page.getByText('late.txt').waitFor()
    gate.open?.()
    await timeline(page).getByText('The first half').waitFor()
    t.equal(await composer(page).inputValue(), 'The second half')
    await page.getByRole('button', { name: 'Remove late.txt' }).click()
    await composer(page).fill('')
    await page.close()
  })

  t.test('a file that is removed before sending is deleted', async (t) => {
    const page = await open(`/p/default/channels/${id}`)
    await dropFiles(composer(page), [{ name: 'mistake.txt', type: 'text/plain', content: 'x' }])
    const removed = page.waitForResponse(
      (answer) => answer.request().method() === 'DELETE' && answer.status() === 204,
    )
    await page.getByRole('button', { name: 'Remove mistake.txt' }).click()
    await removed
    const { items } = await ada.ok('artifact.list')
    t.notMatch(JSON.stringify(items), 'mistake.txt')
    await page.close()
  })

  t.test(
    'unread messages are counted, marked and read; a search leads to its message',
    async (t) => {
      const page = await open('/p/default/channels')
      for (let i = 1; i <= 120; i++) await say(`Build ${i} ${i === 3 ? 'needle' : 'green'}`)
      const entry = page.getByRole('link', { name: /release-notes/ })
      await entry.getByText('120 unread messages').waitFor()
      await entry.click()
      await timeline(page).getByText('Build 120 green').waitFor()
      await entry.locator('.badge').waitFor({ state: 'detached' })
      await page.keyboard.press('/')
      const search = page.getByRole('complementary', { name: 'Search' })
      await search.getByRole('searchbox').fill('needle')
      await search.getByRole('link', { name: 'Show the message' }).click()
      await timeline(page).getByText('Build 3 needle').waitFor()
      await page.locator('.post.target', { hasText: 'Build 3 needle' }).waitFor()
      await say('The newest')
      await page.getByRole('button', { name: '1 new message below' }).click()
      await timeline(page).getByText('The newest').waitFor()
      t.ok(
        await page.evaluate(`(() => {
        const area = document.querySelector('.timeline')
        return area.scrollTop + area.clientHeight >= area.scrollHeight - 40
      })()`),
      )
      await page.close()
      const again = await open(`/p/default/channels/${id}`)
      await timeline(again).getByText('The newest').waitFor()
      await again.close()
      t.strictSame(unexpected(faults), [])
      await context.close()
    },
  )

  t.test('agents at work and what they were asked are shown', async (t) => {
    const { context, open, faults } = await signedIn(browser, s, { key: ben.key })
    const page = await open(`/p/default/channels/${id}?panel=exchanges`)
    await page.getByText('No agent was asked yet').waitFor()
    await say(`@ops-bot what is new?`)
    const panel = page.getByRole('complementary', { name: 'Requests to agents' })
    await panel.getByText('ops-bot').waitFor()
    t.ok(agent['id'])
    t.strictSame(unexpected(faults), [])
    await context.close()
  })

  t.test(
    'people who may not write only read, and lose a channel that becomes private',
    async (t) => {
      const { context, open, faults } = await signedIn(browser, s, { key: viewer.key })
      const page = await open(`/p/default/channels/${id}`)
      await page.getByText('You may read here, but not write.').waitFor()
      t.equal(await page.getByRole('button', { name: 'New channel' }).count(), 0)
      await ada.ok('channel.update', { id, private: true })
      await page.getByText('This channel was deleted, or you have lost access to it.').waitFor()
      await ada.ok('channel.update', { id, private: false })
      t.strictSame(unexpected(faults), [])
      await context.close()
    },
  )

  t.test('hostile content is only text, and axe finds nothing', async (t) => {
    await say(`<img src=x onerror=alert(1)> \u202egnp [x](javascript:alert(1)) ${'W'.repeat(5000)}`)
    await say(`| a |\n|---|\n| ${'b'.repeat(300)} |\n\n\`\`\`\n${'c'.repeat(500)}\n\`\`\``)
    for (const dark of [false, true]) {
      const { context, open, faults } = await signedIn(browser, s, {
        key: ada.key,
        dark,
        width: dark ? 320 : 1280,
        bypassCSP: true,
      })
      const page = await open(`/p/default/channels/${id}`)
      await timeline(page)
        .getByText(/onerror/)
        .waitFor()
      t.equal(await page.locator('main img, main a[href^=javascript]').count(), 0)
      t.strictSame(await faultsOf(page), [], `messages, dark ${dark}`)
      await page.goto(`${s.url}/p/default/channels/${id}?panel=members`)
      await page.getByRole('complementary', { name: 'Members' }).getByText('Ben').waitFor()
      t.strictSame(await faultsOf(page), [], `members, dark ${dark}`)
      t.ok(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'))
      t.strictSame(unexpected(faults), [])
      await context.close()
    }
  })
}
