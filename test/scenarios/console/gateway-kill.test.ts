/**
 * The gateway of a console with several open tabs is killed and restarted, and later replaced by
 * another version. The tabs report the lost connection, reconnect, and show everything once. Drafts
 * and positions are kept. Skipped without Chromium.
 */
import type { Browser, Page } from 'playwright-core'
import t from 'tap'
import { testWorker } from '../../support/service.ts'
import { inBrowser, onElement } from '../support/browser.ts'
import { signedIn } from '../support/console.ts'
import { memberOf, until } from '../support/given.ts'
import { portsFor, processes } from '../support/processes.ts'
import { answer, text } from '../support/talk.ts'

type Json = Readonly<Record<string, unknown>>
t.setTimeout(240_000)
const slow = { timeout: 120_000 }
await inBrowser(t, tryOut)

const ITEMS = 4
const SAID = 'one two three four five six seven eight'.split(' ')
const isWork = (job: Json): boolean => memberOf(job, 'spec', 'request') === undefined
const lost = (page: Page) => page.getByText('Connection lost. Trying again…')

async function tryOut(browser: Browser): Promise<void> {
  const it = await processes({ BATON_WORKER_LEASE: '60s', BATON_STREAM_IDLE: '1' })
  t.teardown(async () => {
    await browser.close()
    await it.stop()
  })
  const ports = await portsFor(2)
  const [url = '', other = ''] = ports.map((port) => `http://127.0.0.1:${port}`)
  await it.node('back', 'gateway,shards,views,executor', ports[1])
  let front = await it.node('front', 'gateway', ports[0])
  /** Calls the API through the gateway that keeps running. */
  const call = async (method: string, path: string, body?: Json): Promise<Json> => {
    const given = await fetch(`${other}/v1/projects/default${path}`, {
      method,
      headers: { authorization: `Bearer ${it.key}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    })
    if (!given.ok) throw new Error(`${path}: ${given.status} ${await given.text()}`)
    return (await given.json()) as Json
  }
  const itemsOf = async (path: string): Promise<readonly Json[]> =>
    (await call('GET', path))['items'] as readonly Json[]
  const agent = await call('POST', '/agents', {
    name: 'poet',
    model_route: { mode: 'worker', provider: 'local', model: 'poet' },
  })
  const worker = await testWorker(other, it.key, 'default', {
    models: [{ provider: 'local', model: 'poet' }],
    action_names: ['act'],
  })
  t.teardown(() => worker.close())
  const { context, open, faults } = await signedIn(browser, { url, key: it.key }, { height: 3200 })
  context.setDefaultTimeout(30_000)

  t.test('tabs outlive the gateway: nothing is missed, nothing is shown twice', slow, async (t) => {
    const channel = await call('POST', '/channels', { name: 'news', member_ids: [] })
    const send = (content: string) =>
      call('POST', `/channels/${channel['id']}/messages`, { content })
    for (let count = 1; count <= 60; count++) await send(`Early ${count}`)
    const run = await call('POST', '/runs', {
      spec: {
        run_name: { template: 'Long work' },
        steps: [
          {
            id: 'all',
            kind: 'for_each',
            config: {
              items: Array.from({ length: ITEMS }, (_, index) => index),
              max_concurrency: 1,
              steps: [{ id: 'act', kind: 'action', config: { action_name: 'act' } }],
            },
          },
        ],
      },
    })
    const ack = await call('POST', '/agents/invoke', {
      agent_ref: { id: agent['id'] },
      input: { content: [text('a poem')] },
    })
    const session = (ack['session'] as { id: string }).id
    const jobs = [await worker.job(), await worker.job()]
    const poem = jobs.find((job) => !isWork(job)) as Json
    const work = async (count: number): Promise<void> => {
      for (let done = 0; done < count; done++) {
        const first = jobs.findIndex(isWork)
        const [job] = first >= 0 ? jobs.splice(first, 1) : [await worker.job()]
        await worker.report(job as Json, { result: {} })
      }
    }
    let spoken = 0
    const say = (count: number): void => {
      for (const word of SAID.slice(spoken, spoken + count))
        worker.send({
          type: 'generation.delta',
          job_id: poem['id'],
          lease_token: poem['lease_token'],
          sequence: ++spoken,
          delta: { text: `${word} ` },
        })
    }
    const events = await open(`/p/default/runs/${run['id']}?tab=events&order=asc`)
    const runs = await open('/p/default/runs')
    const talk = await open(`/p/default/sessions/${session}`)
    const news = await open(`/p/default/channels/${channel['id']}`)
    await news.setViewportSize({ width: 1280, height: 700 })
    const home = await open('/p/default')
    const tabs = [events, runs, talk, news, home]
    const row = (name: string) => runs.getByRole('row').filter({ hasText: name })
    await row('Long work').waitFor()
    const writing = talk.locator('.talk-message.assistant .markdown')
    say(2)
    await work(1)
    await writing.getByText('one two').waitFor()
    await events
      .getByRole('link', { name: 'action.completed' })
      .or(events.getByRole('row', { name: /action\.completed/ }))
      .first()
      .waitFor()
    await talk.getByLabel('Message to poet').fill('A draft for the poet')
    await news.getByText('Early 60').waitFor()
    await news.getByRole('textbox', { name: /^Message to/ }).fill('A draft for the channel')
    const timeline = news.locator('.timeline')
    const place = await onElement(timeline, '(area) => (area.scrollTop = 300, area.scrollTop)')

    await front.kill()
    for (const tab of tabs) await lost(tab).waitFor()
    say(3)
    await work(2)
    await call('POST', '/runs', {
      spec: {
        run_name: { template: 'Meanwhile' },
        steps: [{ id: 'act', kind: 'action', config: { action_name: 'later' } }],
      },
    })
    for (const word of ['Late one', 'Late two']) await send(word)
    // A page whose module has not been loaded yet is opened while no gateway is running.
    await home.getByRole('link', { name: 'Tables', exact: true }).click()
    front = await it.node('front', 'gateway', ports[0])
    for (const tab of tabs) await lost(tab).waitFor({ state: 'detached' })
    say(3)
    await worker.report(poem, { status: 'completed', ...answer([text(SAID.join(' '))]) })
    await work(ITEMS - 3)
    await send('Late three')
    await until(
      () => call('GET', `/runs/${run['id']}`),
      ({ status }) => status === 'completed',
    )

    const recorded = (await itemsOf(`/runs/${run['id']}/events?limit=200`)).map(({ sequence }) =>
      String(sequence),
    )
    const shown = `[...document.querySelectorAll('.virtual a.whole')]
      .map((line) => new URL(line.href).searchParams.get('event'))`
    await events.getByText(`${recorded.length} events`, { exact: true }).waitFor()
    t.strictSame(await events.evaluate(shown), recorded, 'every event once and in order')
    await row('Long work').getByText('Completed').waitFor()
    await row('Meanwhile').waitFor()
    t.equal(await row('Meanwhile').count(), 1)
    t.equal(await row('Long work').count(), 1)
    await talk.locator('.turn-end').waitFor()
    t.equal((await writing.innerText()).trim(), SAID.join(' '), 'every word once')
    t.equal(await talk.getByLabel('Message to poet').inputValue(), 'A draft for the poet')
    await news.getByRole('button', { name: '3 new messages below' }).waitFor()
    t.equal(await onElement(timeline, '(area) => area.scrollTop'), place)
    await onElement(timeline, '(area) => { area.scrollTop = area.scrollHeight }')
    await news.getByText('Late three').waitFor()
    const posts = `[...document.querySelectorAll('.timeline .post .markdown')]
      .map((one) => one.textContent)`
    t.strictSame(await news.evaluate(posts), [
      ...Array.from({ length: 60 }, (_, index) => `Early ${index + 1}`),
      'Late one',
      'Late two',
      'Late three',
    ])
    t.equal(
      await news.getByRole('textbox', { name: /^Message to/ }).inputValue(),
      'A draft for the channel',
    )
    await home.getByText('There are no tables yet').waitFor()
    t.match(home.url(), /\/p\/default\/tables$/)
    for (const tab of tabs) await tab.close()
  })

  t.test(
    'a page of an old version reloads once, and says when that does not help',
    slow,
    async (t) => {
      const scout = await open('/p/default')
      await scout.locator('canvas').first().waitFor()
      const parts = new Set<string>()
      scout.on('request', (request) => {
        if (/\/console\/part-/.test(request.url())) parts.add(request.url())
      })
      await scout.getByRole('link', { name: 'Webhooks', exact: true }).click()
      await scout.getByRole('heading', { name: 'Webhooks' }).waitFor()
      await scout.close()
      t.ok(parts.size > 0)

      const [channel] = await itemsOf('/channels')
      const page = await open(`/p/default/channels/${channel?.['id']}`)
      const field = page.getByRole('textbox', { name: /^Message to/ })
      t.equal(await field.inputValue(), 'A draft for the channel')
      let documents = 0
      let isOld = true
      await page.route('**/*', (route) => {
        const request = route.request()
        if (request.isNavigationRequest()) {
          documents++
          isOld = isOld && documents === 0
        }
        return isOld && parts.has(request.url()) ? route.fulfill({ status: 404 }) : route.continue()
      })
      await page.getByRole('link', { name: 'Webhooks', exact: true }).click()
      await page.getByRole('heading', { name: 'Webhooks' }).waitFor()
      t.equal(documents, 1, 'one reload')
      t.match(page.url(), /\/p\/default\/webhooks$/)
      await page.goBack()
      t.equal(await field.inputValue(), 'A draft for the channel')

      // This time, the module of the page is still missing after the reload.
      await page.unroute('**/*')
      await page.goto(`${url}/p/default`)
      documents = 0
      await page.route('**/*', (route) => {
        if (route.request().isNavigationRequest()) documents++
        return parts.has(route.request().url()) ? route.fulfill({ status: 404 }) : route.continue()
      })
      await page.getByRole('link', { name: 'Webhooks', exact: true }).click()
      const notice = page.getByText('The service was updated. Reload the page to continue.')
      await notice.waitFor()
      t.equal(documents, 1, 'one reload')
      await page.getByRole('link', { name: 'Home', exact: true }).click()
      await page.getByRole('heading', { name: 'Home' }).waitFor()
      await page.getByRole('link', { name: 'Webhooks', exact: true }).click()
      await notice.waitFor()
      t.equal(documents, 1, 'no further reload')
      await page.close()
    },
  )

  t.test('the pages have no fault of their own', async (t) => {
    // The browser logs unanswered requests and modules that fail to load. Both are expected here.
    t.strictSame(
      faults.filter((fault) => !/Failed to load resource|Failed to fetch|MissingPart/.test(fault)),
      [],
    )
    await context.close()
  })
}
