/**
 * Hostile content in every field that a page of the console shows, according to the schemas of the
 * endpoint table. Every page is used with its tabs, menus and dialogs. The content must not be
 * executed, load anything from another origin, affect the text around it, or widen the page.
 * Skipped without Chromium.
 */
import type { Browser } from 'playwright-core'
import t from 'tap'
import { Worker } from '../../../../client/worker.ts'
import { fillPath } from '../../../../console/router/match.ts'
import type { RowName } from '../../../../protocol/api.ts'
import { furnish, type Place } from '../../../hostile/support/rows.ts'
import { freePort } from '../../../support/ports.ts'
import { service } from '../../../support/service.ts'
import { artifactClient } from '../../artifacts/client.ts'
import { dropFiles, inBrowser } from '../../support/browser.ts'
import { pagePaths, visit } from '../../support/console.ts'
import { acting, listOf, sleeping } from '../../support/given.ts'
import { openIdProvider } from '../../support/servers/openid-provider.ts'
import { answer, use } from '../../support/talk.ts'
import { exceptions, fillByHand, isClosed } from './exceptions.ts'
import { type Filled, fillAll } from './fill.ts'
import { ESCAPES, files, HUGE_TEXT, hostileTerminal, hostileWorkspace } from './live.ts'
import { hostileReceiver, signInHostile, signInSettings } from './outside.ts'
import { hostileJson, hostileText } from './texts.ts'
import { watched } from './watch.ts'

/** All pages together must show more hostile fields than this number. */
const MIN_SHOWN = 120
/**
 * Limit on the processor time, in seconds, of a page with a file or with a text of up to a
 * megabyte. It includes the time of all the page's tabs.
 */
const MAX_CPU_S = 2
const NARROW = { width: 390, height: 844 }
const WIDE = { width: 1280, height: 800 }

await inBrowser(t, tryOut)

/**
 * Returns the ids with which a page that has an id in its URL is opened: those of the record of
 * `place` and of the records that `fillAll` created.
 */
function recordsOf(
  path: string,
  place: Place,
  { made }: Filled,
  actions: readonly string[],
): readonly string[] {
  const of = (first: string, ...rows: RowName[]): string[] => [
    first,
    ...rows.flatMap((row) => made.get(row) ?? []),
  ]
  const known: Readonly<Record<string, readonly string[]>> = {
    runs: of(place.run, 'run.start', 'workflow.run', 'loop.start'),
    workflows: of(place.workflow, 'workflow.create'),
    loops: of(place.loop, 'loop.create'),
    actions,
    events: of(place.event, 'event.publish'),
    channels: of(place.channel, 'channel.create'),
    sessions: of(place.session, 'session.create', 'agent.invoke'),
    agents: of(place.agent, 'agent.create'),
    tables: of(place.table, 'table.create'),
    artifacts: of(place.upload, 'artifact.create'),
    environments: of(place.environment, 'environment.create'),
    webhooks: of(place.webhook, 'webhook.create'),
  }
  const found = known[path.split('/')[3] ?? '']
  if (!found) throw new Error(`${path}: say here which records it shows`)
  return found
}

async function tryOut(browser: Browser): Promise<void> {
  const port = await freePort()
  const secret = 'a-secret-of-this-test'
  const provider = await openIdProvider(secret, [`http://127.0.0.1:${port}/auth/oidc/callback`])
  const receiver = await hostileReceiver(920_010)
  const s = await service({
    BATON_OUTBOUND_ALLOW: '127.0.0.1/32',
    ...signInSettings(provider.issuer, port, secret),
  })
  t.teardown(async () => {
    await browser.close()
    await s.stop()
    await Promise.all([provider.stop(), receiver.stop()])
  })
  const place = await furnish(s)
  const filled = await fillAll(s, place)
  const byHand = new Set(await fillByHand(s, place))
  t.equal(await signInHostile(s, provider, 930_000), 303)

  t.test('every field has a hostile value, or is known to hold none', async (t) => {
    t.ok(filled.accepted.size > 250, `${filled.accepted.size} fields in one request or another`)
    const open = filled.refused.filter(
      ({ row, path }) => !byHand.has(`${row} ${path}`) && !isClosed(row, path),
    )
    t.strictSame(open, [], 'fill these in hostile/exceptions.ts, or say why they hold no text')
    const paths = filled.refused.map(({ row, path }) => `${row} ${path}`)
    const last = new Set(
      filled.refused.map(({ path }) => path.split('.').findLast((name) => name !== 'any')),
    )
    t.strictSame(
      [...exceptions.places, ...byHand].filter((path) => !paths.includes(path)),
      [],
      'every single exception is needed',
    )
    t.strictSame(
      [...exceptions.names].filter((name) => !last.has(name)),
      [],
      'so is every name',
    )
  })
  t.test('every page with all of its controls', async (t) => {
    const browsing = await watched(browser, s)
    const listed = listOf(await s.ok('action.list', { project: place.handle }))
    const actions = listed.map(({ name }) => String(name))
    const seen = new Set<number>()
    const faults: string[] = []
    const visits = pagePaths().flatMap((path) => {
      const slots = { project: place.handle }
      const last = path.split('/').at(-1) ?? ''
      const found = last.startsWith(':') && last !== ':project'
      const records = found ? recordsOf(path, place, filled, actions) : ['']
      const addresses = records.map((record) =>
        fillPath(path, found ? { ...slots, [last.slice(1)]: record } : slots),
      )
      if (path.endsWith('/inbox'))
        for (const id of filled.made.get('interaction.create') ?? [])
          addresses.push(`${addresses[0]}?show=all&id=${id}`)
      return addresses.map((address, index) => ({ address, most: index === 0 ? 12 : 1 }))
    })
    for (const { address, most } of visits) {
      await browsing.page.setViewportSize(WIDE)
      const wide = await browsing.walk(address, most)
      await browsing.page.setViewportSize(NARROW)
      const narrow = await browsing.walk(address, 0)
      for (const mark of [...wide.seen, ...narrow.seen]) seen.add(mark)
      faults.push(...wide.faults, ...narrow.faults.map((fault) => `narrow ${fault}`))
      faults.push(...browsing.faults().map((fault) => `${address}: ${fault}`))
    }
    t.strictSame(faults.slice(0, 20), [], `${faults.length} faults`)
    const shown = [...filled.accepted.keys()].filter((mark) => seen.has(mark)).length
    t.ok(shown > MIN_SHOWN, `pages show ${shown} of ${filled.accepted.size} fields`)
    t.ok(seen.has(930_000) && seen.has(930_001), 'and the name and the address of an account')
    await browsing.close()
  })

  t.test('files of every kind, and texts of a megabyte', async (t) => {
    const artifacts = artifactClient(s.url, s.key)
    // The browser logs an error for each script or request that the frame of an HTML file blocks.
    // These errors are not faults.
    const browsing = await watched(browser, s, /status of 4\d\d|sandboxed|Content Security Policy/)
    const addresses: string[] = []
    for (const [ending, type, bytes] of files) {
      const part = { filename: ending, type }
      const name = `${hostileText(910_000 + addresses.length, 200).replaceAll('/', '-')}.${ending}`
      const { body } = await artifacts.upload(
        [
          ['name', name],
          ['file', bytes, part],
        ],
        { project: place.handle },
      )
      t.equal(typeof body['id'], 'string', `${ending}: ${JSON.stringify(body)}`)
      addresses.push(`/p/${place.handle}/artifacts/${String(body['id'])}`)
    }
    const input = { text: `${hostileText(910_900)}${'W'.repeat(HUGE_TEXT)}` }
    const run = await s.ok('run.start', { project: place.handle, spec: sleeping(), input })
    addresses.push(`/p/${place.handle}/runs/${String(run['id'])}`)
    const event = { text: 'W'.repeat(250_000), other: hostileText(910_901) }
    const { source_event_id } = await s.ok('event.publish', {
      project: place.handle,
      event_type: 'large',
      event,
    })
    addresses.push(`/p/${place.handle}/events/${String(source_event_id)}`)
    const faults: string[] = []
    for (const address of addresses) {
      const before = await browsing.spent()
      const { faults: found } = await browsing.walk(address, 0)
      const spent = (await browsing.spent()) - before
      faults.push(...found, ...browsing.faults())
      t.ok(spent < MAX_CPU_S, `${address} took ${spent} s of the processor`)
    }
    t.strictSame(faults.slice(0, 20), [], `${faults.length} faults`)
    await browsing.close()
  })

  t.test('content that arrives while a page is open', async (t) => {
    const browsing = await watched(browser, s)
    const { page } = browsing
    const faults: string[] = []
    const base = `/p/${place.handle}`
    const check = async (where: string, text: string): Promise<void> => {
      await page.getByText(text).first().waitFor()
      faults.push(...(await browsing.look(where)), ...browsing.faults())
    }
    const name = hostileText(920_000, 250)
    const worker = await s.worker(
      {
        worker_instance_id: name,
        name,
        version: name,
        capabilities: [name],
        queues: ['default', name],
        action_names: ['hostile.talk', name],
        models: [{ provider: 'local', model: 'hostile' }],
        frames: ['job.log'],
      },
      { project: place.handle },
    )
    t.teardown(() => worker.close())
    await visit(page, `${base}/workers`)
    await check('a worker', 'q920000q')

    const run = await s.ok('run.start', { project: place.handle, spec: acting('hostile.talk') })
    await visit(page, `${base}/runs/${String(run['id'])}?tab=jobs`)
    const job = await worker.job()
    await check('the worker of a job', 'q920000q')
    const { id: job_id, lease_token } = job
    const text = hostileText(920_001).replace(' ', ` ${ESCAPES} `)
    const fields = { '\u202efield': hostileText(920_002, 300), constructor: 1 }
    worker.send({ type: 'job.log', job_id, lease_token, lines: [{ level: 'error', text, fields }] })
    await check('a line of a log', 'q920001q')
    t.notMatch(await page.locator('.log-lines').textContent(), /hacked title|\[1049|\u001b/)
    await worker.report(job, {
      status: 'failed',
      error_type: 'constructor',
      error_message: hostileText(920_003),
    })
    await check('the failure of a run', 'q920003q')

    const agent = await s.ok('agent.create', {
      project: place.handle,
      name: 'Live',
      model_route: { mode: 'worker', provider: 'local', model: 'hostile' },
    })
    const session = await s.ok('session.create', {
      project: place.handle,
      agent_id: agent['id'],
      mode: 'new',
    })
    const session_id = session['id']
    await visit(page, `${base}/sessions/${String(session_id)}`)
    const content = [{ type: 'text', text: 'speak' }]
    await s.ok('session.start_turn', { project: place.handle, session_id, content })
    const generation = await worker.job()
    const said = hostileText(920_004)
    for (const [index, part] of [said.slice(0, 60), said.slice(60)].entries())
      worker.send({
        type: 'generation.delta',
        job_id: generation['id'],
        lease_token: generation['lease_token'],
        sequence: index + 1,
        delta: { type: 'text', text: part },
      })
    await check('text that is being generated', 'q920004q')
    await worker.report(generation, {
      status: 'completed',
      ...answer([{ type: 'text', text: said }, use('one', 'constructor', hostileJson(920_005))]),
    })
    await check('a turn', 'q920004q')

    const channel = await s.ok('channel.create', { project: place.handle, name: 'live' })
    await visit(page, `${base}/channels/${String(channel['id'])}`)
    const to = { project: place.handle, id: channel['id'] }
    await s.ok('channel.send', { ...to, content: hostileText(920_006) })
    await check('a message', 'q920006q')
    await visit(page, `${base}/tables/${place.table}`)
    const data = { name: hostileText(920_007, 400) }
    await s.ok('row.insert', { project: place.handle, id: place.table, data })
    await check('a row', 'q920007q')

    const hook = { name: 'Answers', url: receiver.url, events: ['run.completed'] }
    const { id: webhook } = await s.ok('webhook.create', { project: place.handle, ...hook })
    await visit(page, `${base}/webhooks/${String(webhook)}`)
    await page.getByRole('button', { name: 'Send a test' }).click()
    await check('the answer to a test', 'The test failed')
    const nap = { id: 'nap', kind: 'sleep', config: { duration: '1ms' } }
    await s.ok('run.start', { project: place.handle, spec: { steps: [nap] } })
    await page.getByRole('button', { name: 'run.completed' }).first().click()
    await check('the answer to a delivery', 'q920010q')
    t.strictSame(faults, [])
    await browsing.close()
  })

  t.test('files that a person chooses in the browser', async (t) => {
    const browsing = await watched(browser, s)
    const { page } = browsing
    const base = `/p/${place.handle}`
    const faults: string[] = []
    const check = async (where: string, text: string): Promise<void> => {
      await page.getByText(text).first().waitFor()
      faults.push(...(await browsing.look(where)), ...browsing.faults())
    }
    const chosen = (mark: number, ending: string, content: string) => ({
      name: `..\\..\\${hostileText(mark, 180).replaceAll('/', '-')}${ending}`,
      type: 'text/plain',
      content,
    })
    await visit(page, `${base}/tables/${place.table}`)
    await page.getByRole('button', { name: 'More actions of the table' }).click()
    await page.getByRole('menuitem', { name: 'Import CSV' }).click()
    const cells = [940_001, 940_002].map((mark) => `"${hostileText(mark).replaceAll('"', '""')}"`)
    await dropFiles(page.locator('.file-drop'), [
      chosen(940_000, '.csv', `name,${cells[0]}\n${cells[1]},=cmd|' /C calc'!A0\n,${ESCAPES}\n`),
    ])
    await check('the import of a file', 'q940000q')
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click()

    await visit(page, `${base}/artifacts`)
    await dropFiles(page.locator('.drop'), [chosen(940_003, '.bat', 'x')])
    await check('an uploaded file', 'q940003q')

    await visit(page, `${base}/blueprints/apply`)
    const target = page.locator('.upload')
    await dropFiles(target, [chosen(940_010, '.yaml', `kind: skil\n${hostileText(940_011)}: 1\n`)])
    await check('the faults of a file', 'q940010q')
    const skill = (mark: number) => [
      { name: 'blueprint.json', type: '', content: '{"namespace":"a","blueprint_key":"hostile"}' },
      chosen(
        mark,
        '.json',
        JSON.stringify({
          kind: 'skill',
          key: 'hostile',
          name: hostileText(mark + 1, 80),
          description: hostileText(mark + 2, 900),
          instructions: hostileText(mark + 3),
        }),
      ),
    ]
    const apply = page.getByRole('button', { name: 'Apply this plan' })
    for (const [mark, planned] of [
      [940_020, '1 create'],
      [940_030, '1 update'],
    ] as const) {
      await dropFiles(target, skill(mark))
      await page.getByText(planned).waitFor()
      await page.locator('.change summary').click()
      await page.locator('.comparison').first().waitFor()
      await check(`the plan with ${planned}`, `q${mark + 3}q`)
      await apply.click()
      await page.getByText('The blueprint was applied.').waitFor()
    }
    await page.getByRole('link', { name: 'Show the blueprint' }).click()
    await page.waitForURL(/blueprints\/view/)
    faults.push(...(await browsing.walk(page.url().slice(s.url.length), 0)).faults)
    t.strictSame(faults, [])
    await browsing.close()
  })

  t.test('the output of a terminal, and the files of a workspace', async (t) => {
    const browsing = await watched(browser, s)
    const { page } = browsing
    const heard: string[] = []
    const worker = new Worker({
      url: s.url,
      key: s.key,
      instance: 'hostile-desk',
      capabilities: ['terminal'],
      actions: hostileWorkspace,
      terminals: hostileTerminal(heard),
    })
    t.teardown(() => worker.stop())
    await worker.start()
    const { id } = await s.ok('environment.attach', {
      name: 'hostile-desk',
      worker_instance_id: 'hostile-desk',
    })
    const address = `/p/default/environments/${String(id)}`
    await visit(page, `${address}?tab=terminal`)
    const title = await page.title()
    await page.evaluate("navigator.clipboard.writeText('own')")
    await page.getByRole('button', { name: 'Open a terminal' }).click()
    await page.locator('.xterm-rows').getByText('ready').waitFor()
    const faults = [...(await browsing.look('a terminal'))]
    t.equal(await page.title(), title, 'the output does not set the title')
    t.equal(await page.evaluate('navigator.clipboard.readText()'), 'own', 'nor the clipboard')
    t.notMatch(heard.join(''), /hacked|own/, 'it reads nothing')
    t.equal(await page.locator('.xterm a').count(), 0, 'it makes no links')
    await page.getByRole('button', { name: 'End the terminal' }).click()
    await page.getByRole('tab', { name: 'Files' }).click()
    await page
      .getByRole('button', { name: /q900001q/ })
      .first()
      .click()
    await page.getByText('q900002q').first().waitFor()
    faults.push(...(await browsing.look('files')), ...browsing.faults())
    t.strictSame(faults, [])
    await browsing.close()
  })
}
