/** The pages of runs in a browser: the list, one run, and the comparison of two runs. */
import type { Page } from 'playwright-core'
import t from 'tap'
import { service } from '../../support/service.ts'
import { faultsOf, inBrowser, untilTrue } from '../support/browser.ts'
import { signedIn } from '../support/console.ts'
import { acting, type Found, sleeping, waiting } from '../support/given.ts'
import { person } from '../support/people.ts'

const s = await service()
t.teardown(() => s.stop())

/** Returns the faults other than refused requests, which the browser logs as errors. */
const unexpected = (faults: readonly string[]): string[] =>
  faults.filter((fault) => !/status of 4\d\d/.test(fault))
const start = (name: string, spec: object, more: object = {}): Promise<Found> =>
  s.ok('run.start', {
    spec: { ...spec, run_name: { template: name } },
    ...more,
  })
const evil = '<img src=x onerror="document.title=1"> \u202Eevil 🧨'
const runPath = (run: Found): string => `/p/default/runs/${String(run['id'])}`
const line = (page: Page, name: string) => page.getByRole('row').filter({ hasText: name })

await inBrowser(t, async (browser) => {
  t.teardown(() => browser.close())
  const mouse = await signedIn(browser, s, { bypassCSP: true })

  t.test('the list is live, filtered by its address, and acts on many runs', async (t) => {
    const nap = await start('Long nap', sleeping())
    const gate = await start('At the gate', waiting('go'), { external_id: 'order-7' })
    await start(evil, sleeping('0'))
    const page = await mouse.open('/p/default/runs')
    await line(page, 'Long nap').getByText('Waiting').waitFor()
    await line(page, '<img src=x').waitFor()
    t.strictSame(await faultsOf(page), [], 'no accessibility violation')

    await start('Came later', sleeping())
    await line(page, 'Came later').waitFor()
    await s.ok('run.cancel', { id: nap['id'] })
    await line(page, 'Long nap').getByText('Cancelled').waitFor()

    await page.getByRole('button', { name: 'Waiting', exact: true }).click()
    await line(page, 'Long nap').waitFor({ state: 'detached' })
    t.match(page.url(), /status=suspended/)
    await page.getByRole('searchbox').fill('order-7')
    await page.getByText('1 run', { exact: true }).waitFor()
    await page.reload()
    await line(page, 'At the gate').waitFor()
    t.equal(await page.getByRole('searchbox').inputValue(), 'order-7')

    await page.getByTitle('Views').click()
    await page.getByRole('menuitem', { name: 'Save this view' }).click()
    await page.getByRole('textbox', { name: 'Name' }).fill('Gate')
    await page.getByRole('button', { name: 'Save this view' }).click()
    await page.getByText('The view was saved.').waitFor()
    await page.getByTitle('Views').click()
    await page.getByRole('menuitem', { name: 'All runs' }).click()
    await line(page, 'Came later').waitFor()
    await page.getByTitle('Views').click()
    await page.getByRole('menuitem', { name: 'Gate' }).click()
    await line(page, 'Came later').waitFor({ state: 'detached' })
    t.match(page.url(), /q=order-7/)

    await page.getByTitle('Act on all that match').click()
    await page.getByRole('menuitem', { name: /^Cancel/ }).click()
    await page.getByText('1 run will be affected.').waitFor()
    await page.getByRole('button', { name: 'Cancel runs' }).click()
    await page.getByText('1 run done.').waitFor()
    await page.getByRole('button', { name: 'Close' }).last().click()
    t.equal((await s.ok('run.get', { id: gate['id'] }))['status'], 'cancelled')

    await page.goto(`${s.url}/p/default/runs?queue=none`)
    await page.getByText('No run matches the filters.').waitFor()
    await page.getByRole('button', { name: 'Clear all filters' }).last().click()
    await page.getByRole('button', { name: 'Columns' }).click()
    await page.getByLabel('External id').check()
    await page.getByRole('button', { name: 'Close' }).last().click()
    await page.getByRole('columnheader', { name: 'External id' }).waitFor()
    await page.reload()
    await page.getByRole('columnheader', { name: 'External id' }).waitFor()
    await page.close()
  })

  t.test('the list works by keyboard alone', async (t) => {
    const first = await start('Keys one', sleeping())
    await start('Keys two', sleeping())
    const page = await mouse.open('/p/default/runs?q=Keys')
    await line(page, 'Keys two').waitFor()
    await page.locator('body').press('j')
    await page.locator('a:focus').filter({ hasText: 'Keys two' }).waitFor()
    await page.keyboard.press('j')
    await page.locator('a:focus').filter({ hasText: 'Keys one' }).waitFor()
    await page.keyboard.press('x')
    await page.getByText('1 run selected').waitFor()
    await page.keyboard.press('x')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Keys one' }).waitFor()
    t.ok(page.url().endsWith(String(first['id'])))
    await page.keyboard.press('s')
    await page.getByLabel('Name of the signal').waitFor()
    await page.keyboard.press('Escape')
    await page.keyboard.press('3')
    await page.getByRole('tab', { name: 'Events', selected: true }).waitFor()
    await line(page, 'run.started').waitFor()
    await page.goBack()
    await line(page, 'Keys two').waitFor()
    await page.close()
  })

  t.test('a line that is scrolled out of view gives its focus to the list', async (t) => {
    const names = Array.from({ length: 60 }, (_, n) => `Scroll ${n}.`)
    for (const name of names) await start(name, sleeping('0'))
    const page = await mouse.open('/p/default/runs?q=Scroll')
    await line(page, 'Scroll 59.').waitFor()
    await page.locator('body').press('j')
    await page.locator('a:focus').filter({ hasText: 'Scroll 59.' }).waitFor()
    const scroll = (to: string) =>
      page.evaluate(`document.querySelector('.virtual').scrollTop = ${to}`)
    await scroll('1e6')
    await line(page, 'Scroll 0.').waitFor()
    // During a long scroll step, only the visible lines are rendered. The adjacent lines are
    // rendered after the step.
    await untilTrue(
      page,
      `(() => {
        const lines = [...document.querySelectorAll('.sizer .line')]
        const places = lines.map((one) => Number(one.getAttribute('aria-rowindex')))
        return Math.max(...places) - Math.min(...places) === lines.length - 1
      })()`,
    )
    t.equal(await line(page, 'Scroll 59.').count(), 0)
    t.ok(await page.evaluate(`document.activeElement.matches('.virtual')`), 'no other run has it')
    const shown = (await page.locator('.virtual a.run-name').allTextContents()).filter((name) =>
      name.startsWith('Scroll'),
    )
    t.strictSame(shown, names.slice(0, shown.length).toReversed(), 'lines in their order')
    await scroll('0')
    await line(page, 'Scroll 59.').waitFor()
    await page.close()
  })

  t.test('a run is followed while it works, and says why it waits', async (t) => {
    const worker = await s.worker({ action_names: ['act'] })
    const run = await start('Follow me', {
      steps: [
        {
          id: 'all',
          kind: 'for_each',
          config: {
            items: ['a', 'b'],
            max_concurrency: 1,
            steps: [{ id: 'call', kind: 'action', config: { action_name: 'act' } }],
          },
        },
        { id: 'gate', kind: 'wait_for_event', config: { event_type: 'signal.paid' } },
        { id: 'gpu', kind: 'action', config: { action_name: 'train' } },
      ],
    })
    const page = await mouse.open(runPath(run))
    for (const item of ['Item 0', 'Item 1']) {
      const job = await worker.job()
      await line(page, item).waitFor()
      if (item === 'Item 1') {
        await page.getByRole('tab', { name: 'Jobs and logs' }).click()
        await page.getByText('No lines.').waitFor()
        const { id: job_id, lease_token } = job
        worker.send({ type: 'job.log', job_id, lease_token, lines: [{ text: 'printed now' }] })
        await page.getByText('printed now').waitFor()
        await page.getByRole('tab', { name: 'Timeline' }).click()
      }
      await worker.report(job, { result: { text: evil, big: 'x'.repeat(100_000) } })
    }
    await page.getByText('Step gate waits for the signal paid').waitFor()
    await line(page, 'all').getByText('Completed').waitFor({ state: 'attached' })
    t.strictSame(await faultsOf(page), [], 'no accessibility violation')

    await page.reload()
    await page.getByRole('button', { name: 'Send the signal' }).click()
    await page.getByLabel('Payload').fill('{"by":')
    await page.getByText(/This is not valid JSON/).waitFor()
    await page.getByLabel('Payload').fill('{"by":"ann"}')
    await page.getByRole('button', { name: 'Send', exact: true }).click()
    await page.getByText('The signal was sent.').waitFor()
    await page.getByText(/Step gpu waits for a worker: 1 job in queue default/).waitFor()

    await page.getByRole('treegrid').focus()
    await page.keyboard.press('End')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'gpu' }).waitFor()
    t.match(page.url(), /step=gpu/)
    await page.keyboard.press('ArrowUp')
    await page.keyboard.press('Enter')
    await page.getByText('signal_name:').first().waitFor()

    await page.getByRole('tab', { name: 'Graph' }).click()
    const node = page.getByRole('link', { name: /^gate/ })
    await node.waitFor()
    t.match(await node.textContent(), /Completed/)
    await page.getByRole('tab', { name: 'Jobs and logs' }).click()
    await line(page, 'train').waitFor()

    await page.getByRole('button', { name: 'Cancel', exact: true }).click()
    await page.getByRole('button', { name: 'Cancel the run' }).click()
    await page.getByText('Cancelled').first().waitFor()
    await page.getByRole('tab', { name: 'Input and output' }).click()
    await page.getByText('The run ended without output.').waitFor()

    const trainer = await s.worker({ action_names: ['teach'] })
    const claimed = await start('Claimed', {
      steps: [{ id: 'learn', kind: 'action', config: { action_name: 'teach' } }],
    })
    await page.goto(`${s.url}${runPath(claimed)}`)
    await page.getByText(/Step learn waits for a worker/).waitFor()
    const lesson = await trainer.job()
    await page.getByText(/Step learn is in progress at/).waitFor()
    await trainer.report(lesson)
    await line(page, 'learn').getByText('Completed').waitFor({ state: 'attached' })
    trainer.close()
    worker.close()
    await page.close()
  })

  t.test('a failed run is retried with another input, and compared', async (t) => {
    const worker = await s.worker({ action_names: ['pay'] })
    const spec = acting(
      'pay',
      { config: { action_name: 'pay', parameters: { n: '${{ input.amount }}' } } },
      { input: { amount: { type: 'integer', required: true, description: 'In cents' } } },
    )
    const run = await start('Pay', spec, { input: { amount: 1 } })
    await worker.report(await worker.job(), {
      status: 'failed',
      error_type: 'card',
      error_message: `Declined ${evil}`,
    })
    const page = await mouse.open(runPath(run))
    await page.getByText(/The run failed in step/).waitFor()
    await page.getByRole('button', { name: 'Show the step' }).click()
    await page.getByRole('heading', { name: 'call' }).waitFor()
    await page.locator('body').press('r')
    await page.getByLabel('Change the input of the run').check()
    await page.getByLabel('amount').fill('1.5')
    await page.getByRole('button', { name: 'Retry', exact: true }).last().click()
    await page
      .getByText(/input\.amount/)
      .first()
      .waitFor()
    await page.getByLabel('amount').fill('2')
    await page.getByRole('button', { name: 'Retry', exact: true }).last().click()
    await page.getByText('The run is tried again.').waitFor()
    const job = await worker.job()
    t.match(job, { spec: { parameters: { n: '2' } } })
    await worker.report(job, { result: { paid: true } })
    await page.getByText('Completed').first().waitFor()
    const bars = page.getByRole('row').filter({ hasText: 'call' }).locator('.bars')
    await bars.locator('.bar.good').waitFor()
    t.equal(await bars.locator('.bar.bad').count(), 1, 'each attempt has a bar')
    await page.getByText(/without .+ between attempts/).waitFor()

    await page.getByRole('button', { name: 'More actions' }).click()
    await page.getByRole('menuitem', { name: 'Run again' }).click()
    await page.getByLabel('amount').fill('3')
    await page.getByRole('button', { name: 'Start the run' }).click()
    await page.waitForURL((url) => !url.href.includes(String(run['id'])))
    await worker.report(await worker.job(), { result: { paid: true } })
    await page.getByText('Completed').first().waitFor()

    await page.getByRole('button', { name: 'More actions' }).click()
    await page.getByRole('menuitem', { name: 'Compare with another run' }).click()
    await page.getByLabel('Id of the other run').fill(String(run['id']))
    await page.getByRole('button', { name: 'Compare', exact: true }).click()
    await page.getByRole('rowheader', { name: 'amount' }).waitFor()
    await page.getByText('1 difference').waitFor()
    t.strictSame(await faultsOf(page), [], 'no accessibility violation')
    worker.close()
    await page.close()
  })

  t.test('a viewer sees runs and is offered no action; the dark theme is accessible', async (t) => {
    const viewer = await person(s, 'Vera', 'role_viewer')
    const dark = await signedIn(browser, s, { key: viewer.key, dark: true, bypassCSP: true })
    const run = await start('Look only', waiting('go'))
    const page = await dark.open('/p/default/runs?q=Look')
    await line(page, 'Look only').waitFor()
    t.equal(await page.getByRole('checkbox').count(), 0)
    t.equal(await page.getByTitle('Act on all that match').count(), 0)
    t.strictSame(await faultsOf(page), [])
    await page.getByRole('link', { name: 'Look only' }).click()
    await page.getByText('Step gate waits for the signal go').waitFor()
    t.equal(await page.getByRole('button', { name: 'Cancel' }).count(), 0)
    t.equal(await page.getByRole('button', { name: 'Send the signal' }).count(), 0)
    for (const tab of ['Graph', 'Events', 'Details', 'Timeline']) {
      await page.getByRole('tab', { name: tab }).click()
      await page.locator('.skeleton').waitFor({ state: 'detached' })
      t.strictSame(await faultsOf(page), [], tab)
    }
    const workflow = await s.ok('workflow.create', { name: 'By name', spec: sleeping('0s') })
    const named = await s.ok('run.start', { definition_id: workflow['id'], input: {} })
    await page.goto(`${s.url}${runPath(named)}?tab=details`)
    const link = page.getByRole('tabpanel').getByRole('link', { name: 'By name' })
    await link.waitFor()
    t.equal(await link.getAttribute('title'), workflow['id'])
    t.match(await link.getAttribute('href'), new RegExp(`/workflows/${String(workflow['id'])}$`))
    await page.goto(`${s.url}/p/default/runs/run_missing`)
    await page.getByText(/does not exist|no such|not found/i).waitFor()
    t.strictSame(unexpected(dark.faults), [])
    await s.ok('run.cancel', { id: run['id'] })
    await dark.context.close()
  })

  t.test('the values of a chart are a live table while it is open', async (t) => {
    const page = await mouse.open('/p/default')
    const links = page.locator('.figures a[href*="ended_after="]')
    t.equal(await links.count(), 2, 'the counts of the period link to its runs')
    const chart = page.locator('.chart').first()
    await chart.locator('canvas').waitFor()
    t.equal(await chart.locator('tr').count(), 0, 'a closed table has no elements')
    await chart.getByText('Show as a table').click()
    await chart.getByRole('columnheader', { name: 'Started' }).waitFor()
    const started = `[...document.querySelectorAll('.chart td:nth-child(2)')]
      .reduce((sum, cell) => sum + Number(cell.textContent.replace(/\\D/g, '')), 0)`
    const before = Number(await page.evaluate(started))
    t.ok(before > 0)
    await start('One more', sleeping('0s'))
    await untilTrue(page, `${started} > ${before}`)
    t.strictSame(await faultsOf(page), [])
    await page.close()
  })

  t.test('no page has a fault of its own', async (t) => {
    t.strictSame(unexpected(mouse.faults), [])
  })
})
