/**
 * Environments in a real browser: creating and destroying them, exclusive use, files and a terminal
 * of an attached workspace, whose worker is the worker library with scripted actions. Skipped
 * without Chromium.
 */
import type { Browser } from 'playwright-core'
import t from 'tap'
import type { OpenTerminal, WorkerTerminal } from '../../../client/worker/terminals.ts'
import { Worker } from '../../../client/worker.ts'
import { service } from '../../support/service.ts'
import { dropFiles, faultsOf, inBrowser } from '../support/browser.ts'
import { signedIn } from '../support/console.ts'
import { person } from '../support/people.ts'

/** Opens a program that echoes its input in color, and exits with code 4 after `q`. */
const openEcho: OpenTerminal = async () => {
  let data: (bytes: Uint8Array) => void = () => {}
  let exit: (how: { exit_code: number }) => void = () => {}
  const program: WorkerTerminal = {
    write(bytes) {
      const text = Buffer.from(bytes).toString()
      data(Buffer.from(`\u001b[38;2;250;0;0m${text}\u001b[0m`))
      if (text.includes('q')) exit({ exit_code: 4 })
    },
    resize: () => {},
    pause: () => {},
    resume: () => {},
    close: () => {},
    onData(listener) {
      data = listener
      data(Buffer.from('<b>ready</b> \u001b[1;32m$\u001b[0m '))
    },
    onExit(listener) {
      exit = listener
    },
  }
  return program
}

const files = new Map<string, string>([
  ['README.md', '# Read me'],
  ['src/<i>odd.txt', 'content of the odd file'],
])
const actions = {
  'environment.files.list': ({ path = '' }: { readonly path?: unknown }) => {
    const inside = path === '' ? '' : `${String(path)}/`
    const names = [...files.keys()].filter((name) => name.startsWith(inside))
    const entries = new Map(
      names.map((name) => {
        const [first = '', ...rest] = name.slice(inside.length).split('/')
        const dir = rest.length > 0
        const size = dir ? 0 : Buffer.byteLength(files.get(name) ?? '')
        const modified_at = '2026-01-01T00:00:00.000Z'
        return [first, { path: inside + first, dir, size, modified_at }]
      }),
    )
    return { path: path === '' ? '.' : path, entries: [...entries.values()], truncated: false }
  },
  'environment.files.read': ({ path }: { readonly path?: unknown }) => {
    const content = Buffer.from(files.get(String(path)) ?? '')
    return { content: content.toString('base64'), size: content.length, truncated: false }
  },
  'environment.files.write': ({ path, content }: { path?: unknown; content?: unknown }) => {
    if (path === 'src/refused.txt') throw new RangeError('the disk is full')
    files.set(String(path), Buffer.from(String(content), 'base64').toString())
    return { path }
  },
  'environment.files.delete': ({ path }: { readonly path?: unknown }) => {
    files.delete(String(path))
    return { path }
  },
}

async function tryOut(browser: Browser): Promise<void> {
  const s = await service()
  const worker = new Worker({
    url: s.url,
    key: s.key,
    instance: 'desk',
    capabilities: ['terminal'],
    actions,
    terminals: openEcho,
  })
  t.teardown(async () => {
    await browser.close()
    await worker.stop()
    await s.stop()
  })
  await worker.start()
  const { id } = await s.ok('environment.attach', { name: 'desk', worker_instance_id: 'desk' })

  t.test('an environment is created, used exclusively and destroyed', async (t) => {
    const { context, open, faults } = await signedIn(browser, s)
    const page = await open('/p/default/environments')
    await page.getByRole('link', { name: 'desk' }).waitFor()
    await page.keyboard.press('c')
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Name', { exact: true }).fill('my desk')
    await dialog.getByRole('button', { name: 'Create an environment' }).click()
    await dialog.locator('.fault').waitFor()
    await dialog.getByLabel('Name', { exact: true }).fill('my-desk')
    await dialog.getByLabel('Tags').fill('team=sales')
    await dialog.getByRole('button', { name: 'Create an environment' }).click()
    await page.getByRole('heading', { name: 'my-desk' }).waitFor()
    await page.getByText('team=sales').waitFor()
    const menu = page.getByRole('button', { name: 'More actions of the environment' })
    await menu.click()
    await page.getByRole('menuitem', { name: 'Destroy' }).click()
    await dialog.getByRole('button', { name: 'Destroy' }).click()
    await page.getByText(/^destroy(ing|ed)$/).waitFor()

    await page.goto(`${s.url}/p/default/environments/${id}`)
    await menu.click()
    await page.getByRole('menuitem', { name: 'Take exclusive use' }).click()
    await dialog.getByRole('button', { name: 'Take exclusive use' }).click()
    const token = String(await dialog.locator('code').textContent())
    await dialog.getByRole('button', { name: 'Close' }).last().click()
    await page.getByText('Until', { exact: true }).waitFor()
    await menu.click()
    await page.getByRole('menuitem', { name: 'End exclusive use' }).click()
    await dialog.getByLabel('Lease token').fill(token)
    await dialog.getByRole('button', { name: 'End exclusive use' }).click()
    await page.getByText('No exclusive use is active.').waitFor()
    t.strictSame(
      faults.filter((fault) => !/status of 400/.test(fault)),
      [],
    )
    await context.close()
  })

  t.test('a terminal runs under the policy of the console', async (t) => {
    const { context, open, faults } = await signedIn(browser, s)
    const page = await open(`/p/default/environments/${id}?tab=terminal`)
    await page.getByRole('button', { name: 'Open a terminal' }).click()
    const screen = page.locator('.xterm-rows')
    await screen.getByText('<b>ready</b>').waitFor()
    await page.locator('.xterm-helper-textarea:focus').waitFor({ state: 'attached' })
    await page.keyboard.type('hello')
    const typed = screen.getByText('hello')
    await typed.waitFor()
    // If the content security policy blocked the style, the browser would log an error.
    await screen.locator('span[style*="color"]', { hasText: 'hello' }).waitFor()
    // The terminal stays open while another part of the page is shown.
    await page.getByRole('tab', { name: 'Overview' }).click()
    await page.getByRole('tab', { name: 'Terminal' }).click()
    await typed.waitFor()
    await page.locator('.terminal-frame').click()
    await page.keyboard.press('Control+Shift+Escape')
    await page.locator('button:focus', { hasText: 'End the terminal' }).waitFor()
    await page.locator('.terminal-frame').click()
    await page.keyboard.type('q')
    await page.getByText('The shell has ended with the code 4.').waitFor()
    t.strictSame(faults, [])
    await context.close()
  })

  t.test('files are listed, opened, written and deleted', async (t) => {
    const { context, open, faults } = await signedIn(browser, s)
    const page = await open(`/p/default/environments/${id}?tab=files`)
    await page.getByRole('button', { name: 'src/' }).click()
    await page.getByRole('button', { name: '<i>odd.txt', exact: true }).click()
    await page.getByText('content of the odd file').waitFor()
    await page.reload()
    await page.getByText('content of the odd file').waitFor()
    await page.getByLabel('Upload files').setInputFiles({
      name: 'new.json',
      mimeType: 'application/json',
      buffer: Buffer.from('{"a":1}'),
    })
    await page.getByRole('button', { name: 'new.json', exact: true }).waitFor()
    t.equal(files.get('src/new.json'), '{"a":1}')
    await dropFiles(page.locator('.files'), [{ name: 'b.txt', type: 'text/plain', content: 'B' }])
    await page.getByRole('button', { name: 'b.txt', exact: true }).waitFor()
    t.equal(files.get('src/b.txt'), 'B')
    await dropFiles(page.locator('.files'), [
      { name: 'refused.txt', type: 'text/plain', content: 'C' },
      { name: 'c.txt', type: 'text/plain', content: 'C' },
    ])
    await page.getByText('the disk is full').waitFor()
    const listed = page.waitForResponse((response) => response.url().includes('files.list'))
    await page.getByRole('button', { name: 'Read again' }).click()
    await listed
    await page.getByText('the disk is full').waitFor()
    await page.getByRole('button', { name: 'Delete new.json' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await page.getByRole('button', { name: 'new.json', exact: true }).waitFor({ state: 'detached' })
    t.equal(files.has('src/new.json'), false)
    t.strictSame(faults, [])
    await context.close()
  })

  t.test('a reader may not open a terminal, and axe finds nothing', async (t) => {
    const reader = await person(s, 'Rita', 'role_viewer')
    for (const dark of [false, true]) {
      const { context, open } = await signedIn(browser, s, {
        dark,
        bypassCSP: true,
        ...(dark && { key: reader.key }),
      })
      const page = await open(`/p/default/environments/${id}?tab=terminal`)
      await page.setViewportSize({ width: dark ? 390 : 1280, height: 800 })
      if (dark) await page.getByText('You may not do this here.').waitFor()
      else {
        await page.getByRole('button', { name: 'Open a terminal' }).click()
        await page.locator('.xterm-rows').getByText('<b>ready</b>').waitFor()
      }
      t.strictSame(await faultsOf(page), [], `terminal, dark ${dark}`)
      for (const path of [`/${id}`, '?new=1']) {
        await page.goto(`${s.url}/p/default/environments${path}`)
        await page.locator('.facts, .table').first().waitFor()
        t.strictSame(await faultsOf(page), [], `${path}, dark ${dark}`)
        t.ok(
          await page.evaluate('document.documentElement.scrollWidth <= innerWidth'),
          `${path} does not scroll sideways`,
        )
      }
      await context.close()
    }
  })
}

// Called last, so that the scripted actions above are initialized before the tests begin.
await inBrowser(t, tryOut)
