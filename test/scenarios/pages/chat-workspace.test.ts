/**
 * The panel of the chat page with the files of the agent's workspace, in a real browser. The host
 * of the environment and its worker run in this process. The worker executes the real actions.
 * Skipped without Chromium. BATON_CHROMIUM can contain its path.
 */
import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import t from 'tap'
import { deleteFile, readFile, writeFile } from '../../../client/environment/actions/files.ts'
import { listFiles } from '../../../client/environment/actions/list.ts'
import { Workspace } from '../../../client/environment/workspace.ts'
import type { Action } from '../../../client/worker/options.ts'
import { Worker } from '../../../client/worker.ts'
import type { WorkerLaunch } from '../../../nodes/hosts/provider.ts'
import { MemoryPlace } from '../../support/memory-provider.ts'
import type { Service } from '../../support/service.ts'
import { faultsOf, inBrowser } from '../support/browser.ts'
import { serviceFor } from '../support/console.ts'
import { startTestHost } from '../support/hosts.ts'

const script = `
script:
  - when: {text: "write *", step: 1}
    call: {environment.files.write: {path: "{{1}}", content: "This is {{1}}"}}
  - when: {after: environment.files.write}
    say: It is written.
  - say: I write files.
`
/** The default number of shards of a service. */
const SHARDS = 4
/** An in-memory place of the default provider, `local`. */
class LocalPlace extends MemoryPlace {
  override provider() {
    return { ...super.provider(), name: 'local' }
  }
}

await inBrowser(t, tryOut)

async function tryOut(browser: Browser): Promise<void> {
  const s = await serviceFor(t, browser)
  // A node that is alone in its cluster sends messages only within its own process, so they would
  // not reach the test host, which has a separate NATS connection. Therefore, a second node is
  // added.
  await s.add({ BATON_ROLES: 'executor' })
  const { folder, performed, fail } = await startEnvironments(s)
  const kit = await s.ok('toolkit.create', {
    name: 'files',
    actions: [{ selector_type: 'group', selector: 'environment' }],
  })
  const agent = await s.ok('agent.create', { name: 'Writer', system_prompt: script })
  await s.ok('agent.assign_toolkits', { id: agent['id'], toolkit_ids: [kit['id']] })
  const { id } = await s.ok('session.create', { agent_id: agent['id'], mode: 'new' })
  const included = { session_id: id, include: 'environment' }

  await t.test('the files of the workspace are listed and downloaded', async (t) => {
    const faults: string[] = []
    const page = await opened(browser, s, String(id), await keyWith(s, 'ada', 'environment.*'))
    page.on('console', (line) => {
      if (line.type() === 'error') faults.push(line.text())
    })
    const panel = page.locator('details.panel')
    const rows = panel.getByRole('listitem')
    t.equal(await panel.isVisible(), false, 'there is no workspace yet')
    t.notOk((await s.ok('session.get', included))['environment'])
    await say(page, 'write a.txt', 1)
    await panel.waitFor()
    t.strictSame(performed, ['environment.files.write'], 'a closed panel calls no action')
    t.match((await s.ok('session.get', included))['environment'], { id: /^env_/, status: /./ })
    t.notOk('environment' in (await s.ok('session.get', { session_id: id })), 'only on request')

    await panel.getByText('Files', { exact: true }).click()
    await rows.first().waitFor()
    t.match(await rows.allTextContents(), [/^a\.txt \(13 byte\) /])
    t.match(await rows.locator('time').getAttribute('datetime'), /^\d{4}-.*Z$/)
    const saved = page.waitForEvent('download')
    await panel.getByRole('button', { name: /^Download a\.txt/ }).click()
    t.equal((await saved).suggestedFilename(), 'a.txt')
    t.equal(readFileSync(await (await saved).path(), 'utf8'), 'This is a.txt')

    await panel.getByRole('button', { name: /^Download a\.txt/ }).focus()
    await page.evaluate('window.kept = document.activeElement')
    writeFileSync(join(folder, 'large.bin'), '')
    truncateSync(join(folder, 'large.bin'), 6_000_000)
    await say(page, 'write docs/b.txt', 2)
    await rows.nth(2).waitFor()
    t.match(await rows.allTextContents(), [
      /^docs\/b\.txt \(18 byte\) /,
      /^large\.bin \(6 MB\): too large to download here/,
      /^a\.txt/,
    ])
    t.equal(await page.evaluate('kept.isConnected'), true, 'an unchanged row keeps its element')

    rmSync(join(folder, 'a.txt'))
    await panel.getByRole('button', { name: /^Download a\.txt/ }).click()
    await panel.getByText(/The workspace answered: .*a\.txt/).waitFor()
    fail.message = 'The disk is not readable.'
    await say(page, 'hello', 3)
    await panel.getByText('The workspace answered: The disk is not readable.').waitFor()
    fail.message = undefined
    await say(page, 'hello again', 4)
    await panel.getByText('The disk is not readable.').waitFor({ state: 'hidden' })
    await panel.getByText(/^a\.txt/).waitFor({ state: 'detached' })
    t.strictSame(faults, [], 'the policy of the page allows all of this')

    await panel.getByText('Files', { exact: true }).click()
    const calls: string[] = []
    page.on('request', (request) => {
      if (request.url().endsWith('/invoke')) calls.push(request.url())
    })
    await refreshed(page, () => say(page, 'hello for the third time', 5))
    await say(page, 'hello for the last time', 6)
    t.strictSame(calls, [], 'a panel that was closed sends no requests')
    await page.close()
  })

  await t.test('the open panel is accessible and fits a narrow viewport', async (t) => {
    const key = await keyWith(s, 'bea', 'environment.*')
    const page = await opened(browser, s, String(id), key, {
      bypassCSP: true,
      colorScheme: 'dark',
      viewport: { width: 320, height: 700 },
    })
    const panel = page.locator('details.panel')
    await panel.getByText('Files', { exact: true }).click()
    await panel.getByRole('listitem').first().waitFor()
    t.strictSame(await faultsOf(page), [])
    t.ok(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'))
    await page.close()
  })

  await t.test('the panel is hidden from users who may not read the files', async (t) => {
    const key = await keyWith(s, 'cy', 'environment.files.list')
    const page = await browser.newPage()
    const refused = page.waitForResponse(
      (answer) => answer.url().includes('environment.files.read') && answer.status() === 403,
    )
    await signIn(page, s, String(id), key)
    await refused
    await page.locator('.end').nth(5).waitFor()
    t.equal(await page.locator('details.panel').isVisible(), false)
    await page.close()
  })
}

/**
 * Runs a host and the workers of its environments, which all use one folder. `performed` lists the
 * executed actions. While `fail.message` is set, actions that list files fail with this message.
 */
async function startEnvironments(s: Service) {
  const folder = mkdtempSync(join(tmpdir(), 'workspace-'))
  const workspace = await Workspace.open(folder)
  const performed: string[] = []
  const fail: { message: string | undefined } = { message: undefined }
  const own: Readonly<Record<string, Action>> = {
    'environment.files.list': listFiles(workspace),
    'environment.files.read': readFile(workspace),
    'environment.files.write': writeFile(workspace),
    'environment.files.delete': deleteFile(workspace),
  }
  const actions = Object.fromEntries(
    Object.entries(own).map(([name, action]): [string, Action] => [
      name,
      (parameters, context) => {
        performed.push(name)
        if (fail.message !== undefined && name === 'environment.files.list')
          throw new Error(fail.message)
        return action(parameters, context)
      },
    ]),
  )
  const workers = new Set<Worker>()
  const start = ({ variables }: WorkerLaunch, end: (idle: boolean) => void) => {
    const worker = new Worker({
      url: s.url,
      key: variables['SERVICE_API_KEY'] ?? '',
      project: variables['SERVICE_PROJECT'] ?? '',
      environment_id: variables['SERVICE_WORKER_ENVIRONMENT_ID'] ?? '',
      actions,
    })
    workers.add(worker)
    void worker.start().catch(() => {})
    void worker.ended.then(() => end(true))
    return { kill: () => void worker.stop() }
  }
  const place = new LocalPlace('memory/chat', start)
  const host = await startTestHost(s.server.access, place, 'chat-host', undefined, SHARDS)
  t.teardown(async () => {
    await host.stop()
    await Promise.all([...workers].map((worker) => worker.stop()))
    rmSync(folder, { recursive: true, force: true })
  })
  return { folder, performed, fail }
}

/** Creates a principal that may invoke agents and execute one action. Returns its key. */
async function keyWith(s: Service, name: string, action: string): Promise<string> {
  await s.ok('role.create', {
    name,
    permissions: ['service.project.view', 'service.agent.invoke', `actions.execute.${action}`],
  })
  const { id } = await s.ok('principal.create', { name })
  await s.ok('assignment.create', { principal_id: id, role_name: name })
  return String((await s.ok('key.create', { name, principal_id: id }))['key'])
}
async function opened(
  browser: Browser,
  s: Service,
  session: string,
  key: string,
  options: Parameters<Browser['newPage']>[0] = {},
): Promise<Page> {
  const page = await browser.newPage({ locale: 'en-US', ...options })
  await signIn(page, s, session, key)
  return page
}
async function signIn(page: Page, s: Service, session: string, key: string): Promise<void> {
  page.setDefaultTimeout(15_000)
  await page.goto(`${s.url}/chat#session=${session}`)
  await page.getByLabel('Key or token').fill(key)
  await refreshed(page, () => page.keyboard.press('Enter'))
}
/** Performs an action, and waits until the page has subsequently read the session's record. */
async function refreshed(page: Page, act: () => Promise<unknown>): Promise<void> {
  const read = page.waitForResponse((answer) => answer.url().endsWith('?include=environment'))
  await act()
  await (await read).finished()
}
/** Sends a message, and waits for the end of the turn with this number. */
async function say(page: Page, text: string, turn: number): Promise<void> {
  await page.getByLabel('Message').fill(text)
  await page.getByLabel('Message').press('Enter')
  await page
    .locator('.end')
    .nth(turn - 1)
    .waitFor()
}
