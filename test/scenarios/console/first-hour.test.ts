/**
 * The first hour of a stranger at the console, told once and lived twice: by the mouse alone, and by
 * the keyboard alone, each in an own project. Every step checks what the person sees and what the
 * API says. Skipped without Chromium.
 */
import type { Browser, Page } from 'playwright-core'
import t from 'tap'
import { service } from '../../support/service.ts'
import { inBrowser } from '../support/browser.ts'
import { memberOf } from '../support/console.ts'
import { type Found, listOf, until } from '../support/given.ts'
import { type Hands, keyboardOf, mouseOf } from '../support/hands.ts'
import { person } from '../support/people.ts'
import { dataOf } from '../support/tables.ts'

await inBrowser(t, tryOut)

const IS_TYPING = `document.activeElement.matches('input, textarea, select, [contenteditable=true]')`
const prices = new Map([
  ['tea', 3],
  ['cake', 4],
])
const step = (id: string, parameters: object) => ({
  id,
  kind: 'action',
  config: { action_name: id, parameters },
})
const script = `
script:
  - when: {text: "deploy *", step: 1}
    call: {hosts.deploy: {env: "{{1}}"}}
  - when: {after: hosts.deploy}
    say: "Version {{result.version}} is out."
  - say: I am ready.
`

async function tryOut(browser: Browser): Promise<void> {
  const s = await service()
  t.teardown(async () => {
    await browser.close()
    await s.stop()
  })
  for (const [kind, handsOf] of [
    ['mouse', mouseOf],
    ['keyboard', keyboardOf],
  ] as const)
    t.test(`the first hour by ${kind} alone`, async (t) => {
      const project = `by-${kind}`
      await s.ok('project.create', { name: `By ${kind}`, handle: project })
      const context = await browser.newContext({
        viewport: { width: 1280, height: 800 },
        reducedMotion: 'reduce',
        permissions: ['clipboard-read', 'clipboard-write'],
      })
      context.setDefaultTimeout(30_000)
      const page = await context.newPage()
      const faults: string[] = []
      page.on('pageerror', (error) => faults.push(String(error.stack ?? error)))
      const hands = handsOf(page)
      const hour = hourOf(page, hands, (name, input = {}) => s.ok(name, { project, ...input }))
      const { url } = await s.ok('sign_in_link.create')
      const { pathname, hash } = new URL(String(url), s.url)
      await page.goto(`${s.url}${pathname}${hash}`)
      await hour.entersProject(`By ${kind}`)
      t.equal(new URL(page.url()).pathname, `/p/${project}`)
      await page.getByText('Nothing has run here yet').waitFor()

      await t.test('a workflow is made, runs, asks, fails, and is tried again', async (t) => {
        const targets = await hour.makesWorkflow()
        const versions = await s.ok('workflow.list', { project })
        t.match(listOf(versions), [{ name: `Deploy by ${kind}`, latest_version: 2 }])
        await hour.startsRun('Release 7')
        const run_id = page.url().split('/').at(-1) as string
        t.match(await s.ok('run.get', { project, id: run_id }), { input: { subject: 'Release 7' } })
        await page.getByText(/Step check waits for a worker/).waitFor()
        const worker = await s.worker(
          { action_names: ['check', 'ship'], frames: ['job.log'] },
          { project },
        )
        t.teardown(() => worker.close())
        const job = await worker.job()
        await page.getByText(/Step check is in progress/).waitFor()
        await worker.report(job, { result: { ok: true } })
        await page.getByText(/Step ask waits for an answer/).waitFor()
        await hour.answers('Release 7')
        t.match(listOf(await s.ok('interaction.list', { project, status: ['completed'] })), [
          { title: 'Release 7', outcome: true, target_user_ids: targets },
        ])
        const shipping = await worker.job()
        const { id: job_id, lease_token } = shipping
        const lines = [{ text: 'No space left', level: 'error' }]
        worker.send({ type: 'job.log', job_id, lease_token, lines })
        await worker.report(shipping, {
          status: 'failed',
          error_type: 'disk',
          error_message: 'The disk is full',
        })
        await until(
          () => s.ok('run.get', { project, id: run_id }),
          ({ status }) => String(status) === 'failed',
        )
        await hour.looksAtFailure()
        await hour.retries('Release 8')
        const again = await worker.job()
        t.match(again, { spec: { parameters: { what: 'Release 8' } } })
        await worker.report(again, { result: { at: 'noon' } })
        await until(
          () => s.ok('run.get', { project, id: run_id }),
          ({ status }) => String(status) === 'completed',
        )
        const events = listOf(await s.ok('run.events', { id: run_id, limit: 200 }))
        t.match(events.at(-1), { payload: { output: { at: 'noon' } } })
        await hour.looksAtOutput('noon')
        await hour.runsAgainAndCompares('Release 9', run_id)
        await hour.savesViewAndCancels()
        t.match(listOf(await s.ok('saved_view.list', { project, list: 'runs' })), [
          { name: 'My deploys' },
        ])
        const { items } = await s.ok('run.list', { project, status: ['cancelled'] })
        t.match(items, [{ input: { subject: 'Release 9' } }])
      })

      await t.test('an agent is made, tried out, and asks before it acts', async (t) => {
        await s.ok('action.create', {
          project,
          name: 'hosts.deploy',
          endpoint_kind: 'worker',
          description: 'Put the newest version on hosts',
          annotations: { destructive: true },
        })
        const selectors = [{ selector_type: 'group', selector: 'hosts' }]
        await s.ok('toolkit.create', { project, name: 'Hosts', actions: selectors })
        await hour.makesAgent()
        const [agent] = listOf(await s.ok('agent.list', { project })) as [Found]
        t.equal(agent['system_prompt'], script)
        await hour.talks()
        const worker = await s.worker({ action_names: ['hosts.deploy'] }, { project })
        t.teardown(() => worker.close())
        await hour.approves()
        await worker.report(await worker.job(), { result: { version: 'v7' } })
        await page.locator('.markdown', { hasText: 'Version v7 is out.' }).waitFor()
        const { items } = await s.ok('session.list', { project, agent_id: agent['id'] })
        t.match(items, [{ title: 'Rollout' }, { visibility: 'private' }])
      })

      await t.test('people talk, data and files are kept', async (t) => {
        await person(s, 'Cleo', 'role_editor', project)
        await hour.talksInChannel()
        const [channel] = listOf(await s.ok('channel.list', { project })) as [Found]
        const messages = listOf(await s.ok('channel.messages', { project, id: channel['id'] }))
        t.match(
          messages.map(({ content, reply_to }) => [content, reply_to !== undefined]),
          [
            ['Starting', true],
            ['@Cleo shall we?', false],
          ],
        )
        await hour.keepsTable()
        const [table] = listOf(await s.ok('table.list', { project })) as [Found]
        const rows = listOf(await s.ok('table.query', { project, id: table['id'] }))
        t.strictSame(
          new Map(rows.map((row) => [dataOf(row)['name'], dataOf(row)['price']] as const)),
          prices,
        )
        await hour.keepsFile()
        t.match(listOf(await s.ok('artifact.list', { project })), [{ name: 'notes.json' }])
      })

      await t.test('a person is invited, and the hour ends', async (t) => {
        await hour.invites()
        const token = String(await page.evaluate('navigator.clipboard.readText()'))
        t.match(await s.ok('me.get', { project }, { key: token }), { principal: { name: 'Dora' } })
        await hour.signsOut()
        t.equal(await page.evaluate(`fetch('/v1/projects').then(({ status }) => status)`), 401)
      })
      t.strictSame(hands.faults, [], 'the focus is always there and visible')
      t.strictSame(faults, [])
      await context.close()
    })
}

type Ask = (
  name: Parameters<Awaited<ReturnType<typeof service>>['ok']>[0],
  input?: object,
) => Promise<Found>

/** What the person does, by either hand. Every step waits for what it should lead to. */
function hourOf(page: Page, hands: Hands, ask: Ask) {
  const { press, write } = hands
  const keys = hands.kind === 'keyboard'
  const button = (name: string | RegExp) => page.getByRole('button', { name, exact: true })
  const heading = (name: string) => page.getByRole('heading', { name }).first().waitFor()
  const dialog = page.getByRole('dialog')
  const inDialog = (name: string | RegExp) => dialog.getByRole('button', { name, exact: true })
  const line = (name: string) => page.getByRole('row').filter({ hasText: name })
  /** Goes to a page of the navigation: by its link, by its keys, or from a field by the palette. */
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
      // Handles are unique in the organization, so the two people use different names.
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
      await page.getByText('Saved.').waitFor()
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
      await page.getByText('Saved.').waitFor()
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
