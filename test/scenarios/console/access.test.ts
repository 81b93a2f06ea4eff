/** The people, role, key, secret and account pages in a browser. */

import type { Page } from 'playwright-core'
import t from 'tap'
import { service } from '../../support/service.ts'
import { faultsOf, inBrowser } from '../support/browser.ts'
import { signedIn } from '../support/console.ts'
import { memberOf } from '../support/given.ts'
import { person } from '../support/people.ts'

const s = await service()
t.teardown(() => s.stop())

/** Removes the errors that the browser logs when requests are refused. */
const unexpected = (faults: readonly string[]): string[] =>
  faults.filter((fault) => !/status of 4\d\d/.test(fault))
const evil = '<img src=x onerror="document.title=1"> \u202Eevil 🧨'
const line = (page: Page, name: string) => page.getByRole('row').filter({ hasText: name })
const shownOnce = async (page: Page): Promise<string> => {
  const value = await page.locator('dialog .code-frame code').first().textContent()
  await page.getByRole('button', { name: 'Done' }).click()
  return value ?? ''
}

await inBrowser(t, async (browser) => {
  t.teardown(() => browser.close())
  const mouse = await signedIn(browser, s, { bypassCSP: true })

  t.test('people are added, found, given tokens, disabled and removed', async (t) => {
    await s.ok('user.create', { name: evil, description: evil })
    const page = await mouse.open('/p/default/people')
    await line(page, '<img src=x').waitFor()
    t.strictSame(await faultsOf(page), [], 'no accessibility violation')
    await page.getByRole('button', { name: 'Add person' }).click()
    await page.getByLabel('Name', { exact: true }).fill('Ada')
    await page.getByLabel('E-mail').fill('not an address@x')
    t.strictSame(await faultsOf(page), [], 'no accessibility violation in the dialog')
    await page.getByLabel('E-mail').fill('ada@example.org')
    await page.getByRole('checkbox', { name: /^Editor/ }).check()
    await page.getByRole('button', { name: 'Add', exact: true }).click()
    await line(page, 'ada@example.org').getByText('Editor').waitFor()

    await page.getByRole('button', { name: 'Add person' }).click()
    await page.getByLabel('Name', { exact: true }).fill('Ada again')
    await page.getByLabel('E-mail').fill('ADA@example.org')
    await page.getByRole('button', { name: 'Add', exact: true }).click()
    await page.getByRole('alert').getByText('already exists').waitFor()
    const email = page.getByLabel('E-mail')
    t.equal(await email.getAttribute('aria-invalid'), 'true', 'the field is marked')
    page.once('dialog', (question) => void question.accept())
    await page.keyboard.press('Escape')

    await line(page, 'ada@example.org').getByRole('button', { name: 'Actions for Ada' }).click()
    await page.getByRole('menuitem', { name: 'Personal tokens' }).click()
    t.match(page.url(), /tokens=user_/)
    await page.getByRole('button', { name: 'New token' }).click()
    await page.getByRole('textbox', { name: 'Name' }).fill('laptop')
    await page.getByRole('button', { name: 'Create' }).click()
    const token = await shownOnce(page)
    const me = await s.ok('me.get', {}, { key: token })
    t.match(me, { principal: { name: 'Ada' } })
    await page.getByRole('dialog').getByText('laptop').waitFor()
    await page.keyboard.press('Escape')

    await s.ok('user.create', { name: 'Came later' })
    await line(page, 'Came later').waitFor()
    await page.getByRole('searchbox').fill('came')
    await line(page, 'ada@example.org').waitFor({ state: 'detached' })
    await page.reload()
    await line(page, 'Came later').waitFor()
    await page.getByRole('button', { name: 'Actions for Came later' }).click()
    await page.getByRole('menuitem', { name: 'Disable' }).click()
    await page.getByRole('button', { name: 'Disable' }).click()
    await line(page, 'Came later').getByText('Disabled').waitFor()
    await page.getByRole('button', { name: 'Actions for Came later' }).click()
    await page.getByRole('menuitem', { name: 'Remove' }).click()
    await page.getByRole('button', { name: 'Remove' }).click()
    await line(page, 'Came later').waitFor({ state: 'detached' })
    await page.close()
  })

  t.test('roles and keys are made by keyboard alone, and keys are shown once', async (t) => {
    const page = await mouse.open('/p/default/people?tab=roles')
    await page.getByRole('columnheader', { name: 'Operator' }).waitFor()
    t.strictSame(await faultsOf(page), [], 'no accessibility violation')
    await page.getByRole('button', { name: 'New role' }).focus()
    await page.keyboard.press('Enter')
    await page.locator('dialog input:focus').waitFor()
    await page.keyboard.type('Caller')
    await page.getByRole('checkbox', { name: /^View/ }).focus()
    await page.keyboard.press('Space')
    await page.getByLabel('Actions', { exact: true }).focus()
    await page.keyboard.type('crm.*')
    await page.getByRole('button', { name: 'Create' }).focus()
    await page.keyboard.press('Enter')
    await page.getByRole('columnheader', { name: 'Caller' }).waitFor()
    t.match(memberOf(await s.ok('role.list'), 'items', '5'), {
      name: 'Caller',
      permissions: ['service.project.view', 'actions.execute.crm.*'],
    })

    await page.getByRole('tab', { name: 'Roles' }).focus()
    await page.keyboard.press('ArrowRight')
    await page.waitForURL(/tab=keys/)
    await page.getByRole('button', { name: 'New API key' }).focus()
    await page.keyboard.press('Enter')
    await page.locator('dialog input:focus').waitFor()
    await page.keyboard.type('Shop')
    await page.getByLabel('Role', { exact: true }).selectOption({ label: 'Caller' })
    await page.keyboard.press('Enter')
    const key = await shownOnce(page)
    t.match(await s.ok('me.get', {}, { key }), {
      permissions: ['service.project.view', 'actions.execute.crm.*'],
    })
    await page.getByRole('button', { name: 'Revoke' }).focus()
    await page.keyboard.press('Enter')
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).focus()
    await page.keyboard.press('Enter')
    await page.getByText('There is no API key.').waitFor()
    await s.refused('me.get', {}, 401, 'unauthorized', { key })
    await page.close()
  })

  t.test('secrets are written and never shown', async (t) => {
    const page = await mouse.open('/p/default/secrets')
    await page.keyboard.press('n')
    await page.getByRole('textbox', { name: 'Name' }).fill('callbacks')
    await page.getByRole('button', { name: 'Generate a signing key' }).click()
    await page.getByRole('button', { name: 'Add entry' }).click()
    await page.getByLabel('Entry', { exact: true }).last().fill('signing_key_b64')
    await page.getByText('Another entry has the same name.').first().waitFor()
    t.ok(await page.getByRole('button', { name: 'Save' }).isDisabled())
    const PEM = '-----BEGIN KEY-----\nabc\n-----END KEY-----\n'
    await page.getByLabel('Entry', { exact: true }).last().fill('pem')
    await page.getByLabel('Value').last().fill(PEM)
    t.equal(await page.getByLabel('Value').last().inputValue(), PEM, 'lines are kept')
    t.strictSame(await faultsOf(page), [], 'no accessibility violation')
    await page.getByRole('button', { name: 'Save' }).click()
    await line(page, 'signing_key_b64').waitFor()
    await s.ok('secret.put', { secret_name: 'mail', entries: { password: 'hidden' } })
    await line(page, 'mail').waitFor()
    await page.getByRole('button', { name: 'Actions for mail' }).click()
    await page.getByRole('menuitem', { name: 'New version' }).click()
    await page.reload()
    t.equal(await page.getByLabel('Value').inputValue(), '')
    await page.getByLabel('Value').fill('changed')
    await page.getByRole('button', { name: 'Save' }).click()
    await line(page, 'mail').getByText('2', { exact: true }).waitFor()
    await page.close()
  })

  t.test('the account lists sessions and revokes those of other browsers', async (t) => {
    const other = await signedIn(browser, s)
    const left = await other.open('/p/default/people')
    const page = await mouse.open('/account?tab=sessions')
    const others = page.getByRole('row').filter({ hasNotText: 'this browser' })
    await others.nth(1).waitFor()
    t.strictSame(await faultsOf(page), [], 'no accessibility violation')
    await others.nth(1).getByRole('button', { name: 'Revoke' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click()
    await others.nth(1).waitFor({ state: 'detached' })
    await left.reload()
    await left.waitForURL(/sign-in/)
    await other.context.close()
    await page.getByRole('tab', { name: 'Preferences' }).click()
    await page.getByLabel('Theme').selectOption('dark')
    t.equal(await page.evaluate('document.documentElement.dataset.theme'), 'dark')
    await page.getByLabel('Theme').selectOption('system')
    await page.getByRole('tab', { name: 'Shortcuts' }).click()
    await page.getByRole('cell', { name: 'People and access' }).waitFor()
    t.strictSame(await faultsOf(page), [], 'no accessibility violation in the shortcuts')
    await page.close()
  })

  t.test('what a person may not do is not offered, in dark and narrow too', async (t) => {
    const viewer = await person(s, 'Viewer', 'role_viewer')
    const { open, context, faults } = await signedIn(browser, s, {
      key: viewer.key,
      dark: true,
      width: 390,
      bypassCSP: true,
    })
    const page = await open('/p/default/people')
    await line(page, 'ada@example.org').waitFor()
    t.equal(await page.getByRole('button', { name: /Add person|Actions for/ }).count(), 0)
    t.equal(await page.getByRole('tab', { name: 'API keys' }).count(), 0)
    t.strictSame(await faultsOf(page), [], 'no accessibility violation')
    t.ok(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'))
    await page.goto(`${s.url}/p/default/people?tab=roles`)
    await page.getByRole('columnheader', { name: 'Caller' }).waitFor()
    t.strictSame(await faultsOf(page), [], 'no accessibility violation in the roles')
    t.ok(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'))
    await page.goto(`${s.url}/p/default/secrets`)
    await page.getByText('It needs the permission project.admin').waitFor()
    await page.goto(`${s.url}/p/default/people?new=1`)
    await line(page, 'ada@example.org').waitFor()
    t.equal(await page.getByRole('dialog').count(), 0, 'a link opens no form that is refused')
    await page.goto(`${s.url}/organization/keys`)
    await page.getByText('It needs the permission organization.admin in the org').waitFor()
    await page.keyboard.press('Control+k')
    await page.getByRole('option', { name: /^Projects/ }).waitFor()
    t.equal(await page.getByRole('option', { name: /Nodes and shards|API keys/ }).count(), 0)
    t.strictSame(unexpected(faults), [])
    await context.close()
  })

  t.test('an open page notices that access was taken away and granted again', async (t) => {
    const viewer = await person(s, 'Passer-by', 'role_viewer')
    const { items } = await s.ok('assignment.list', { project: 'default' })
    const assigned = (items as unknown as readonly Record<string, unknown>[]).find(
      ({ principal_id }) => principal_id === viewer.id,
    )
    const { open, context } = await signedIn(browser, s, { key: viewer.key })
    const page = await open('/p/default/people')
    await line(page, 'ada@example.org').waitFor()
    await s.ok('assignment.delete', { project: 'default', id: assigned?.['id'] })
    await page
      .getByText(/You may not see this page|There is no such project/)
      .first()
      .waitFor()
    await s.ok('assignment.create', {
      project: 'default',
      principal_id: viewer.id,
      role_id: 'role_viewer',
    })
    await line(page, 'ada@example.org').waitFor()
    t.match(page.url(), /people$/)
    await context.close()
  })

  t.test('drafts are kept for their author, and removed at sign-out', async (t) => {
    const [one, other] = [await person(s, 'One'), await person(s, 'Other')]
    const asked = await s.ok('interaction.create', {
      project: 'default',
      kind: 'request_approval',
      title: 'Ship it?',
      target_user_ids: [one.id, other.id],
    })
    const { open, context } = await signedIn(browser, s, { key: one.key })
    const address = `/p/default/inbox?id=${asked['id']}`
    const page = await open(address)
    const drafts = `Object.keys(localStorage).filter((name) => name.startsWith('console.draft'))`
    const comment = page.getByLabel('Comment')
    await comment.fill('Private')
    t.match(await page.evaluate(drafts), [`console.drafts.${one.id}.`])
    // The session of another person replaces this one in the same browser.
    await context.clearCookies()
    await context.request.post(`${s.url}/v1/auth/console/sessions`, {
      data: { credential: other.key },
      headers: { origin: s.url },
    })
    await page.reload()
    await comment.waitFor()
    t.equal(await comment.inputValue(), '')
    await context.close()
    const own = await signedIn(browser, s, { key: one.key })
    const again = await own.open(address)
    await again.getByLabel('Comment').fill('Private')
    await again.getByRole('button', { name: 'Account' }).click()
    await again.getByRole('menuitem', { name: 'Sign out' }).click()
    await again.waitForURL(/sign-in/)
    t.strictSame(await again.evaluate(drafts), [])
    await own.context.close()
  })

  t.test('the pages have no faults', async (t) => {
    t.strictSame(unexpected(mouse.faults), [])
    await mouse.context.close()
  })
})
