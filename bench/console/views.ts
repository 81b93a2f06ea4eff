/**
 * Measures the time until a page is usable: from the start of the navigation until the page shows
 * its data, and until it has reacted to an immediate mouse click.
 */
import type { BrowserContext, Page } from 'playwright-core'
import { MAX_WAIT_MS, type Signed } from './browser.ts'

/** A page, and how to recognize its states. All but `path` are CSS selectors. */
export interface View {
  readonly path: string
  /** An element that exists only when the page shows its data. */
  readonly shown: string
  /** The element that is clicked. */
  readonly control: string
  /** An element that exists only after the click. */
  readonly reaction: string
}
const project = '/p/default'
/** The home page. `listView` is the list of runs, and `runView` is the timeline of a run. */
export const homeView: View = {
  path: project,
  shown: '.content:has(.figure strong) .recent li',
  control: '.top button[aria-keyshortcuts]',
  reaction: 'dialog[open]',
}
export const listView: View = {
  path: `${project}/runs`,
  shown: '.virtual .sizer .line .run-name',
  control: '.virtual .sizer .line input',
  reaction: '.selection',
}
const runPath = (id: string): string => `${project}/runs/${id}`
export const runView = (id: string): View => ({
  path: runPath(id),
  shown: '.waterfall .sizer .waterfall-line',
  control: '.waterfall .sizer a.whole',
  reaction: '.waterfall-line.selected',
})

/**
 * The times at which a page showed its data and reacted, in milliseconds since the start of the
 * navigation.
 */
export interface Usable {
  readonly shown: number
  readonly reacted: number
}

/**
 * Returns a script that checks in each frame whether the page shows its data and whether it has
 * reacted. For each of the two states, the script calls `benchSaid` after the first frame with that
 * state has been presented.
 */
const probe = ({ shown, control, reaction }: View): string => `(() => {
  let step = 'shown'
  const says = { shown: ${JSON.stringify(shown)}, reacted: ${JSON.stringify(reaction)} }
  const say = (name) => {
    const { port1, port2 } = new MessageChannel()
    port1.onmessage = () => {
      const at = performance.now()
      const { x = 0, y = 0, width = 0, height = 0 } =
        document.querySelector(${JSON.stringify(control)})?.getBoundingClientRect() ?? {}
      benchSaid(JSON.stringify({ name, at, x: x + width / 2, y: y + height / 2 }))
    }
    port2.postMessage(0)
  }
  const look = () => {
    if (document.querySelector(says[step])) {
      say(step)
      if (step === 'reacted') return
      step = 'reacted'
    }
    requestAnimationFrame(look)
  }
  requestAnimationFrame(look)
})()`

interface Said {
  readonly name: keyof Usable
  readonly at: number
  readonly x: number
  readonly y: number
}

/** Opens a view in a new page, clicks as soon as it shows its data, and closes the page. */
async function firstView(context: BrowserContext, url: string, view: View): Promise<Usable> {
  const page = await context.newPage()
  const cdp = await context.newCDPSession(page)
  await cdp.send('Page.enable')
  await cdp.send('Runtime.enable')
  await cdp.send('Runtime.addBinding', { name: 'benchSaid' })
  await cdp.send('Page.addScriptToEvaluateOnNewDocument', { source: probe(view) })
  const times: Partial<Record<keyof Usable, number>> = {}
  let late: NodeJS.Timeout | undefined
  const done = new Promise<Usable>((resolve, reject) => {
    late = setTimeout(() => reject(new Error(`${view.path} is not usable`)), MAX_WAIT_MS)
    cdp.on('Runtime.bindingCalled', ({ payload }) => {
      const { name, at, x, y } = JSON.parse(payload) as Said
      times[name] = at
      const { shown, reacted } = times
      if (shown !== undefined && reacted !== undefined) return resolve({ shown, reacted })
      for (const type of ['mousePressed', 'mouseReleased'] as const)
        cdp
          .send('Input.dispatchMouseEvent', { type, x, y, button: 'left', clickCount: 1 })
          .catch(reject)
    })
  })
  try {
    await page.goto(`${url}${view.path}`, { waitUntil: 'commit' })
    return await done
  } finally {
    clearTimeout(late)
    await page.close()
  }
}

/**
 * Loads a view `count` times and returns the times. Each cold load has a new context with an empty
 * cache. Warm loads share a context whose cache was filled beforehand.
 */
export async function loads(
  signed: Signed,
  view: View,
  cache: 'cold' | 'warm',
  count: number,
): Promise<Usable[]> {
  const times: Usable[] = []
  let context = await signed.context()
  if (cache === 'warm') await firstView(context, signed.url, view)
  for (let i = 0; i < count; i++) {
    if (cache === 'cold' && i > 0) {
      await context.close()
      context = await signed.context()
    }
    times.push(await firstView(context, signed.url, view))
  }
  await context.close()
  return times
}

/**
 * Opens a run by clicking it in the list, once as a warm-up and then `count` times. Returns the
 * times until the run is shown.
 */
export async function opened(signed: Signed, id: string, count: number): Promise<number[]> {
  const context = await signed.context()
  const times: number[] = []
  for (let i = 0; i <= count; i++) {
    const page = await context.newPage()
    await page.goto(`${signed.url}${listView.path}`)
    const link = page.locator(`a.run-name[href$="${id}"]`)
    await link.waitFor()
    const shown = untilShown(page, runView(id).shown)
    await link.click()
    const time = await shown
    // The first visit only fills the cache of the context.
    if (i > 0) times.push(time)
    await page.close()
  }
  await context.close()
  return times
}
/** Returns the time from the next click until an element exists and is presented. */
const untilShown = (page: Page, selector: string): Promise<number> =>
  page.evaluate(`new Promise((done) => {
    addEventListener('click', ({ timeStamp }) => {
      const look = () => {
        if (!document.querySelector(${JSON.stringify(selector)})) return requestAnimationFrame(look)
        const { port1, port2 } = new MessageChannel()
        port1.onmessage = () => done(performance.now() - timeStamp)
        port2.postMessage(0)
      }
      requestAnimationFrame(look)
    }, { capture: true, once: true })
  })`) as Promise<number>
