/**
 * The steps of the first hour of a new user at the console, by mouse or by keyboard. Every step
 * waits for its result.
 */
import type { Page } from 'playwright-core'
import type { RowName } from '../../../../protocol/api.ts'

import { type Found, listOf, memberOf } from '../../support/given.ts'
import type { Hands } from './hands.ts'

const IS_TYPING = `document.activeElement.matches('input, textarea, select, [contenteditable=true]')`
const step = (id: string, parameters: object) => ({
  id,
  kind: 'action',
  config: { action_name: id, parameters },
})
/** The instructions of the agent, for the scripted model. */
export const script = `
script:
  - when: {text: "deploy *", step: 1}
    call: {hosts.deploy: {env: "{{1}}"}}
  - when: {after: hosts.deploy}
    say: "Version {{result.version}} is out."
  - say: I am ready.
`

type Ask = (name: RowName, input?: object) => Promise<Found>

/** Returns the steps by name, for a page and the `Hands` that work with it. */
export function hourOf(page: Page, hands: Hands, ask: Ask) {
  const { press, write } = hands
  const keys = hands.kind === 'keyboard'
  const button = (name: string | RegExp) => page.getByRole('button', { name, exact: true })
  const heading = (name: string) => page.getByRole('heading', { name }).first().waitFor()
  const dialog = page.getByRole('dialog')
  const inDialog = (name: string | RegExp) => dialog.getByRole('button', { name, exact: true })
  const line = (name: string) => page.getByRole('row').filter({ hasText: name })
  /**
   * Opens a page from the navigation. With the mouse, the link to the page is clicked. With the
   * keyboard, the shortcut of the page is pressed or, if a field has the focus, the palette is
   * used.
   */
  const visit = async (name: string, shortcut: string): Promise<void> => {
    if (!keys) await page.locator('.side').getByRole('link', { name }).first().click()
    else if (await page.evaluate(IS_TYPING)) await byPalette(name)
    else for (const key of shortcut) await page.keyboard.press(key)
    await page.getByRole('heading', { name, level: 1 }).waitFor()
  }
  const byPalette = async (name: string): Promise<void> => {
    if (keys) await page.keyboard.press('Control+k')
    else await page.getByTitle('Search or run a command').click()
    await page.locator('dialog input:focus').waitFor()
    await page.keyboard.type(name)
    if (keys) await page.keyboard.press('Enter')
    else await page.getByRole('option', { name }).first().click()
  }
  const fromMenu = async (menu: string, entry: string | RegExp): Promise<void> => {
    await press(page.getByTitle(menu, { exact: true }).first())
    await press(page.getByRole('menuitem', { name: entry }))
  }
  return {
    async entersProject(name: string): Promise<void> {
      await heading('Home')
      if (keys) await byPalette(name)
      else await fromMenu('Choose a project', name)
      await page.waitForURL(/\/p\/by-/)
      await hands.closed()
    },
    async makesWorkflow(): Promise<unknown> {
      await press(page.getByRole('link', { name: 'Create a workflow' }))
      await dialog.waitFor()
      // Handles are unique in the organization, so mouse and keyboard use different names.
      await write(dialog.getByLabel('Name'), `Deploy by ${hands.kind}`)
      await press(dialog.getByRole('radio', { name: /An approval/ }))
      await press(inDialog('Create'))
      await heading('Deploy')
      await hands.closed()
      const [{ id }] = listOf(await ask('workflow.list')) as [Found]
      const { spec } = await ask('workflow.get', { id })
      const targets = memberOf(spec, 'steps', '0', 'config', 'targets')
      await page.locator('.editor-frame[data-loaded=true]').waitFor()
      const what = '$' + '{{ input.subject }}'
      await write(
        page.getByRole('textbox', { name: 'Definition' }),
        JSON.stringify({
          input: { subject: { type: 'string', required: true } },
          steps: [
            step('check', { what }),
            { ...(memberOf(spec, 'steps', '0') as object) },
            step('ship', { what }),
          ],
          output: { at: '$' + '{{ steps.ship.output.at }}' },
        }),
      )
      await page.getByRole('list', { name: /steps/i }).getByText('ship').first().waitFor()
      await press(button('Save'))
      await page.getByText('Version 2 was saved.').waitFor()
      return targets
    },
    async startsRun(subject: string): Promise<void> {
      await press(button('Start a run'))
      await dialog.waitFor()
      await write(dialog.getByRole('textbox', { name: 'subject' }), subject)
      await press(inDialog('Start'))
      await page.waitForURL(/\/runs\/run_/)
    },
    async answers(title: string): Promise<void> {
      await page
        .locator('.side-link', { hasText: 'Inbox' })
        .getByText('1', { exact: true })
        .waitFor()
      await visit('Inbox', 'gi')
      await press(page.getByRole('link', { name: new RegExp(title) }))
      await heading(title)
      await press(page.getByRole('radio', { name: /Approve/ }))
      await press(button(/^Send answer/))
      await page.locator('.question-outcome').getByText('Approved').waitFor()
    },
    async looksAtFailure(): Promise<void> {
      await visit('Runs', 'gr')
      await line('Deploy').getByText('Failed').waitFor()
      await press(line('Deploy').getByRole('link').first())
      await page.getByText(/The run failed in step/).waitFor()
      await page.getByText('The disk is full').first().waitFor()
      await press(page.getByRole('tab', { name: 'Events' }))
      await line('run.failed').waitFor()
      await press(page.getByRole('tab', { name: 'Jobs and logs' }))
      await page.getByRole('log').getByText('No space left').waitFor()
      await press(button('Show the step'))
      await heading('ship')
    },
    async retries(subject: string): Promise<void> {
      await press(button('Retry from this step'))
      await dialog.waitFor()
      await press(dialog.getByLabel('Change the input of the run'))
      await write(dialog.getByLabel('subject'), subject)
      await press(inDialog('Retry'))
      await page.getByText('The run is tried again.').waitFor()
      await hands.closed()
    },
    async looksAtOutput(value: string): Promise<void> {
      await press(page.getByRole('tab', { name: 'Input and output' }))
      await page.getByRole('tabpanel').getByText(value).first().waitFor()
      await press(page.getByRole('tab', { name: 'Timeline' }))
      await line('ship').getByText('Completed').waitFor({ state: 'attached' })
    },
    async runsAgainAndCompares(subject: string, earlier: string): Promise<void> {
      await fromMenu('More actions', 'Run again')
      await dialog.waitFor()
      await write(dialog.getByLabel('subject'), subject)
      await press(inDialog('Start the run'))
      await page.waitForURL((url) => !url.href.includes(earlier))
      await hands.closed()
      await page
        .getByText(/Step check/)
        .first()
        .waitFor()
      await fromMenu('More actions', 'Compare with another run')
      await dialog.waitFor()
      await write(dialog.getByLabel('Id of the other run'), earlier)
      await press(inDialog('Compare'))
      await page.getByRole('rowheader', { name: 'subject' }).waitFor()
    },
    async savesViewAndCancels(): Promise<void> {
      await visit('Runs', 'gr')
      await write(page.getByRole('searchbox'), 'Deploy')
      await page.getByText('2 runs', { exact: true }).waitFor()
      await fromMenu('Views', 'Save this view')
      await dialog.waitFor()
      await write(dialog.getByLabel('Name'), 'My deploys')
      await press(inDialog('Save this view'))
      await page.getByText('The view was saved.').waitFor()
      await hands.closed()
      await fromMenu('Act on all that match', /^Cancel/)
      await page.getByText('1 run will be affected.').waitFor()
      await press(inDialog('Cancel runs'))
      await page.getByText('1 run done.').waitFor()
      await press(dialog.getByRole('button', { name: 'Close' }).last())
      await hands.closed()
      await line('Deploy').getByText('Cancelled').waitFor()
    },
    async makesAgent(): Promise<void> {
      await visit('Agents', 'ga')
      await press(button('New agent').first())
      await dialog.waitFor()
      await write(dialog.getByLabel('Name', { exact: true }), 'Deployer')
      await press(inDialog('Create the agent'))
      await page.waitForURL(/\/agents\/agt_\w+$/)
      await hands.closed()
      await page.locator('.editor-frame[data-loaded=true]').waitFor()
      await write(page.getByRole('textbox', { name: 'Instructions' }), script)
      await press(button('Save'))
      await page.getByText('Saved.', { exact: true }).waitFor()
      await press(button('Start a try-out'))
      await write(page.getByLabel('Message to Deployer'), 'Hello')
      await press(button('Send'))
      await page.locator('.markdown', { hasText: 'I am ready.' }).waitFor()
      await press(page.getByRole('tab', { name: 'Tools and skills' }))
      await hands.choose(page.getByLabel('Add a toolkit'), 'Hosts')
      await press(button('Assign').first())
      await page.getByText('hosts.deploy', { exact: true }).waitFor()
    },
    async talks(): Promise<void> {
      await visit('Sessions', 'gs')
      await press(button('New session'))
      await dialog.waitFor()
      await write(dialog.getByRole('textbox', { name: 'Title' }), 'Rollout')
      await press(inDialog('Start the session'))
      await page.waitForURL(/\/sessions\/ses_\w+$/)
      await hands.closed()
      await write(page.getByLabel('Message to Deployer'), 'deploy staging')
      await press(button('Send'))
      await heading('Deployer wants to run hosts.deploy')
    },
    async approves(): Promise<void> {
      await press(button('Yes'))
      await page.locator('.talk-question .outcome').getByText('Answered: Yes').waitFor()
    },
    async talksInChannel(): Promise<void> {
      await visit('Channels', 'gc')
      await press(page.locator('.empty').getByRole('button', { name: 'New channel' }))
      await dialog.waitFor()
      await write(dialog.getByLabel('Name', { exact: true }), 'releases')
      await press(dialog.getByRole('checkbox', { name: /Cleo/ }))
      await press(inDialog('Create'))
      await heading('releases')
      await hands.closed()
      const timeline = page.getByRole('region', { name: 'Messages' })
      await write(page.getByRole('textbox', { name: /^Message to/ }), '@Cl')
      if (keys) {
        await page.getByRole('option', { name: 'Cleo' }).waitFor()
        await page.keyboard.press('Enter')
      } else await page.getByRole('option', { name: 'Cleo' }).click()
      await page.locator('textarea:focus').waitFor()
      await page.keyboard.insertText('shall we?')
      await press(button('Send'))
      await timeline.getByText('shall we?').waitFor()
      if (keys) {
        // The field has the focus again once the message has been sent.
        await page.locator('textarea:focus').waitFor()
        await page.keyboard.press('Shift+Tab')
        await page.keyboard.press('k')
        await page.keyboard.press('t')
      } else {
        await timeline.getByText('shall we?').hover()
        await page.getByRole('button', { name: 'Reply in thread' }).click()
      }
      const thread = page.getByRole('complementary', { name: 'Thread' })
      await write(thread.getByLabel('Reply'), 'Starting')
      await press(thread.getByRole('button', { name: 'Send' }))
      await timeline.getByRole('button', { name: /1 reply/ }).waitFor()
    },
    async keepsTable(): Promise<void> {
      await visit('Tables', 'gt')
      await press(page.locator('.empty').getByRole('button', { name: 'Create a table' }))
      await dialog.waitFor()
      await write(dialog.getByLabel('Name', { exact: true }), 'goods')
      await press(inDialog('Create a table'))
      await heading('goods')
      await hands.closed()
      await press(page.getByRole('tab', { name: 'Columns' }))
      await press(button('Add a column'))
      await write(page.getByLabel('Name of column 2'), 'price')
      await hands.choose(page.getByLabel('Type of column 2'), 'number')
      await press(button('Save the columns'))
      await page.getByText('Saved.', { exact: true }).waitFor()
      await press(page.getByRole('tab', { name: 'Rows' }))
      await press(button('Insert a row').first())
      await dialog.waitFor()
      await write(dialog.getByLabel('name *'), 'tea')
      await write(dialog.getByLabel('price'), '2')
      await press(inDialog('Insert a row'))
      const grid = page.getByRole('grid')
      await grid.getByText('tea').waitFor()
      await hands.closed()
      if (keys) {
        await hands.enter(grid)
        await page.keyboard.press('ArrowRight')
        await page.keyboard.type('3')
        await page.keyboard.press('Enter')
      } else {
        await grid.getByText('2', { exact: true }).dblclick()
        await page.keyboard.type('3')
        await page.getByRole('heading', { name: 'goods' }).click()
      }
      await grid.getByText('3', { exact: true }).waitFor()
      await grid.getByLabel('price', { exact: true }).waitFor({ state: 'detached' })
      await fromMenu('More actions of the table', 'Import CSV')
      await hands.upload(dialog.getByRole('button', { name: 'Choose a CSV file' }), {
        name: 'goods.csv',
        mimeType: 'text/csv',
        buffer: Buffer.from('name,price\ncake,4\n'),
      })
      await press(inDialog('Import 1 row'))
      await dialog.getByText('Imported 1 row.').waitFor()
      await press(dialog.getByRole('button', { name: 'Close' }).last())
      await hands.closed()
      await grid.getByText('cake').waitFor()
    },
    async keepsFile(): Promise<void> {
      await visit('Artifacts', 'gf')
      await hands.upload(button('Upload files'), {
        name: 'notes.json',
        mimeType: 'application/json',
        buffer: Buffer.from('{"colour":"green"}'),
      })
      await press(page.getByRole('table').getByRole('link', { name: 'notes.json', exact: true }))
      await page.getByText('green').first().waitFor()
    },
    async invites(): Promise<void> {
      await visit('People and access', 'gp')
      await press(button('Add person').first())
      await dialog.waitFor()
      await write(dialog.getByLabel('Name', { exact: true }), 'Dora')
      await press(dialog.getByRole('checkbox', { name: /^Editor/ }))
      await press(inDialog('Add'))
      await line('Dora').waitFor()
      await hands.closed()
      await fromMenu('Actions for Dora', 'Personal tokens')
      await press(inDialog('New token'))
      await write(dialog.getByRole('textbox', { name: 'Name' }), 'laptop')
      await press(inDialog('Create'))
      await page.getByText('Copy it now.').waitFor()
      await press(inDialog('Copy').first())
      await page.getByText('Copied.').waitFor()
      await press(inDialog('Done'))
      await dialog.getByText('laptop').first().waitFor()
      await press(inDialog('Close').first())
      await hands.closed()
    },
    async signsOut(): Promise<void> {
      await byPalette('Secrets')
      await heading('Secrets')
      await hands.closed()
      await fromMenu('Account', 'Sign out')
      await page.waitForURL(/\/sign-in/)
    },
  }
}
