/**
 * The pages of agents, toolkits and skills in a real browser: an agent is created, changed, tried
 * out next to its settings and given tools; changes to its memory appear live. Also covers
 * bindings, refusals, unsaved changes and readers. Skipped without Chromium.
 */
import type { Browser } from 'playwright-core'
import t from 'tap'
import { faultsOf, inBrowser, untilTrue } from '../support/browser.ts'
import { serviceFor, signedIn } from '../support/console.ts'
import { listOf } from '../support/given.ts'
import { person } from '../support/people.ts'

const HOSTILE = '<b>x</b>\u202E 🚀'

await inBrowser(t, tryOut)

async function tryOut(browser: Browser): Promise<void> {
  const s = await serviceFor(t, browser)
  const ada = await person(s, 'Ada', 'role_admin')
  await s.ok('action.create', { name: 'hosts.check', endpoint_kind: 'worker', description: 'Look' })
  const { context, open, faults } = await signedIn(browser, s, { key: ada.key })
  context.setDefaultTimeout(15_000)
  let id = ''

  t.test('an agent is created by keyboard, changed and tried out', async (t) => {
    const page = await open('/p/default/agents')
    await page.getByText('There is no agent yet').waitFor()
    await page.keyboard.press('c')
    await page.locator('dialog input:focus').waitFor()
    await page.keyboard.type('Helper')
    await page.keyboard.press('Enter')
    await page.waitForURL(/\/agents\/agt_\w+$/)
    id = /agt_\w+/.exec(page.url())?.[0] ?? ''
    await page.locator('.editor-frame[data-loaded=true]').waitFor()
    await page.getByRole('textbox', { name: 'Instructions' }).fill('script:\n  - say: I am new.')
    await page.getByLabel('Description').fill(HOSTILE)
    await page.getByText('Save first: the try-out uses the saved settings.').waitFor()
    await page.keyboard.press('Control+s')
    await page.getByText('Saved.').waitFor()
    t.match(await s.ok('agent.get', { id }), {
      system_prompt: 'script:\n  - say: I am new.',
      description: HOSTILE,
    })
    await page.getByRole('button', { name: 'Start a try-out' }).click()
    await page.getByLabel('Message to Helper').fill('Hello')
    await page.keyboard.press('Enter')
    await page.locator('.markdown', { hasText: 'I am new.' }).waitFor()
    t.match(page.url(), /try=ses_/)
    await page.reload()
    await page.locator('.markdown', { hasText: 'I am new.' }).waitFor()
    await page.close()
  })

  t.test('a field that somebody else changed is shown next to the button that saves', async (t) => {
    const page = await open(`/p/default/agents/${id}`)
    await page.getByLabel('Description').fill('mine')
    await s.ok('agent.update', { id, description: 'theirs' })
    const bar = page.locator('.save-bar')
    await bar.getByText('Now stored: theirs').waitFor()
    t.ok(await bar.getByRole('button', { name: 'Save' }).isDisabled())
    await bar.getByRole('button', { name: 'Keep my changes' }).click()
    await bar.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Saved.').waitFor()
    t.match(await s.ok('agent.get', { id }), { description: 'mine' })
    await page.close()
  })

  t.test('what is typed while the settings are saved stays an unsaved change', async (t) => {
    const page = await open(`/p/default/agents/${id}`)
    const gate: { open?: () => void } = {}
    const opened = new Promise<void>((done) => {
      gate.open = done
    })
    await page.route(`**/agents/${id}*`, async (route) => {
      if (route.request().method() === 'PATCH') await opened
      await route.continue()
    })
    const field = page.getByLabel('Description')
    await field.fill('One')
    await page.keyboard.press('Control+s')
    await field.fill('One and two')
    gate.open?.()
    await page.getByText('Saved.').waitFor()
    t.match(await s.ok('agent.get', { id }), { description: 'One' })
    t.equal(await field.inputValue(), 'One and two')
    t.equal(await page.getByText('Now stored:').count(), 0, 'it is no conflict')
    await page.keyboard.press('Control+s')
    await page.getByRole('button', { name: 'Discard the changes' }).waitFor({ state: 'detached' })
    t.match(await s.ok('agent.get', { id }), { description: 'One and two' })
    await page.close()
  })

  t.test('another mode of the memory context keeps its limit', async (t) => {
    await s.ok('agent.update', { id, memory_context: { mode: 'index', max_bytes: 512 } })
    const page = await open(`/p/default/agents/${id}`)
    await page.getByLabel('Memory at the start of a turn').selectOption('full')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Saved.').waitFor()
    t.strictSame((await s.ok('agent.get', { id }))['memory_context'], {
      mode: 'full',
      max_bytes: 512,
    })
    await page.close()
  })

  t.test('a refused change is explained, and unsaved changes are guarded', async (t) => {
    await s.ok('agent.create', { name: 'Taken' })
    const page = await open(`/p/default/agents/${id}`)
    await page.getByLabel('Name', { exact: true }).fill('Taken')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.locator('.notice.bad, .field .fault').first().waitFor()
    let asked = ''
    page.once('dialog', (dialog) => {
      asked = dialog.message()
      void dialog.dismiss()
    })
    await page.getByRole('link', { name: 'Agents' }).first().click()
    await untilTrue(page, 'true')
    t.match(asked, /not saved/)
    t.match(page.url(), /agt_/)
    // The browser's Back button and the other tabs of the page also ask for confirmation.
    const dialogs: string[] = []
    const answers = [false, false, true]
    page.on('dialog', (dialog) => {
      dialogs.push(dialog.message())
      void (answers.shift() ? dialog.accept() : dialog.dismiss())
    })
    const nameField = page.getByLabel('Name', { exact: true })
    await page.getByRole('tab', { name: 'Memory' }).click()
    t.equal(dialogs.length, 1)
    t.equal(await nameField.inputValue(), 'Taken')
    await page.getByRole('button', { name: 'Discard the changes' }).click()
    await page.getByRole('link', { name: 'Agents' }).first().click()
    await page.getByRole('link', { name: 'Helper' }).first().click()
    await nameField.fill('Taken')
    await page.getByRole('button', { name: 'Discard the changes' }).waitFor()
    const address = page.url()
    const goBack = () => page.evaluate('history.back()')
    const question = page.waitForEvent('dialog')
    await goBack()
    await question
    await untilTrue(page, `location.href === ${JSON.stringify(address)}`)
    t.equal(await nameField.inputValue(), 'Taken')
    await goBack()
    await page.getByRole('heading', { name: 'Agents' }).waitFor()
    t.equal(dialogs.length, 3)
    await page.evaluate('history.forward()')
    await page.getByRole('heading', { name: 'Helper' }).waitFor()
    t.equal(page.url(), address)
    await nameField.fill('Taken')
    await page.getByRole('button', { name: 'Discard the changes' }).click()
    t.equal(await page.getByLabel('Name', { exact: true }).inputValue(), 'Helper')
    await s.ok('agent.update', { id, name: 'Renamed' })
    await page.getByRole('heading', { name: 'Renamed' }).waitFor()
    await page.close()
  })

  t.test('toolkits and skills are made, imported and given to the agent', async (t) => {
    const page = await open('/p/default/toolkits')
    await page.getByRole('button', { name: 'New toolkit' }).click()
    await page.getByLabel('Name', { exact: true }).fill('Hosts')
    await page.getByLabel('Name or pattern').fill('with space')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.locator('dialog .notice.bad').waitFor()
    await page.getByLabel('Name or pattern').fill('hosts')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('heading', { name: 'Hosts' }).waitFor()
    await page.goto(`${s.url}/p/default/skills`)
    await page.getByText('There is no skill yet').waitFor()
    await page.locator('input[type=file]').setInputFiles({
      name: 'notes.md',
      mimeType: 'text/markdown',
      buffer: Buffer.from('---\nname: notes\ndescription: Release notes\n---\nWrite **short**.\n'),
    })
    await page.getByRole('dialog', { name: 'Edit the skill' }).waitFor()
    await page.locator('.editor-frame', { hasText: 'Write **short**' }).waitFor()
    await page.keyboard.press('Escape')
    await page.goto(`${s.url}/p/default/agents/${id}?tab=tools`)
    await page.getByText('The agent has no skills.').waitFor()
    await page.getByLabel('Add a toolkit').selectOption({ label: 'Hosts' })
    await page.getByRole('button', { name: 'Assign' }).first().click()
    await page.getByText('hosts.check', { exact: true }).waitFor()
    await page.getByLabel('Add a skill').selectOption({ label: 'notes' })
    await page.getByRole('button', { name: 'Assign' }).last().click()
    await page.getByRole('button', { name: 'Remove notes' }).waitFor()
    await page.getByRole('button', { name: 'Remove Hosts' }).click()
    await page.getByText('hosts.check', { exact: true }).waitFor({ state: 'detached' })
    t.equal(listOf(await s.ok('agent.skills', { id })).length, 1)
    await page.close()
  })

  t.test('changes of the memory appear live, and entries are changed and deleted', async (t) => {
    const page = await open(`/p/default/agents/${id}?tab=memory`)
    await page.getByText('The agent has no memory entries yet').waitFor()
    await s.ok('memory.save', { id, memory_key: 'colour', content: `Green ${HOSTILE}` })
    await page.getByRole('heading', { name: 'colour' }).waitFor()
    await page
      .getByRole('button', { name: 'Edit', exact: true })
      .or(page.getByTitle('Edit colour'))
      .first()
      .click()
    await page.getByLabel('Content').fill('Blue')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Blue', { exact: true }).waitFor()
    await page.getByText('History of the last 30 days').click()
    await page.getByText('by a person or program').nth(1).waitFor()
    await page.getByRole('button', { name: 'Forget' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Forget' }).click()
    await page.getByText('The agent has no memory entries yet').waitFor()
    await page.getByText('by a person or program').nth(2).waitFor()
    await page.getByRole('tab', { name: 'Messaging' }).click()
    await page.getByRole('button', { name: 'Add a binding' }).click()
    await page.getByRole('textbox', { name: 'Account' }).fill('int_1')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('int_1').waitFor()
    t.match(listOf(await s.ok('agent.bindings', { id })), [{ provider: 'slack', dms: true }])
    t.match(page.url(), /tab=messaging/)
    await page.goBack()
    await page.close()
  })

  t.test('a reader sees an agent and cannot change it', async (t) => {
    const reader = await person(s, 'Rita', 'role_viewer')
    const other = await signedIn(browser, s, { key: reader.key })
    const page = await other.open(`/p/default/agents/${id}`)
    await page.getByRole('heading', { name: 'Renamed' }).waitFor()
    t.equal(await page.getByLabel('Description').isDisabled(), true)
    t.equal(await page.getByRole('button', { name: 'Save' }).count(), 0)
    await page.goto(`${s.url}/p/default/agents`)
    await page.getByRole('link', { name: 'Renamed' }).waitFor()
    t.equal(await page.getByRole('button', { name: 'New agent' }).count(), 0)
    await other.context.close()
  })

  t.test('axe finds nothing, light or dark, wide or narrow', async (t) => {
    for (const dark of [false, true]) {
      const seen = await signedIn(browser, s, { key: ada.key, dark, width: 1440, bypassCSP: true })
      const page = await seen.open('/p/default/agents')
      if (dark) await page.setViewportSize({ width: 320, height: 700 })
      const check = async (path: string, ready: string): Promise<void> => {
        await page.goto(`${s.url}/p/default/${path}`)
        await page.locator(ready).first().waitFor()
        t.strictSame(await faultsOf(page), [], `${path}, dark ${dark}`)
        t.ok(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'), path)
      }
      await check('agents', 'tbody tr')
      await check(`agents/${id}`, '.try-out')
      await check(`agents/${id}?tab=tools`, '.talk-tools, .pair .soft')
      await check(`agents/${id}?tab=memory`, 'summary')
      await check('toolkits?edit=new', 'dialog')
      await check('skills', 'li.card')
      await seen.context.close()
    }
    t.strictSame(
      faults.filter((fault) => !/status of 4\d\d/.test(fault)),
      [],
      'the browser has logged no faults',
    )
    await context.close()
  })
}
