/**
 * The first hour of a new user at the console. The steps are written once and run twice: with the
 * mouse alone and with the keyboard alone, each in a separate project. Every step checks what the
 * page shows and what the API returns. Skipped without Chromium.
 */
import type { Browser } from 'playwright-core'
import t from 'tap'
import { inBrowser } from '../../support/browser.ts'
import { serviceFor } from '../../support/console.ts'
import { type Found, listOf, until } from '../../support/given.ts'
import { person } from '../../support/people.ts'
import { dataOf } from '../../support/tables.ts'
import { keyboardOf, mouseOf } from './hands.ts'
import { hourOf, script } from './hour.ts'

await inBrowser(t, tryOut)

const prices = new Map([
  ['tea', 3],
  ['cake', 4],
])

async function tryOut(browser: Browser): Promise<void> {
  const s = await serviceFor(t, browser)
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
