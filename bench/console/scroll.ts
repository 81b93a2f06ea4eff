/**
 * Scrolling through all runs of a project: by the wheel from the first to the last and back, and by
 * dragging the scroll bar. The list loads its pages on the way. Afterwards, frames with a fixed
 * amount of work are measured for comparison.
 */
import type { CDPSession, Page } from 'playwright-core'
import { pause } from '../support/measure.ts'
import { measuring, type Signed, sizeOf, traced } from './browser.ts'
import { type Frames, framesOf, threadOf } from './trace.ts'
import { listView } from './views.ts'

/** Pixels per wheel event: more than the height of the list, so every frame shows other runs. */
const WHEEL_PX = 2400
/** Number of wheel events between two checks of the scroll position. */
const BETWEEN = 10
/** Milliseconds without any movement after which the measurement fails. */
const STALL_TIMEOUT_MS = 60_000
/** Number of mouse positions while the scroll bar is dragged in one direction. */
const MOVES = 200
/** Milliseconds between two mouse positions. */
const MOVE_MS = 16
/** Distance from the end of the scroll bar at which its thumb can be grabbed, in pixels. */
const GRAB_PX = 22
const MARK = 'bench-scroll'

/** Number of multiplications in each frame of the fixed work, which took about 1 ms in 2026. */
const FIXED_WORK = 1_500_000
const FIXED_FRAMES = 3000
/** Number of frames until V8 has compiled the fixed work. */
const WARM_UP_FRAMES = 200

/** The measurements of one pass: with the wheel, with the scroll bar, and during the fixed work. */
export interface Scrolled {
  readonly wheel: Frames
  readonly bar: Frames
  /** Frames that all do the same work. Their variation shows the influence of the machine. */
  readonly fixed: Frames
  /** Number of runs in the list at the end. */
  readonly runs: number
  /** Used bytes of the JavaScript heap with all of these runs. */
  readonly heap: number
}
interface Position {
  readonly top: number
  readonly height: number
  readonly rows: number
}
interface Box {
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
}

const positionOf = (page: Page): Promise<Position> =>
  page.evaluate(`(() => {
    const list = document.querySelector('.virtual')
    return {
      top: list.scrollTop,
      height: list.scrollHeight - list.clientHeight,
      rows: Number(list.getAttribute('aria-rowcount')),
    }
  })()`) as Promise<Position>

/**
 * Turns the wheel until the list is at its end and contains at least `runs` runs or, if `by` is
 * negative, until it is at its start.
 * @throws Error if the list does not move for a minute.
 */
async function turn(page: Page, cdp: CDPSession, box: Box, by: number, runs: number) {
  const x = box.x + box.width / 2
  const y = box.y + box.height / 2
  const type = 'mouseWheel'
  let before: Position | undefined
  let moved = performance.now()
  for (;;) {
    for (let i = 0; i < BETWEEN; i++)
      await cdp.send('Input.dispatchMouseEvent', { type, x, y, deltaX: 0, deltaY: by })
    const now = await positionOf(page)
    if (by < 0 ? now.top === 0 : now.rows >= runs && now.top >= now.height - 2) return
    if (now.top !== before?.top || now.rows !== before.rows) moved = performance.now()
    if (performance.now() - moved > STALL_TIMEOUT_MS)
      throw new Error(`the list does not move on from ${now.top} of ${now.height} pixels`)
    before = now
  }
}

/** Drags the thumb of the scroll bar from one end to the other and back. */
async function drag(
  page: Page,
  cdp: CDPSession,
  { x, y, width, height }: Box,
  moves: number,
): Promise<void> {
  const at = async (type: 'mousePressed' | 'mouseMoved' | 'mouseReleased', down: number) => {
    await cdp.send('Input.dispatchMouseEvent', {
      type,
      x: x + width - 8,
      y: y + down,
      button: 'left',
      buttons: type === 'mouseReleased' ? 0 : 1,
      clickCount: type === 'mouseMoved' ? 0 : 1,
    })
  }
  const way = height - 2 * GRAB_PX
  await at('mousePressed', GRAB_PX)
  for (let move = 1; move <= 2 * moves; move++) {
    const share = move <= moves ? move / moves : 2 - move / moves
    await at('mouseMoved', GRAB_PX + way * share)
    await pause(MOVE_MS)
    if (move !== moves) continue
    const { top, height: full } = await positionOf(page)
    if (top < full * 0.9) throw new Error(`the scroll bar moved the list to ${top} of ${full}`)
  }
  await at('mouseReleased', GRAB_PX)
}

/** Does the same work in each of many frames. */
const fixedWork = (page: Page, frames: number): Promise<void> =>
  page.evaluate(`new Promise((done) => {
    globalThis.benchFixedWork ??= () => {
      let sum = 0
      for (let i = 0; i < ${FIXED_WORK}; i++) sum = (sum + i * i) | 0
      document.documentElement.dataset.sum = sum
    }
    let left = ${frames}
    const frame = () => {
      benchFixedWork()
      if (left-- > 0) requestAnimationFrame(frame)
      else done()
    }
    frame()
  })`)

/**
 * Scrolls through a list of runs.
 * @param runs minimum number of runs in the list.
 * @param options `quick`: the scroll bar is dragged at fewer positions. `query`: filters of the
 * list, such as `?status=failed`.
 */
export async function scrolled(
  signed: Signed,
  runs: number,
  { quick = false, query = '' }: { readonly quick?: boolean; readonly query?: string } = {},
): Promise<Scrolled> {
  const context = await signed.context()
  try {
    const page = await context.newPage()
    await page.goto(`${signed.url}${listView.path}${query}`)
    await page.locator(listView.shown).first().waitFor()
    const cdp = await measuring(page)
    const box = await page.locator('.virtual').boundingBox()
    if (!box) throw new Error('the list is not visible')
    const frames = async (work: () => Promise<void>): Promise<Frames> => {
      const events = await traced(signed, page, MARK, work)
      return framesOf(events, threadOf(events, MARK))
    }
    const wheel = await frames(async () => {
      await turn(page, cdp, box, WHEEL_PX, runs)
      await turn(page, cdp, box, -WHEEL_PX, runs)
    })
    const bar = await frames(() => drag(page, cdp, box, quick ? MOVES / 4 : MOVES))
    const { rows } = await positionOf(page)
    const { heap } = await sizeOf(cdp)
    await fixedWork(page, WARM_UP_FRAMES)
    const fixed = await frames(() => fixedWork(page, quick ? FIXED_FRAMES / 10 : FIXED_FRAMES))
    return { wheel, bar, fixed, runs: rows, heap }
  } finally {
    await context.close()
  }
}
