/**
 * The pages of actions and events in a real browser: defining and calling an action, its secret,
 * publishing an event, what the event starts, changes by other clients, permissions and
 * accessibility. Skipped without Chromium.
 */
import type { Browser } from 'playwright-core'
import t from 'tap'
import { faultsOf, inBrowser, untilTrue } from '../support/browser.ts'
import { serviceFor, signedIn } from '../support/console.ts'
import { person } from '../support/people.ts'
import { tableOf } from '../support/tables.ts'

await inBrowser(t, tryOut)

const project = 'default'
const own = (faults: readonly string[]): string[] =>
  faults.filter((fault) => !/status of (4\d\d|503)/.test(fault))

async function tryOut(browser: Browser): Promise<void> {
  const s = await serviceFor(t, browser)

  t.test('an action is defined, its faults are shown, and its secret appears once', async (t) => {
    const { context, open, faults } = await signedIn(browser, s)
    const page = await open('/p/default/actions')
    await page.keyboard.press('c')
    await page.getByLabel('Name').fill('Bad Name')
    await page.getByLabel('Address').fill('https://crm.example.org/hook')
    await page.keyboard.press('Enter')
    await page.locator('.field .fault').first().waitFor()
    await page.getByLabel('Name').fill('crm.sync')
    await page.keyboard.press('Enter')
    await page.getByText('It is shown only now.').waitFor()
    const first = await page.locator('dialog code').innerText()
    t.match(first, /^[\w+/]{43}=$/)
    await page.getByRole('button', { name: 'Done' }).click()
    await page.waitForURL(/actions\/crm\.sync\?tab=settings/)

    const schema = page.getByRole('textbox', { name: 'Input schema' })
    await page.locator('.editor-frame[data-loaded=true]').first().waitFor()
    await schema.click()
    await page.keyboard.insertText('{"type": "objekt"}')
    await page.getByRole('button', { name: /type is not a type/ }).waitFor()
    await page.keyboard.press('Control+a')
    await page.keyboard.insertText(
      JSON.stringify({
        type: 'object',
        required: ['id'],
        properties: {
          id: { type: 'string', maxLength: 5 },
          level: { enum: ['basic', 'gold'] },
          tags: { type: 'array', items: { type: 'string', maxLength: 9 } },
        },
      }),
    )
    await page.getByText('It only reads').click()
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Saved.', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Replace the secret' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Replace the secret' }).click()
    await page.getByText('It is shown only now.').waitFor()
    t.not(await page.locator('dialog code').innerText(), first)
    await page.getByRole('button', { name: 'Done' }).click()

    await page.getByRole('textbox', { name: 'Description' }).fill('Not saved yet')
    await s.ok('action.update', { project, action_name: 'crm.sync', title: 'Sync by others' })
    await page.getByText('Sync by others').waitFor()
    const typed = page.getByRole('textbox', { name: 'Description' })
    t.equal(await typed.inputValue(), 'Not saved yet', 'changes by others keep what was typed')

    page.once('dialog', (dialog) => void dialog.accept())
    await page.getByRole('tab', { name: 'Try it' }).click()
    await page.getByText('Check only').click()
    await page.getByRole('button', { name: 'Call' }).click()
    await page.getByText('is required').waitFor()
    await page.getByLabel('id *').fill('much too long')
    await page.getByRole('button', { name: 'Call' }).click()
    await page.getByText('must have at most 5 characters').waitFor()
    await page.getByLabel('id *').fill('42')
    await page.getByLabel('level').selectOption({ label: 'gold' })
    await page.getByRole('button', { name: 'Add an item' }).click()
    await page.getByRole('textbox', { name: 'Item 1' }).fill('new')
    await page.getByRole('button', { name: 'JSON' }).click()
    await page.locator('.cm-content').getByText('gold').waitFor()
    await page.getByRole('button', { name: 'Call' }).click()
    await page.getByText('Nothing was called.').waitFor()

    await s.ok('action.update', { project, action_name: 'crm.sync', title: 'Changed by others' })
    await page.getByText('Changed by others').waitFor()
    await page.getByRole('button', { name: 'More actions' }).click()
    await page.getByRole('menuitem', { name: 'Delete the action' }).click()
    await page.getByRole('button', { name: 'Delete', exact: true }).click()
    await page.waitForURL(/\/actions$/)
    t.strictSame(own(faults), [])
    await context.close()
  })

  t.test('settings send only changed fields, and ask when both changed a field', async (t) => {
    const { context, open } = await signedIn(browser, s)
    const own = { project, action_name: 'crm.shared' }
    await s.ok('action.create', {
      project,
      name: own.action_name,
      description: 'old',
      endpoint_url: 'https://crm.example.org/hook',
    })
    const page = await open(`/p/default/actions/${own.action_name}?tab=settings`)
    const form = page.locator('form.settings')
    await form.getByLabel('Title').fill('Mine')
    await s.ok('action.update', { ...own, description: 'theirs' })
    await untilTrue(page, "document.querySelector('form.settings textarea')?.value === 'theirs'")
    await form.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Saved.').first().waitFor()
    t.match(await s.ok('action.get', own), { title: 'Mine', description: 'theirs' })

    await form.getByLabel('Description').fill('my text')
    await s.ok('action.update', { ...own, description: 'their text' })
    await form.getByText('Now stored: their text').waitFor()
    t.ok(await form.getByRole('button', { name: 'Save' }).isDisabled())
    await form.getByRole('button', { name: 'Take the stored values' }).click()
    t.equal(await form.getByLabel('Description').inputValue(), 'their text')
    await context.close()
  })

  t.test('an event is published and leads to the runs that it started', async (t) => {
    const steps = [{ id: 'nap', kind: 'sleep', config: { duration: '0s' } }]
    await s.ok('loop.create', {
      project,
      name: 'Paid',
      steps,
      triggers: [{ kind: 'event', config: { event_type: 'order.paid' } }],
    })
    const { context, open, faults } = await signedIn(browser, s)
    const page = await open('/p/default/events')
    await page.getByText('There is no event yet').waitFor()
    await page.keyboard.press('c')
    await page.getByLabel('Event type').fill('run.completed')
    await page.keyboard.press('Enter')
    await page.locator('.field .fault').first().waitFor()
    await page.getByLabel('Event type').fill('order.paid')
    await page.locator('.editor-frame[data-loaded=true]').first().waitFor()
    await page.getByRole('textbox', { name: 'Event', exact: true }).click()
    await page.keyboard.insertText('{"note": "<b>bold</b>"}')
    await page.getByRole('button', { name: 'Publish', exact: true }).click()
    await page.getByRole('heading', { name: 'order.paid' }).waitFor()
    await page.getByText('<b>bold</b>').waitFor()
    await page.getByText('1 trigger').waitFor()
    await page.getByRole('region', { name: 'Runs' }).getByRole('link', { name: 'Paid' }).waitFor()
    await page.getByRole('link', { name: 'Events' }).last().click()
    await page.getByRole('link', { name: 'order.paid' }).waitFor()
    await s.ok('event.publish', { project, event_type: 'order.refunded' })
    await page.getByRole('link', { name: 'order.refunded' }).waitFor()
    await page.getByLabel('Type').fill('order.paid')
    await page.getByRole('link', { name: 'order.refunded' }).waitFor({ state: 'detached' })
    await page.reload()
    await page.getByRole('link', { name: 'order.paid' }).waitFor()
    t.equal(await page.getByRole('link', { name: 'order.refunded' }).count(), 0)
    const again = page.getByRole('button', { name: 'Publish a similar event' })
    await page.getByRole('link', { name: 'order.paid' }).click()
    await again.waitFor()
    // An event of the service cannot be published by clients.
    const { id: table } = await tableOf(s)
    await s.ok('row.insert', { id: table, data: { number: 'A' } })
    await page.goto(`${s.url}/p/default/events`)
    await page.getByRole('link', { name: 'table.row.inserted' }).click()
    await page.getByRole('heading', { name: 'table.row.inserted' }).waitFor()
    await page.locator('dl.facts').first().waitFor()
    t.equal(await again.count(), 0)
    t.strictSame(own(faults), [])
    await context.close()
  })

  t.test('a long button wraps on a narrow screen', async (t) => {
    const event = await s.ok('event.publish', { project, event_type: 'order.narrow' })
    const { context, open } = await signedIn(browser, s, { width: 320 })
    await context.addInitScript(`localStorage.setItem('console.language', 'de')`)
    const page = await open(`/p/default/events/${event['source_event_id']}`)
    await page.getByRole('button', { name: 'Ein ähnliches Ereignis veröffentlichen' }).waitFor()
    t.ok(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'))
    await context.close()
  })

  t.test('pages are accessible, and offer only what is permitted', async (t) => {
    await s.ok('action.create', {
      project,
      name: 'mail.send',
      description: '<img src=x onerror=alert(1)>\u202E',
      endpoint_url: 'https://mail.example.org/',
      input_schema: {
        type: 'object',
        properties: {
          to: { type: 'string', format: 'email', description: 'The receiver' },
          body: { type: 'string' },
          copies: { type: 'array', items: { type: 'object', properties: { to: {} } } },
        },
      },
    })
    const viewer = await person(s, 'Vera', 'role_viewer')
    for (const dark of [false, true]) {
      const key = dark ? viewer.key : s.key
      const { context, open, faults } = await signedIn(browser, s, { dark, bypassCSP: true, key })
      const page = await open('/p/default/actions')
      if (dark) await page.setViewportSize({ width: 320, height: 700 })
      for (const path of [
        'actions',
        'actions/mail.send',
        'actions/mail.send?tab=settings',
        'events',
      ]) {
        await page.goto(`${s.url}/p/default/${path}`)
        await page.locator('.page-head').waitFor()
        await page.locator('.skeleton').first().waitFor({ state: 'detached' })
        t.strictSame(await faultsOf(page), [], `${path} ${dark}`)
        const isWide = 'document.documentElement.scrollWidth > innerWidth'
        t.equal(await page.evaluate(isWide), false, `${path} does not scroll sideways`)
        const offers = /^(New action|Call|Save|Replace the secret|Publish an event)$/
        const count = await page.getByRole('button', { name: offers }).count()
        t.equal(count > 0, !dark, `${path} offers ${count}`)
      }
      t.strictSame(own(faults), [])
      await context.close()
    }
  })
}
