/** Files in the chat page: attached, rejected, removed, sent, previewed and saved. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import type { TAP } from 'tap'
import type { Service } from '../../support/service.ts'
import { faultsOf } from '../support/browser.ts'
import { listOf } from '../support/given.ts'

/** A PNG of one pixel. */
const dot =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

/**
 * Writes files to a folder and returns their paths. The browser reads them directly from the disk.
 * If a test passed the bytes instead, they would be sent over the debugging protocol of the
 * browser, which takes seconds for 9 MB.
 */
const written = (folder: string, files: Readonly<Record<string, Buffer>>): string[] =>
  Object.entries(files).map(([name, bytes]) => {
    writeFileSync(join(folder, name), bytes)
    return join(folder, name)
  })

/**
 * Attaches files by file dialog, paste and drop. Removes the rejected files and one other file,
 * sends the rest, and saves one of the sent files.
 */
export async function attachFiles(
  t: Pick<TAP, 'match' | 'equal' | 'strictSame' | 'testdir'>,
  page: Page,
  s: Service,
  session_id: string,
): Promise<void> {
  const chips = page.getByRole('list', { name: 'Attached files' }).getByRole('listitem')
  const choose = page.getByRole('button', { name: 'Attach files' })
  const chooser = page.waitForEvent('filechooser')
  await choose.focus()
  await page.keyboard.press('Enter')
  await (await chooser).setFiles(
    written(t.testdir(), {
      'dot.png': Buffer.from(dot, 'base64'),
      'strange.bin': Buffer.from([0, 1, 2, 3]),
      'large.png': Buffer.alloc(5_300_000, Buffer.from(dot, 'base64')),
      'huge.png': Buffer.alloc(9_000_000, Buffer.from(dot, 'base64')),
    }),
  )
  await page.evaluate(`(() => {
    const transfer = (name) => {
      const data = new DataTransfer()
      data.items.add(new File(['# A note'], name))
      return { bubbles: true, cancelable: true, clipboardData: data, dataTransfer: data }
    }
    const field = document.querySelector('textarea')
    field.dispatchEvent(new ClipboardEvent('paste', transfer('pasted.md')))
    document.body.dispatchEvent(new DragEvent('drop', transfer('dropped.md')))
  })()`)
  await page
    .locator('#announcements', { hasText: 'dropped.md is attached.' })
    .waitFor({ state: 'attached' })
  t.match(await chips.allTextContents(), [
    /^dot\.png.*/,
    /^strange\.bin.*file: has a type that cannot be shown to an agent/,
    /^large\.png.*A file may have at most 5242880 bytes/,
    /^huge\.png.*The request body is larger than this endpoint accepts\./,
    /^pasted\.md/,
    /^dropped\.md/,
  ])
  t.strictSame(await faultsOf(page), [], 'axe: files of a message')
  await page.getByLabel('Message').fill('look')
  await page.keyboard.press('Enter')
  await page.getByText('Remove strange.bin first: it could not be attached.').waitFor()
  for (const name of ['strange.bin', 'large.png', 'huge.png', 'pasted.md'])
    await page.getByRole('button', { name: `Remove ${name}` }).press('Enter')
  t.equal(
    await page.evaluate('document.activeElement.getAttribute("aria-label")'),
    'Remove dropped.md',
    'the focus goes to the next file',
  )
  await page.getByLabel('Message').focus()
  await page.keyboard.press('Enter')
  const image = page.getByRole('img', { name: 'dot.png' })
  await image.waitFor({ state: 'attached' })
  t.equal(
    await page.evaluate(`(async () => {
      const image = document.querySelector('img')
      if (!image.naturalWidth) await new Promise((done) => image.addEventListener('load', done))
      return image.naturalWidth
    })()`),
    1,
    'the image is previewed',
  )
  t.equal(await image.count(), 1)
  t.equal(await chips.count(), 0)
  t.strictSame(await faultsOf(page), [], 'axe: a message with files')
  const saved = page.waitForEvent('download')
  await page.getByRole('button', { name: /^Download dropped\.md/ }).click()
  t.equal((await saved).suggestedFilename(), 'dropped.md')
  t.equal(readFileSync(await (await saved).path(), 'utf8'), '# A note')
  t.strictSame(
    listOf(await s.ok('session.attachments', { session_id })).map(({ name }) => name),
    ['dot.png', 'dropped.md'],
    'a removed file is deleted',
  )
}
