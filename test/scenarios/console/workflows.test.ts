/**
 * The pages of workflows and loops in a real browser: from a template to a run by mouse and by
 * keyboard, refused definitions and earlier versions in the editor, triggers, hostile texts,
 * permissions and accessibility. Skipped without Chromium.
 */
import type { Browser, Dialog, Locator, Page } from 'playwright-core'
import t from 'tap'
import { faultsOf, inBrowser, onElement, untilTrue } from '../support/browser.ts'
import { serviceFor, signedIn } from '../support/console.ts'
import { person } from '../support/people.ts'

await inBrowser(t, tryOut)

const project = 'default'
const nap = { id: 'nap', kind: 'sleep', config: { duration: '0s' } }
/**
 * Returns the faults other than requests that were refused on purpose or retried because of load.
 * The browser logs each of these as an error.
 */
const own = (faults: readonly string[]): string[] =>
  faults.filter((fault) => !/status of (4\d\d|503)/.test(fault))

/** Replaces the text of the definition editor by keyboard. */
async function write(page: Page, text: string): Promise<void> {
  const editor = page.getByRole('textbox', { name: 'Definition' })
  await page.locator('.editor-frame[data-loaded=true]').waitFor()
  await editor.click()
  await page.keyboard.press('Control+a')
  await page.keyboard.press('Delete')
  await page.keyboard.insertText(text)
}

/**
 * Saves until the outcome is visible. The console does not retry a save that a busy service refuses
 * temporarily, so the test saves again, as a person would.
 */
async function saveUntil(outcome: Locator, save: () => Promise<void>): Promise<void> {
  for (let tries = 0; tries < 5 && !(await outcome.isVisible()); tries++) {
    await save()
    await outcome.waitFor({ timeout: 6000 }).catch(() => {})
  }
  await outcome.waitFor()
}

async function tryOut(browser: Browser): Promise<void> {
  const s = await serviceFor(t, browser)

  t.test('settings send only changed fields, and ask when both changed a field', async (t) => {
    const { context, open } = await signedIn(browser, s)
    const shared = { project, description: 'old', name: 'Shared' }
    const { id } = await s.ok('workflow.create', { ...shared, spec: { steps: [nap] } })
    const { id: loop } = await s.ok('loop.create', { ...shared, steps: [nap] })
    for (const [update, read, path, of] of [
      ['workflow.update', 'workflow.get', 'workflows', id],
      ['loop.update', 'loop.get', 'loops', loop],
    ] as const) {
      const page = await open(`/p/default/${path}/${of}?tab=settings`)
      const form = page.locator('form.settings')
      await form.getByLabel('Name', { exact: true }).fill('Mine')
      await s.ok(update, { id: of, description: 'theirs' })
      await untilTrue(page, "document.querySelector('form.settings textarea')?.value === 'theirs'")
      await form.getByRole('button', { name: 'Save' }).click()
      await page.getByText('Saved.').first().waitFor()
      t.match(await s.ok(read, { id: of }), { name: 'Mine', description: 'theirs' })

      await form.getByLabel('Description').fill('my text')
      await s.ok(update, { id: of, description: 'their text' })
      await form.getByText('Now stored: their text').waitFor()
      t.ok(await form.getByRole('button', { name: 'Save' }).isDisabled())
      await form.getByRole('button', { name: 'Take the stored values' }).click()
      t.equal(await form.getByLabel('Description').inputValue(), 'their text')

      await form.getByRole('button', { name: 'Add a tag' }).click()
      await form.getByRole('button', { name: 'Add a tag' }).click()
      for (const key of [0, 1]) await form.getByLabel('Key').nth(key).fill('team')
      await form.getByText('Another tag has the same key.').first().waitFor()
      t.ok(await form.getByRole('button', { name: 'Save' }).isDisabled())
      page.on('dialog', (question) => void question.accept())
      await page.close()
    }
    await context.close()
  })

  t.test('a workflow is created, started, changed, compared and restored by mouse', async (t) => {
    const { context, open, faults } = await signedIn(browser, s)
    const page = await open('/p/default/workflows')
    await page.getByRole('button', { name: 'New workflow' }).first().click()
    await page.getByLabel('Name').fill('Greet')
    await page.getByRole('button', { name: 'Create' }).click()
    await page.getByRole('heading', { name: 'Greet' }).waitFor()
    const address = page.url()
    await page.getByRole('list', { name: /steps/i }).getByText('wait').first().waitFor()

    await page.getByRole('button', { name: 'Start a run' }).click()
    t.match(page.url(), /start=1/)
    t.equal(await page.getByRole('textbox', { name: 'name' }).inputValue(), 'World')
    await page.getByRole('textbox', { name: 'name' }).fill('Ada')
    await page.getByText('More options').click()
    await page.getByLabel('Priority').fill('high')
    // The palette asks for confirmation before the input in a dialog is lost.
    let asked = 0
    const refuse = (question: Dialog): void => {
      asked++
      void question.dismiss()
    }
    page.on('dialog', refuse)
    await page.keyboard.press('Control+k')
    await page.getByRole('combobox', { name: 'Search or run a command' }).fill('Tables')
    await page.keyboard.press('Enter')
    t.equal(asked, 1)
    t.equal(await page.getByLabel('Priority').inputValue(), 'high')
    page.off('dialog', refuse)
    await page.getByRole('button', { name: 'Start', exact: true }).click()
    await page.getByText('Must be a whole number.').waitFor()
    await page.getByLabel('Priority').fill('5')
    await page.getByRole('button', { name: 'Start', exact: true }).click()
    await page.waitForURL(/\/runs\/run_/)
    const [run] = (await s.ok('run.list', { project }))['items'] as unknown as [{ input: unknown }]
    t.strictSame(run.input, { name: 'Ada' })

    await page.goto(address)
    await write(page, JSON.stringify({ steps: [{ ...nap, config: { duration: 'soon' } }] }))
    const fault = page.getByRole('button', { name: /steps\[0\].config.duration/ })
    await fault.waitFor()
    t.ok(await page.getByRole('button', { name: 'Save' }).isDisabled())
    await page.reload()
    await page.getByText('Unsaved changes').waitFor()
    await fault.waitFor()
    await write(page, JSON.stringify({ steps: [nap, { ...nap, id: 'second' }] }))
    await page.getByRole('list', { name: /steps/i }).getByText('second').first().waitFor()
    await saveUntil(page.getByText('Version 2 was saved.'), () =>
      page.getByRole('button', { name: 'Save' }).click(),
    )
    t.equal(await page.getByText('Unsaved changes').count(), 0)

    await page.getByRole('tab', { name: 'Versions' }).click()
    await page.locator('.comparison .cm-editor').first().waitFor()
    await page.getByRole('button', { name: 'Restore version 1' }).click()
    await page.getByRole('button', { name: 'Restore', exact: true }).click()
    await page.getByText('Version 3 was saved.').waitFor()
    t.match(page.url(), /tab=versions/)
    await page.getByRole('tab', { name: 'Runs' }).click()
    await page.getByRole('region', { name: 'Runs' }).getByRole('link').first().waitFor()

    await page.getByRole('tab', { name: 'Settings' }).click()
    const saveButton = page.getByRole('button', { name: 'Save' })
    const nameField = page.getByLabel('Name', { exact: true })
    t.ok(await saveButton.isDisabled(), 'nothing to save')
    await nameField.fill('Greet all')
    t.ok(await saveButton.isEnabled())
    await nameField.fill('Greet')
    t.ok(await saveButton.isDisabled(), 'nothing is changed any more')
    await nameField.fill('Greet all')
    await saveUntil(page.getByRole('heading', { name: 'Greet all' }), () => saveButton.click())
    t.ok(await saveButton.isDisabled(), 'all is saved')

    await page.getByRole('button', { name: 'More actions' }).click()
    await page.getByRole('menuitem', { name: 'Delete the workflow' }).click()
    await page.getByRole('button', { name: 'Delete', exact: true }).click()
    await page.waitForURL(`${s.url}/p/default/workflows`)
    t.strictSame(own(faults), [])
    await context.close()
  })

  t.test('the same works by keyboard alone, with suggestions and in YAML', async (t) => {
    const { context, open, faults } = await signedIn(browser, s)
    const page = await open('/p/default/workflows')
    await page.keyboard.press('c')
    await page.locator('dialog input:focus').waitFor()
    await page.keyboard.type('By keys')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'By keys' }).waitFor()
    const address = page.url()
    await page.locator('.editor-frame[data-loaded=true]').waitFor()
    await page.getByRole('button', { name: 'YAML' }).focus()
    await page.keyboard.press('Enter')
    await page.getByText('duration: 1s').first().waitFor()
    const editor = page.getByRole('textbox', { name: 'Definition' })
    await editor.focus()
    await page.keyboard.press('Control+End')
    await page.keyboard.type('lim')
    const suggestion = page.getByRole('option', { name: /limits/ })
    await suggestion.waitFor()
    // CodeMirror ignores Enter for the first 75 ms after a list appears, so that no option is
    // chosen by accident.
    await page.keyboard.type('it', { delay: 50 })
    await suggestion.waitFor()
    await page.keyboard.press('Enter')
    await page.keyboard.type('{max_steps: 7}')
    await page.keyboard.press('Control+f')
    await page.keyboard.type('duration')
    await page.getByText('1 of 1').waitFor()
    await page.keyboard.press('Escape')
    await page.getByText('Unsaved changes').waitFor()
    const saved = page.getByText('Version 2 was saved.')
    await saveUntil(saved, async () => {
      await editor.focus()
      await page.keyboard.press('Control+s')
    })
    t.ok(await saved.isVisible(), 'the version is saved')
    await editor.focus()
    // The first Escape clears the selection that the search made. After the second one, Tab moves
    // the focus out of the editor.
    await page.keyboard.press('Escape')
    await page.keyboard.press('Escape')
    await page.keyboard.press('Tab')
    const inside = '(element) => element.contains(document.activeElement)'
    t.equal(await onElement(editor, inside), false)
    const id = address.split('/').at(-1)
    const { spec } = await s.ok('workflow.get', { project, id })
    t.match(spec, { limits: { max_steps: 7 } })

    await page.getByRole('heading', { name: 'By keys' }).focus()
    await page.keyboard.press('s')
    await page.getByRole('dialog').waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await page.goto(`${s.url}/p/default/workflows`)
    await page.getByRole('link', { name: 'By keys' }).waitFor()
    await page.keyboard.press('j')
    await page.keyboard.press('Enter')
    await page.waitForURL(address)
    t.strictSame(own(faults), [])
    await context.close()
  })

  t.test('a refused definition is shown at its place', async (t) => {
    const { id } = await s.ok('workflow.create', {
      project,
      name: 'Refuse',
      spec: { steps: [nap] },
    })
    const { context, open, faults } = await signedIn(browser, s)
    const page = await open(`/p/default/workflows/${id}`)
    // The console cannot check whether an agent exists, so the service refuses the definition.
    const child = { kind: 'agent', id: 'x', config: { agent_id: 'nobody', instructions: 'Go' } }
    await write(page, JSON.stringify({ steps: [nap, child] }))
    await saveUntil(page.getByRole('button', { name: /steps\[1\].config.agent_id/ }), () =>
      page.getByRole('button', { name: 'Save' }).click(),
    )
    await page.getByText('Unsaved changes').waitFor()
    t.strictSame(own(faults), [])
    await context.close()
  })

  t.test('a loop is created, gets triggers, is tested, paused and followed', async (t) => {
    const { context, open, faults } = await signedIn(browser, s)
    const page = await open('/p/default/loops?new=1')
    await page.getByLabel('Name').fill('Nightly')
    await page.getByText('An HTTP request').click()
    await page.getByRole('button', { name: 'Create' }).click()
    await page.getByRole('heading', { name: 'Nightly' }).waitFor()
    const [, id = ''] = /\/loops\/(\w+)/.exec(page.url()) ?? []
    const address = await page.getByText('/v1/triggers/http/trig_').first().innerText()
    await page.getByText('Start a run with curl').click()
    await page.getByText('curl -X POST').waitFor()

    await page.getByRole('button', { name: 'Add a trigger' }).click()
    await page.getByLabel('Cron pattern').fill('61 * * * *')
    await page.locator('.field .fault').first().waitFor()
    t.ok(await page.getByRole('button', { name: 'Save' }).isDisabled())
    await page.getByLabel('Cron pattern').fill('30 7 * * *')
    await page.getByRole('list', { name: 'Next times' }).waitFor()
    await page.getByLabel('Key').fill('morning')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('The triggers were saved.').waitFor()
    await page.getByRole('list', { name: 'Next times' }).getByText('7:30').first().waitFor()

    // Another client puts a trigger before the others while dialogs are open.
    const before = await s.ok('loop.get', { project, id })
    const triggers = before['triggers'] as unknown as readonly Record<string, unknown>[]
    const dialog = page.getByRole('dialog')
    await page.getByRole('button', { name: 'More actions: morning' }).click()
    await page.getByRole('menuitem', { name: 'Remove' }).click()
    await dialog.getByRole('heading', { name: 'Remove the trigger “morning”?' }).waitFor()
    const other = { kind: 'manual', key: 'other' }
    await s.ok('loop.update', { project, id, triggers: [other, ...triggers] })
    await page.locator('.triggers > li').getByText('other', { exact: true }).waitFor()
    await dialog.getByRole('button', { name: 'Remove' }).click()
    await dialog.waitFor({ state: 'detached' })
    await page.locator('.triggers > li', { hasText: 'morning' }).waitFor({ state: 'detached' })
    const after = await s.ok('loop.get', { project, id })
    t.match(after['triggers'], [other, { kind: 'http' }], 'the named trigger was removed')
    t.equal((after['triggers'] as unknown as readonly unknown[]).length, 2)
    await page.getByRole('button', { name: 'Add a trigger' }).click()
    await page.getByLabel('Kind').selectOption('manual')
    await page.getByLabel('Key').fill('mine')
    await s.ok('loop.update', { project, id, triggers })
    await page.locator('.triggers > li').getByText('morning', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Somebody else has changed this').waitFor()
    t.strictSame((await s.ok('loop.get', { project, id }))['triggers'], triggers, 'first it asks')
    await page.getByRole('button', { name: 'Save' }).click()
    await dialog.waitFor({ state: 'detached' })
    t.match((await s.ok('loop.get', { project, id }))['triggers'], [...triggers, { key: 'mine' }])

    await page.getByRole('button', { name: 'Test' }).first().click()
    await page.getByRole('button', { name: 'Fire' }).click()
    await page.waitForURL(/\/runs\/run_/)
    await page.goto(`${s.url}/p/default/loops/${id}?tab=runs`)
    await page.getByRole('region', { name: 'Runs' }).getByRole('link').first().waitFor()
    await page.getByRole('button', { name: 'Pause' }).click()
    await page.getByText('its triggers start no runs').waitFor()
    await s.ok('loop.update', { project, id, status: 'active', name: 'Renamed' })
    await page.getByRole('heading', { name: 'Renamed' }).waitFor()
    await page.getByText('its triggers start no runs').waitFor({ state: 'detached' })
    const answer = await fetch(address, { method: 'POST', body: '{"n": 1}' })
    t.equal(answer.status, 202)
    await page.getByRole('region', { name: 'Runs' }).getByRole('link').nth(1).waitFor()

    await page.getByRole('tab', { name: 'Definition' }).click()
    await write(page, JSON.stringify({ steps: [nap], triggers: [] }))
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Saved.', { exact: true }).waitFor()
    const loop = await s.ok('loop.get', { project, id })
    t.strictSame([loop['triggers'], loop['steps']], [undefined, [nap]])
    t.strictSame(own(faults), [])
    await context.close()
  })

  t.test('without permission nothing is offered that would be refused', async (t) => {
    const { id } = await s.ok('workflow.create', { project, name: 'Read', spec: { steps: [nap] } })
    const viewer = await person(s, 'Vera', 'role_viewer')
    const { context, open, faults } = await signedIn(browser, s, { key: viewer.key })
    const page = await open(`/p/default/workflows/${id}`)
    await page.locator('.editor-frame[data-loaded=true]').waitFor()
    for (const name of ['Start a run', 'Save', 'More actions'])
      t.equal(await page.getByRole('button', { name }).count(), 0, name)
    t.equal(await page.locator('.cm-content[aria-readonly=true]').count(), 1)
    await page.goto(`${s.url}/p/default/workflows/${id}?tab=versions`)
    // The project does not list the organization key that saved the workflow.
    await page.getByRole('cell', { name: 'Service account' }).waitFor()
    await page.goto(`${s.url}/p/default/workflows?new=1`)
    await page.getByRole('link', { name: 'Read' }).waitFor()
    t.equal(await page.getByRole('dialog').count(), 0)
    t.equal(await page.getByRole('button', { name: 'New workflow' }).count(), 0)
    t.strictSame(own(faults), [])
    await context.close()
  })

  t.test('hostile texts are shown as texts, on narrow screens too, without faults', async (t) => {
    const evil = '<img src=x onerror=alert(1)>\u202Eevil'
    const { id } = await s.ok('workflow.create', {
      project,
      name: evil,
      handle: 'evil',
      description: `${evil} ${'long'.repeat(900)}`,
      spec: {
        input: {
          [evil]: { type: 'string', description: evil, default: evil },
          __proto_: { type: 'object' },
        },
        steps: [{ ...nap, id: evil, name: evil }],
      },
    })
    const { id: loop } = await s.ok('loop.create', {
      project,
      name: evil,
      description: evil,
      triggers: [{ kind: 'event', name: evil, config: { event_type: 'x.*', source_id: evil } }],
      steps: [nap],
    })
    for (const dark of [false, true]) {
      const { context, open, faults } = await signedIn(browser, s, { dark, bypassCSP: true })
      const page = await open('/p/default/workflows')
      if (dark) await page.setViewportSize({ width: 320, height: 700 })
      for (const path of [
        'workflows?new=1',
        `workflows/${id}?start=1`,
        `workflows/${id}?tab=versions`,
        `loops/${loop}`,
        `loops/${loop}?tab=definition`,
      ]) {
        await page.goto(`${s.url}/p/default/${path}`)
        await page.locator('.page-head').waitFor()
        await page.locator('.skeleton').first().waitFor({ state: 'detached' })
        if (/start|definition/.test(path))
          await page.locator('.editor-frame[data-loaded=true]').first().waitFor()
        t.strictSame(await faultsOf(page), [], `${path} ${dark}`)
        const isWide = 'document.documentElement.scrollWidth > innerWidth'
        t.equal(await page.evaluate(isWide), false, `${path} does not scroll sideways`)
        t.equal(await page.locator('img').count(), 0)
      }
      t.strictSame(faults, [])
      await context.close()
    }
  })
}
