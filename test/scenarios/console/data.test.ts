/**
 * Tables and artifacts in a real browser: the grid by mouse and by keyboard, filters, changes by
 * other clients, import, the schema, uploads, previews of hostile files, and permissions. Skipped
 * without Chromium.
 */
import type { Browser } from 'playwright-core'
import t from 'tap'
import { dropFiles, faultsOf, inBrowser, untilTrue } from '../support/browser.ts'
import { serviceFor, signedIn } from '../support/console.ts'
import type { Found } from '../support/given.ts'
import { person } from '../support/people.ts'
import { dataOf, insertAll, tableOf } from '../support/tables.ts'

await inBrowser(t, tryOut)

/** Removes the errors that the browser logs when requests are refused. */
const unexpected = (faults: readonly string[]): string[] =>
  faults.filter((fault) => !/status of (400|403|404|409|422)/.test(fault))

async function tryOut(browser: Browser): Promise<void> {
  const s = await serviceFor(t, browser)
  const rowOf = async (id: unknown, number: string) => {
    const { items } = await s.ok('table.query', { id, filter: { number } })
    return (items as unknown as Found[])[0]
  }

  t.test('a table is edited by keys alone, and others see it and are seen', async (t) => {
    const { id } = await tableOf(s)
    const rows = Array.from({ length: 250 }, (_, i) => ({
      number: `A-${String(i).padStart(3, '0')}`,
      customer: '<img src=x onerror=alert(1)> \u202e🦄',
      amount: i,
      note: 'x'.repeat(i === 1 ? 100_000 : 1),
    }))
    await insertAll(s, id, rows)
    const { context, open, faults } = await signedIn(browser, s)
    const page = await open(`/p/default/tables/${id}`)
    const grid = page.getByRole('grid')
    await grid.getByText('A-000').waitFor()
    await grid.focus()
    await page.keyboard.press('ArrowRight')
    await page.keyboard.press('ArrowRight')
    await page.keyboard.press('Enter')
    const field = grid.getByLabel('amount', { exact: true })
    await field.fill('much')
    await page.keyboard.press('Enter')
    await grid.getByText('must be a finite number').waitFor()
    await page.keyboard.press('Escape')
    await field.waitFor({ state: 'detached' })
    await page.keyboard.type('9')
    await page.keyboard.press('Escape')
    await page.keyboard.type('7')
    await page.keyboard.press('Tab')
    await grid.getByLabel('paid').waitFor()
    await page.keyboard.press('Escape')
    t.equal(dataOf(await rowOf(id, 'A-000'))['amount'], 7)
    // Scrolling down loads more pages of rows.
    await page.keyboard.press('Control+End')
    await page.getByText('250 rows', { exact: true }).waitFor()
    await page.keyboard.press('Control+Home')
    const other = await rowOf(id, 'A-000')
    await s.ok('row.update', { id, row_id: other?.['id'], data: { customer: 'Changed elsewhere' } })
    await grid.getByText('Changed elsewhere').waitFor()
    // A saved view stores the filter and the columns, and the URL contains both.
    await page.getByRole('button', { name: 'Filter' }).click()
    await page.getByLabel('Value').fill('A-001')
    await page.getByRole('button', { name: 'Columns', exact: true }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('checkbox', { name: 'customer' }).uncheck()
    await dialog.getByRole('button', { name: 'Close' }).last().click()
    await page.getByText('1 row', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Views' }).click()
    await page.getByRole('menuitem', { name: 'Save this view' }).click()
    await dialog.getByLabel('Name').fill('One')
    await dialog.getByRole('button', { name: 'Save this view' }).click()
    await page.getByRole('button', { name: 'One' }).click()
    await page.getByRole('menuitem', { name: 'All rows' }).click()
    await page
      .getByText('250 rows', { exact: true })
      .or(page.getByText(/^200 rows/))
      .waitFor()
    await grid.getByText('customer', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Views' }).click()
    await page.getByRole('menuitem', { name: 'One' }).click()
    await page.getByText('1 row', { exact: true }).waitFor()
    await grid.getByText('customer', { exact: true }).waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'One' }).click()
    await page.getByRole('menuitem', { name: 'All rows' }).click()
    await grid.getByText('A-000').waitFor()
    await grid.focus()
    await page.keyboard.press('Control+End')
    await page.getByText('250 rows', { exact: true }).waitFor()
    await page.keyboard.press('Control+Home')
    await page.keyboard.press('Space')
    await page.keyboard.press('Delete')
    await page.getByRole('dialog').getByRole('button', { name: 'Delete the row' }).click()
    await page.getByText('249 rows', { exact: true }).waitFor()
    await grid.getByText('A-000').waitFor({ state: 'detached' })
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await page.locator('[role=grid]:focus').waitFor()
    t.strictSame(unexpected(faults), [])
    await context.close()
  })

  t.test('rows are filtered, sorted, searched, inserted and opened by the address', async (t) => {
    const { id } = await tableOf(s)
    const made = await insertAll(
      s,
      id,
      [3, 1, 2].map((amount) => ({ number: `N${amount}`, amount, customer: `c${amount}` })),
    )
    const { context, open, faults } = await signedIn(browser, s)
    const page = await open(`/p/default/tables/${id}`)
    const grid = page.getByRole('grid')
    const first = grid.getByRole('row').nth(1)
    await grid.getByRole('columnheader', { name: 'amount' }).click()
    await first.getByText('N1').waitFor()
    t.match(page.url(), /sort=amount/)
    await page.getByRole('button', { name: 'Filter' }).click()
    await page.getByLabel('Column', { exact: true }).selectOption('amount')
    await page.getByLabel('Condition', { exact: true }).selectOption('gte')
    const restricts = page.getByRole('button', { name: 'Filter (1)' })
    t.equal(await restricts.count(), 0, 'a condition without a value restricts nothing')
    await page.getByLabel('Value', { exact: true }).fill('2')
    await restricts.waitFor()
    await first.getByText('N2').waitFor()
    await page.reload()
    await first.getByText('N2').waitFor()
    await page.getByRole('button', { name: 'Clear the filter' }).click()
    await page.getByLabel('Search in the rows').fill('c3')
    await first.getByText('N3').waitFor()
    await page.getByLabel('Search in the rows').fill('')
    await first.getByText('N1').waitFor()
    await page.getByRole('button', { name: 'Insert a row' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('button', { name: 'Insert a row' }).click()
    await dialog.getByText('is required').waitFor()
    await dialog.getByLabel('number *').fill('N1')
    await dialog.getByRole('button', { name: 'Insert a row' }).click()
    await dialog.locator('.fault, [role=alert]').first().waitFor()
    await dialog.getByLabel('number *').fill('N0')
    await dialog.getByLabel('amount').fill('0')
    await dialog.getByRole('button', { name: 'Insert a row' }).click()
    await first.getByText('N0').waitFor()
    await page.goto(`${s.url}/p/default/tables/${id}?row=${made[0]?.['id']}`)
    t.equal(await dialog.getByLabel('number *').inputValue(), 'N3')
    await dialog.getByLabel('customer').fill('Saved in the dialog')
    await dialog.getByRole('button', { name: 'Save' }).click()
    await grid.getByText('Saved in the dialog').waitFor()
    t.strictSame(unexpected(faults), [])
    await context.close()
  })

  t.test('a table is created, gets columns, and rows of a file', async (t) => {
    const { context, open, faults } = await signedIn(browser, s)
    const page = await open('/p/default/tables')
    await page.keyboard.press('c')
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Name', { exact: true }).fill('From The Console')
    await dialog.getByRole('button', { name: 'Create a table' }).click()
    await dialog.locator('.fault').waitFor()
    await dialog.getByLabel('Name', { exact: true }).fill('from_console')
    await dialog.getByRole('button', { name: 'Create a table' }).click()
    await page.getByRole('heading', { name: 'from_console' }).waitFor()
    await page.getByRole('tab', { name: 'Columns' }).click()
    await page.getByRole('button', { name: 'Add a column' }).click()
    await page.getByLabel('Name of column 2').fill('price')
    await page.getByLabel('Type of column 2').selectOption('number')
    await page.getByRole('button', { name: 'Save the columns' }).click()
    await page.getByText('Saved.').waitFor()
    // A form without edits shows changes by other clients. A form with edits keeps its values.
    const { id, schema } = await s.ok('table.get', {
      id: new URL(page.url()).pathname.split('/').at(-1) ?? '',
    })
    const { columns, ...others } = schema as unknown as { columns: object[] }
    const describe = (description: string) =>
      s.ok('table.update', {
        id: String(id),
        schema: { ...others, columns: columns.with(1, { ...columns[1], description }) },
      })
    const shows = (value: string): string =>
      `[...document.querySelectorAll('input')].some((field) => field.value === '${value}')`
    const described = page.getByLabel('Description of column 2')
    await describe('Theirs')
    await untilTrue(page, shows('Theirs'))
    await page.getByRole('button', { name: 'Add a column' }).click()
    await describe('Theirs again')
    let asked = 0
    page.once('dialog', (question) => {
      asked++
      void question.dismiss()
    })
    await page.getByRole('tab', { name: 'Rows' }).click()
    t.equal(asked, 1)
    t.equal(await described.inputValue(), 'Theirs')
    await page.getByRole('button', { name: 'Discard' }).click()
    await untilTrue(page, shows('Theirs again'))
    await page.getByRole('tab', { name: 'Rows' }).click()
    await page.getByRole('button', { name: 'Import CSV' }).click()
    const content = 'Name,price,colour\ntea,2.5,green\n"coffee, black",3,black\ncake,much,\n'
    await dropFiles(dialog.locator('.file-drop'), [
      { name: 'prices.csv', type: 'text/csv', content },
    ])
    await dialog.getByText('1 row does not fit').waitFor()
    await dialog.getByLabel('Column for colour').selectOption('+')
    await dialog.getByRole('button', { name: 'Import 2 rows' }).click()
    await dialog.getByText('Imported 2 rows.').waitFor()
    await dialog.getByRole('button', { name: 'Close' }).last().click()
    await page.getByRole('grid').getByText('coffee, black').waitFor()
    await page.getByRole('button', { name: 'More actions of the table' }).click()
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('menuitem', { name: 'Export as CSV' }).click(),
    ])
    let text = ''
    for await (const chunk of await download.createReadStream()) text += String(chunk)
    t.equal(text, 'name,price,colour\ntea,2.5,green\n"coffee, black",3,black\n')
    await page.getByRole('tab', { name: 'Statistics' }).click()
    await page.locator('.facts').getByText('2', { exact: true }).waitFor()
    t.strictSame(unexpected(faults), [])
    await context.close()
  })

  t.test('files are uploaded, shown without harm, linked and deleted', async (t) => {
    const { context, open, faults } = await signedIn(browser, s)
    const page = await open('/p/default/artifacts')
    const html =
      '<h1>Hello</h1><script>parent.document.title = "hacked"</script><img src=x onerror=alert(1)>'
    await page.getByLabel('Upload files').setInputFiles([
      { name: 'page.html', mimeType: 'text/html', buffer: Buffer.from(html) },
      { name: 'a.json', mimeType: 'application/json', buffer: Buffer.from('{"a":[1,{"b":2}]}') },
      { name: 'a.csv', mimeType: 'text/csv', buffer: Buffer.from('x,y\n1,"<b>2</b>"\n') },
      { name: 'log.txt', mimeType: 'text/plain', buffer: Buffer.from('line\n'.repeat(20_000)) },
    ])
    await dropFiles(page.locator('.drop'), [
      { name: 'dropped.txt', type: 'text/plain', content: 'dropped' },
      // A file with the media type of PDF is never parsed as HTML.
      { name: 'odd.pdf', type: 'application/pdf', content: html },
    ])
    const list = page.getByRole('table')
    await list.getByRole('link', { name: 'dropped.txt', exact: true }).waitFor()
    await list.getByRole('link', { name: 'odd.pdf', exact: true }).click()
    const frame = page.locator('iframe[title="Content of odd.pdf"]')
    const without = page.getByText('This browser shows no PDF files.')
    await frame.or(without).first().waitFor()
    const count = await frame.count()
    t.equal(count, (await page.evaluate('navigator.pdfViewerEnabled')) ? 1 : 0)
    if (count > 0) t.match(await frame.getAttribute('src'), /\/content$/, 'its answer is sandboxed')
    for (const inner of page.frames())
      t.equal(await inner.evaluate('document.querySelector("h1")?.textContent === "Hello"'), false)
    t.notMatch(await page.title(), /hacked/)
    // Open the URL of the file, as a link would. A browser without a viewer for PDF downloads the
    // file, and `goto` then fails.
    const id = page.url().split('/').at(-1)?.split('?')[0]
    const direct = await context.newPage()
    await direct.goto(`${s.url}/v1/projects/default/artifacts/${id}/content`).catch(() => {})
    for (const inner of direct.frames())
      t.equal(await inner.evaluate('document.querySelector("h1")?.textContent === "Hello"'), false)
    t.notMatch(await direct.title(), /hacked/)
    await direct.close()
    await page.goBack()
    await list.getByRole('link', { name: 'log.txt', exact: true }).click()
    await page.locator('.lines-number').getByText('1', { exact: true }).waitFor()
    t.ok((await page.locator('.lines-line').count()) < 200, 'only visible lines are rendered')
    await page.goBack()
    await list.getByRole('link', { name: 'a.csv', exact: true }).click()
    await page.getByRole('cell', { name: '<b>2</b>' }).waitFor()
    await page.goBack()
    await list.getByRole('link', { name: 'a.json', exact: true }).click()
    await page.getByText('2 members').or(page.getByText('2 items')).first().waitFor()
    await page.getByRole('button', { name: 'Text' }).click()
    await page.getByText('{"a":[1,{"b":2}]}').waitFor()
    t.strictSame(unexpected(faults), [])
    await page.goBack()
    await list.getByRole('link', { name: 'page.html', exact: true }).click()
    await page.frameLocator('iframe').getByRole('heading', { name: 'Hello' }).waitFor()
    t.notMatch(await page.title(), /hacked/)
    await page.getByRole('button', { name: 'Details' }).click()
    await page.getByRole('menuitem', { name: 'Share a link' }).click()
    await page.getByRole('button', { name: 'Create the link' }).click()
    const link = await page.getByRole('dialog').locator('code').textContent()
    t.equal((await fetch(String(link))).status, 200)
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: 'Details' }).click()
    await page.getByRole('menuitem', { name: 'Delete' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await page.waitForURL(/\/artifacts$/)
    await list.getByRole('link', { name: 'a.json', exact: true }).waitFor()
    await list.getByRole('link', { name: 'page.html', exact: true }).waitFor({ state: 'detached' })
    await context.close()
  })

  t.test('a reader sees and changes nothing, and axe finds nothing', async (t) => {
    const { id } = await tableOf(s)
    await insertAll(s, id, [{ number: 'A', amount: 1, address: { deep: { er: [1] } } }])
    const reader = await person(s, 'Rita', 'role_viewer')
    for (const dark of [false, true]) {
      const { context, open } = await signedIn(browser, s, {
        dark,
        bypassCSP: true,
        ...(dark && { key: reader.key }),
      })
      const page = await open(`/p/default/tables/${id}`)
      await page.setViewportSize({ width: dark ? 390 : 1280, height: 800 })
      const grid = page.getByRole('grid')
      await grid.getByText('A', { exact: true }).dblclick()
      const dialog = page.getByRole('dialog')
      if (dark) {
        t.equal(await page.getByRole('button', { name: 'Insert a row' }).count(), 0)
        t.equal(await dialog.getByLabel('number *').isDisabled(), true)
      } else {
        await grid.getByLabel('number').press('Escape')
        await page.keyboard.press('Shift+Enter')
        await dialog.getByLabel('number *').waitFor()
      }
      t.strictSame(await faultsOf(page), [], `row, dark ${dark}`)
      await page.keyboard.press('Escape')
      for (const path of [
        `/tables/${id}`,
        `/tables/${id}?tab=columns`,
        '/tables?new=1',
        '/artifacts',
      ]) {
        await page.goto(`${s.url}/p/default${path}`)
        await page.locator('.sheet, .column-line, .table, .empty').first().waitFor()
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
