/**
 * Two people with different roles work on the same records at the same time. Each sees the other's
 * changes without a reload. If both answer a question at the same time, only one answer counts. The
 * second editor of a record gets a notice, and no input is lost. Data is hidden after the
 * permission to see it is revoked. Skipped without Chromium.
 */
import type { Browser, Page } from 'playwright-core'
import t from 'tap'
import { inBrowser, untilTrue } from '../../support/browser.ts'
import { serviceFor, signedIn } from '../../support/console.ts'
import { type Found, listOf, until, waiting } from '../../support/given.ts'
import { person } from '../../support/people.ts'
import { dataOf, insertAll, tableOf } from '../../support/tables.ts'

await inBrowser(t, tryOut)

const nap = { id: 'nap', kind: 'sleep', config: { duration: '0s' } }
const own = (faults: readonly string[]): string[] =>
  faults.filter((fault) => !/status of (4\d\d|503)/.test(fault))

/** Replaces the text of an editor by keyboard. */
async function write(page: Page, name: string, text: string): Promise<void> {
  await page.locator('.editor-frame[data-loaded=true]').waitFor()
  await page.getByRole('textbox', { name }).click()
  await page.keyboard.press('Control+a')
  await page.keyboard.insertText(text)
}

async function tryOut(browser: Browser): Promise<void> {
  const s = await serviceFor(t, browser)
  const ada = await person(s, 'Ada', 'role_admin')
  const ben = await person(s, 'Ben', 'role_editor')
  const agent = await s.ok('agent.create', {
    name: 'Echo',
    description: 'First',
    system_prompt: 'script:\n  - say: "Heard you."\n    chunk: 2\n    pace: 20ms\n',
  })
  const hers = await signedIn(browser, s, { key: ada.key })
  const his = await signedIn(browser, s, { key: ben.key })
  for (const { context } of [hers, his]) context.setDefaultTimeout(30_000)
  /** Opens the same page for both people. */
  const both = (path: string): Promise<[Page, Page]> =>
    Promise.all([hers.open(path), his.open(path)])
  const close = (pages: readonly Page[]) => Promise.all(pages.map((page) => page.close()))

  t.test('a run, a session, a channel and a row change for both', async (t) => {
    const run = await s.ok('run.start', {
      spec: { ...waiting('go'), run_name: { template: 'Shared' } },
    })
    const [a, b] = await both(`/p/default/runs/${run['id']}`)
    await b.getByText('Step gate waits for the signal go').waitFor()
    await a.getByRole('button', { name: 'Cancel', exact: true }).click()
    await a.getByRole('button', { name: 'Cancel the run' }).click()
    await b.getByText('Cancelled').first().waitFor()
    t.equal(await b.getByRole('button', { name: 'Cancel', exact: true }).count(), 0)

    const { id: session } = await ada.ok('session.create', {
      agent_id: agent['id'],
      mode: 'new',
      title: 'Together',
    })
    await Promise.all([a, b].map((page) => page.goto(`${s.url}/p/default/sessions/${session}`)))
    await b.getByText('There are no messages yet').waitFor()
    await a.getByLabel('Message to Echo').fill('Hello from Ada')
    await a.keyboard.press('Enter')
    await b.getByText('Hello from Ada').waitFor()
    await b.locator('.markdown', { hasText: 'Heard you.' }).waitFor()

    const { id: channel } = await ada.ok('channel.create', { name: 'both', member_ids: [ben.id] })
    const { id: second } = await ada.ok('channel.create', { name: 'aside', member_ids: [ben.id] })
    await a.goto(`${s.url}/p/default/channels/${channel}`)
    await b.goto(`${s.url}/p/default/channels/${second}`)
    await a.getByRole('textbox', { name: /^Message to/ }).fill('Are you there?')
    await a.keyboard.press('Enter')
    const entry = b.getByRole('link', { name: /both/ })
    await entry.getByText('1 unread message', { exact: false }).waitFor()
    await entry.click()
    await b.getByText('Are you there?').waitFor()
    await entry.locator('.badge').waitFor({ state: 'detached' })
    await b.getByRole('textbox', { name: /^Message to/ }).fill('Here')
    await b.keyboard.press('Enter')
    await a.getByRole('region', { name: 'Messages' }).getByText('Here', { exact: true }).waitFor()

    const table = await tableOf(s)
    await insertAll(s, table['id'], [{ number: 'A', amount: 1 }])
    await Promise.all([a, b].map((page) => page.goto(`${s.url}/p/default/tables/${table['id']}`)))
    const cell = (page: Page, value: string) =>
      page.getByRole('grid').getByText(value, { exact: true }).last()
    const field = (page: Page) => page.getByRole('grid').getByLabel('amount', { exact: true })
    await cell(b, '1').dblclick()
    await field(b).fill('30')
    await cell(a, '1').dblclick()
    await field(a).fill('20')
    await field(a).press('Enter')
    await cell(a, '20').waitFor()
    await field(b).press('Enter')
    await b.getByRole('heading', { name: 'Another change came first' }).waitFor()
    const told = await b.getByRole('dialog').innerText()
    t.match(told, /30/, 'the text is not lost')
    t.match(told, /20/)
    await b.getByRole('button', { name: 'Store my values' }).click()
    await cell(a, '30').waitFor()
    const { items } = await s.ok('table.query', { id: table['id'] })
    t.equal(dataOf((items as unknown as Found[])[0])['amount'], 30)
    await close([a, b])
  })

  t.test('of two simultaneous answers, one counts, and the other person sees whose', async (t) => {
    const { id } = await s.ok('interaction.create', {
      kind: 'request_information',
      title: 'Which name?',
      target_user_ids: [ada.id, ben.id],
    })
    const pages = await both(`/p/default/inbox?id=${id}`)
    for (const [index, page] of pages.entries())
      await page.getByLabel('Your answer').fill(index === 0 ? 'Apple' : 'Banana')
    await Promise.all(pages.map((page) => page.keyboard.press('Control+Enter')))
    for (const page of pages) await page.locator('.question-outcome').waitFor()
    const { outcome } = await s.ok('interaction.get', { id })
    const isHers = String(outcome) === 'Apple'
    const loser = isHers ? pages[1] : pages[0]
    for (const page of pages)
      t.match(await page.locator('.question-outcome').innerText(), String(outcome))
    await loser.getByText(`${isHers ? 'Ada' : 'Ben'} was faster`).waitFor()
    await loser
      .locator('.notice')
      .getByText(isHers ? 'Banana' : 'Apple')
      .waitFor()
    await close(pages)
  })

  t.test('the second editor of a definition gets a notice, and no input is lost', async (t) => {
    const { id } = await s.ok('workflow.create', { name: 'Ours', spec: { steps: [nap] } })
    const [a, b] = await both(`/p/default/workflows/${id}`)
    const spec = (name: string) => JSON.stringify({ steps: [{ ...nap, id: name }] })
    const save = (page: Page) => page.getByRole('button', { name: 'Save', exact: true })
    await write(a, 'Definition', spec('hers'))
    await write(b, 'Definition', spec('his'))
    for (const page of [a, b])
      await page
        .getByRole('list', { name: /steps/i })
        .getByText(/^hi?e?r?s$/)
        .first()
        .waitFor()
    await Promise.all([save(a).click(), save(b).click()])
    await until(
      () => s.ok('workflow.get', { id }),
      ({ latest_version }) => Number(latest_version) === 2,
    )
    const stored = (await s.ok('workflow.get', { id }))['spec'] as unknown as { steps: Found[] }
    const isHers = String(stored.steps[0]?.['id']) === 'hers'
    const [loser, mine] = isHers ? [b, 'his'] : [a, 'hers']
    await loser.getByText('Version 2 was saved while you were editing.').waitFor()
    await loser.locator('.cm-content', { hasText: `"${mine}"` }).waitFor()
    t.ok(await save(loser).isDisabled(), 'nothing is overwritten by accident')
    await loser.getByRole('button', { name: 'Show changes' }).first().click()
    const theirs = isHers ? 'hers' : 'his'
    await loser.locator('.comparison').getByText(theirs).first().waitFor()
    await loser.getByRole('button', { name: 'Keep my text' }).click()
    await save(loser).click()
    await loser.getByText('Version 3 was saved.').waitFor()
    t.equal((await s.ok('workflow.get', { id }))['latest_version'] as unknown, 3)
    await close([a, b])
  })

  t.test('the second editor of an agent gets a notice, and no input is lost', async (t) => {
    const [a, b] = await both(`/p/default/agents/${agent['id']}`)
    await b.getByLabel('Description').fill('From Ben')
    await a.getByLabel('Description').fill('From Ada')
    await a.getByRole('button', { name: 'Save', exact: true }).click()
    await b.getByText('Description was changed while you were editing').waitFor()
    await b.locator('.notice').getByText('From Ada').waitFor()
    t.equal(await b.getByLabel('Description').inputValue(), 'From Ben')
    t.ok(await b.getByRole('button', { name: 'Save', exact: true }).isDisabled())
    await b.getByRole('button', { name: 'Keep my changes' }).click()
    await b.getByRole('button', { name: 'Save', exact: true }).click()
    await until(
      () => s.ok('agent.get', { id: agent['id'] }),
      ({ description }) => String(description) === 'From Ben',
    )
    await untilTrue(
      a,
      `[...document.querySelectorAll('input')].some(({ value }) => value === 'From Ben')`,
    )
    await close([a, b])
  })

  t.test('data is hidden after the permission to see it is revoked', async (t) => {
    await s.ok('run.start', { spec: { ...waiting('go'), run_name: { template: 'Secret work' } } })
    const page = await his.open('/p/default/runs')
    await page.getByRole('link', { name: 'Secret work' }).waitFor()
    await page.getByTitle('Act on all that match').waitFor()
    const roles = async () =>
      listOf(await s.ok('assignment.list')).filter(
        ({ principal_id }) => String(principal_id) === ben.id,
      )
    const replaceRoles = async (role_id: string): Promise<void> => {
      const before = await roles()
      await s.ok('assignment.create', { principal_id: ben.id, role_id })
      for (const { id } of before) await s.ok('assignment.delete', { id })
    }
    const [given] = await roles()
    await replaceRoles('role_viewer')
    await page.getByTitle('Act on all that match').waitFor({ state: 'detached' })
    await page.getByRole('link', { name: 'Secret work' }).waitFor()
    await replaceRoles(String(given?.['role_id']))
    await page.getByTitle('Act on all that match').waitFor()
    // The permission is revoked after the page has loaded the console session, but before the page
    // follows changes.
    await page.route(
      '**/auth/console/session',
      async (route) => {
        const response = await route.fetch()
        await replaceRoles('role_viewer')
        await route.fulfill({ response })
      },
      { times: 1 },
    )
    await page.reload()
    await page.getByRole('link', { name: 'Secret work' }).waitFor()
    await page.getByTitle('Act on all that match').waitFor({ state: 'detached' })
    await s.ok('principal.update', { id: ben.id, state: 'disabled' })
    await page.getByRole('link', { name: 'Secret work' }).waitFor({ state: 'detached' })
    t.equal(await page.getByText('Secret work').count(), 0)
    await close([page])
  })

  t.test('no page has a fault of its own', async (t) => {
    t.strictSame(own([...hers.faults, ...his.faults]), [])
    await Promise.all([hers.context.close(), his.context.close()])
  })
}
