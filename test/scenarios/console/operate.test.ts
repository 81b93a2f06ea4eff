/** The pages of webhooks, blueprints, settings, audit logs and the organization in a browser. */

import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import t from 'tap'
import { service } from '../../support/service.ts'
import { dropFiles, faultsOf, inBrowser } from '../support/browser.ts'
import { signedIn } from '../support/console.ts'
import { memberOf, until } from '../support/given.ts'

/** Returns the faults other than refused requests, which the browser logs as errors. */
const unexpected = (faults: readonly string[]): string[] =>
  faults.filter((fault) => !/status of 4\d\d/.test(fault))
const line = (page: Page, name: string) => page.getByRole('row').filter({ hasText: name })

let answer = 500
const receiver = createServer((request, response) => {
  request.resume()
  request.on('end', () => response.writeHead(answer).end('<b>thanks</b>'))
})
await new Promise<void>((done) => receiver.listen(0, '127.0.0.1', done))
const address = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`
const folder = mkdtempSync(join(tmpdir(), 'baton-console-'))
const s = await service({ BATON_OUTBOUND_ALLOW: '127.0.0.1/32' })
t.teardown(async () => {
  await s.stop()
  receiver.close()
  rmSync(folder, { recursive: true, force: true })
})

await inBrowser(t, async (browser) => {
  t.teardown(() => browser.close())
  const mouse = await signedIn(browser, s, { bypassCSP: true })

  t.test('a webhook is created, tested, and its deliveries are sent again', async (t) => {
    const page = await mouse.open('/p/default/webhooks')
    await page.getByText('There is no webhook yet').waitFor()
    await page.keyboard.press('n')
    await page.getByRole('textbox', { name: 'Name' }).fill('Alarms')
    await page.getByLabel('Address').fill('ftp://x')
    await page.getByLabel('Events', { exact: true }).fill('run.completed')
    await page.getByRole('button', { name: 'Create' }).click()
    await page.locator('.field .fault').getByText('https://').waitFor()
    await page.getByLabel('Address').fill(address)
    await page.getByRole('button', { name: 'Create' }).click()
    t.equal((await page.locator('dialog code').textContent())?.length, 44, 'the signing secret')
    await page.getByRole('button', { name: 'Done' }).click()
    await page.getByRole('heading', { name: 'Alarms' }).waitFor()

    await page.getByRole('button', { name: 'Send a test' }).click()
    await page.getByRole('alert').getByText('The test failed').waitFor()
    answer = 404
    await s.ok('run.start', {
      spec: { steps: [{ id: 'pause', kind: 'sleep', config: { duration: '1ms' } }] },
    })
    await line(page, 'run.completed').getByText('failed').waitFor()
    t.strictSame(await faultsOf(page), [], 'no accessibility violation')
    await page.getByRole('button', { name: 'run.completed' }).click()
    await page.getByRole('dialog').getByText('<b>thanks</b>').waitFor()
    t.strictSame(await faultsOf(page), [], 'no accessibility violation in the dialog')
    answer = 200
    await page.getByRole('button', { name: 'Send again' }).click()
    await page.getByRole('dialog').getByText('Repeats').waitFor()
    await page.getByRole('dialog').getByRole('cell', { name: 'delivered 200' }).waitFor()
    await page.keyboard.press('Escape')
    await page.reload()
    await line(page, 'delivered').waitFor()

    await page.getByRole('button', { name: 'Actions' }).click()
    await page.getByRole('menuitem', { name: 'Replace the secret' }).click()
    await page.getByRole('button', { name: 'Replace the secret' }).click()
    await page.getByRole('button', { name: 'Done' }).click()
    await page.getByRole('button', { name: 'Actions' }).click()
    await page.getByRole('menuitem', { name: 'Disable' }).click()
    await page.locator('.facts').getByText('Disabled').waitFor()
    await page.close()
  })

  t.test('files are planned, applied, and their drift is shown', async (t) => {
    const desk = join(folder, 'desk')
    mkdirSync(desk)
    writeFileSync(join(desk, 'blueprint.yaml'), 'namespace: examples\nblueprint_key: desk\n')
    const skill = (tone: string) =>
      writeFileSync(
        join(desk, 'tone.yaml'),
        `kind: skill\nkey: tone\nname: Tone\ninstructions: ${JSON.stringify(tone)}\n`,
      )
    skill('Be polite.')
    const page = await mouse.open('/p/default/blueprints')
    await page.getByRole('link', { name: 'Apply files' }).click()
    const input = page.locator('input[type=file]')
    await dropFiles(page.locator('.upload'), [
      { name: 'bad.yaml', type: 'text/yaml', content: 'kind: skil\nkey: a\n' },
    ])
    await page.getByText('did you mean skill?').waitFor()
    await input.nth(1).setInputFiles(desk)
    const apply = page.getByRole('button', { name: 'Apply this plan' })
    await page.getByText('1 create').waitFor()
    await page.locator('summary', { hasText: 'tone' }).click()
    await page.locator('.comparison', { hasText: 'Be polite.' }).first().waitFor()
    t.strictSame(await faultsOf(page), [], 'no accessibility violation')
    await apply.click()
    await page.getByText('The blueprint was applied.').waitFor()
    skill('Be short.')
    let release = () => {}
    const released = new Promise<void>((done) => void (release = done))
    const held = page.waitForRequest('**/blueprints/apply*')
    await page.route(
      '**/blueprints/apply*',
      async (route) => {
        const response = await route.fetch()
        await released
        await route.fulfill({ response })
      },
      { times: 1 },
    )
    await input.nth(1).setInputFiles(desk)
    const outdated = (await held).response()
    skill('Be brief.')
    await input.nth(1).setInputFiles(desk)
    await page.getByText('1 update').waitFor()
    await page.locator('summary', { hasText: 'tone' }).click()
    const comparison = page.locator('.comparison', { hasText: 'Be brief.' }).first()
    await comparison.waitFor()
    release()
    await (await outdated)?.finished()
    await page.evaluate('new Promise(requestAnimationFrame)')
    t.ok(await comparison.isVisible(), 'the plan of earlier files does not replace a newer one')
    await apply.click()
    await page.getByText('The blueprint was applied.').waitFor()
    await page.getByRole('link', { name: 'Show the blueprint' }).click()
    await line(page, 'tone').getByText('Created by the blueprint').waitFor()

    await page.getByRole('tab', { name: 'Drift' }).click()
    await page.getByText('No resource was changed since the last apply.').waitFor()
    const id = memberOf(await s.ok('skill.list'), 'items', '0', 'id')
    await s.ok('skill.replace', { id, name: 'Tone', instructions: '<i>Be quick.</i>' })
    await page.getByText('<i>Be quick.</i>').waitFor()
    t.strictSame(await faultsOf(page), [], 'no accessibility violation in the drift')
    await page.getByRole('button', { name: 'Protect' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Protect' }).click()
    await page.getByText('Protected', { exact: true }).first().waitFor()
    const download = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Export' }).click()
    const exported = readFileSync(await (await download).path(), 'utf8')
    t.match(JSON.parse(exported), { blueprint_key: 'desk', resources: { skills: [{}] } })
    await page.getByTitle('Blueprints', { exact: true }).click()
    await page.getByRole('menuitem', { name: 'Delete' }).click()
    const confirm = page.getByRole('dialog').getByRole('button', { name: 'Delete' })
    t.equal(await confirm.isDisabled(), true, 'the key must be typed')
    await page.getByLabel('Type desk to confirm').fill('desk')
    await confirm.click()
    await page.getByText('No blueprint is applied here yet').waitFor()
    await page.close()
  })

  t.test('settings are saved, and a project is deleted by its name', async (t) => {
    await s.ok('project.create', { name: 'Second', handle: 'second' })
    const page = await mouse.open('/p/second/settings')
    await page.getByRole('checkbox', { name: /^Another principal/ }).check()
    t.strictSame(await faultsOf(page), [], 'no accessibility violation')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('The settings were saved.').waitFor()
    const saved = await s.ok('project.get', { project: 'second', include: 'separate_approver' })
    t.match(saved, { separate_approver: true })
    // Another person changes the same field. The second save replaces that change deliberately.
    const conflict = page.getByText('Somebody else has changed this')
    await page.getByLabel('Description').fill('Mine')
    await s.ok('project.update', { project: 'second', description: 'Theirs' })
    await page.getByRole('button', { name: 'Save' }).click()
    await conflict.waitFor()
    const stored = () => s.ok('project.get', { project: 'second' })
    t.match(await stored(), { description: 'Theirs' })
    await page.getByRole('button', { name: 'Save' }).click()
    await until(stored, ({ description }) => description === 'Mine')
    await conflict.waitFor({ state: 'detached' })

    await page.getByRole('tab', { name: 'Repository hosts' }).click()
    await page.getByRole('button', { name: 'New host' }).click()
    await page.getByLabel('Name', { exact: true }).fill('git')
    await page.getByLabel('Kind').selectOption('token')
    await page.getByLabel('Address').fill('https://git.example.org/?x')
    await page.getByLabel('Token for reading').fill('abc')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.locator('.field .fault').getByText('query').waitFor()
    await page.getByLabel('Address').fill('https://git.example.org')
    await page.getByRole('button', { name: 'Save' }).click()
    await line(page, 'read_token').waitFor()
    await page.getByRole('tab', { name: 'Storage' }).click()
    await page.getByText(/ used/).first().waitFor()

    await page.getByRole('tab', { name: 'Delete' }).click()
    await page.getByRole('button', { name: 'Delete the project' }).click()
    await page.getByLabel('Type Second to confirm').fill('Second')
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('button', { name: 'Delete the project' }).click()
    await page.waitForURL(/organization\/projects/)
    await line(page, 'default').waitFor()
    t.equal(await line(page, 'second').count(), 0)
    await page.close()
  })

  t.test('the audit log is filtered, opened, exported and live', async (t) => {
    const page = await mouse.open('/p/default/audit?type=webhook')
    await line(page, 'Alarms').first().waitFor()
    t.equal(await line(page, 'Tone').count(), 0)
    t.strictSame(await faultsOf(page), [], 'no accessibility violation')
    await s.ok('webhook.create', { name: 'Another' })
    await line(page, 'Another').waitFor()
    await page.getByRole('button', { name: 'Another' }).click()
    await page.getByRole('dialog').getByText('127.0.0.1').waitFor()
    t.strictSame(await faultsOf(page), [], 'no accessibility violation in the dialog')
    await page.getByRole('button', { name: 'Next entry' }).click()
    await page.getByRole('heading', { name: /webhook Alarms/ }).waitFor()
    await page.goBack()
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    const download = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Export' }).click()
    await page.getByRole('menuitem', { name: 'As CSV' }).click()
    const [, first = ''] = readFileSync(await (await download).path(), 'utf8').split('\r\n')
    t.match(first, /,create,webhook,.*,Another,/)
    await page.getByLabel('Action').selectOption('delete')
    await page.getByText('No entry matches.').waitFor()
    await page.goto(`${s.url}/organization/audit?type=project`)
    await line(page, 'Second').first().waitFor()
    t.strictSame(await faultsOf(page), [], 'no accessibility violation of the organization')
    await page.close()
  })

  t.test('the organization has keys and a definition resolver', async (t) => {
    const page = await mouse.open('/organization/keys')
    await line(page, 'root').waitFor()
    await page.getByRole('button', { name: 'New API key' }).click()
    await page.getByLabel('Name', { exact: true }).fill('watcher')
    await page.getByRole('button', { name: 'Create' }).click()
    const key = (await page.locator('dialog code').first().textContent()) ?? ''
    await page.getByRole('button', { name: 'Done' }).click()
    t.match(await s.ok('me.get', {}, { key }), { permissions: ['service.project.view'] })
    await s.ok('key.create_organization', { name: 'came later' })
    await line(page, 'came later').waitFor()
    t.strictSame(await faultsOf(page), [], 'no accessibility violation')
    await page.goto(`${s.url}/organization/resolver`)
    t.ok(await page.getByRole('button', { name: 'Save' }).first().isDisabled(), 'nothing to save')
    await page.getByLabel('Source of definitions').selectOption('client_resolver')
    await page.getByLabel('Address of the resolver').fill('http://x')
    await page.getByRole('button', { name: 'Save' }).first().click()
    await page.locator('.field .fault').getByText('https://').waitFor()
    await page.getByLabel('Address of the resolver').fill('https://definitions.example.org/')
    await page.getByLabel('Bearer token').fill('hidden')
    await page.getByRole('button', { name: 'Save' }).first().click()
    await page.getByText('stored', { exact: true }).waitFor()
    t.strictSame(await faultsOf(page), [], 'no accessibility violation of the resolver')
    await page.close()
  })

  t.test('the pages have no faults', async (t) => {
    t.strictSame(unexpected(mouse.faults), [])
    await mouse.context.close()
  })
})
