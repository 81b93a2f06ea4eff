/**
 * Measures the frames while all runs of a project are scrolled: with the wheel from the first run
 * to the last and back, and by dragging the scroll bar. The list loads its pages while it is
 * scrolled.
 */
import type { CDPSession, Page } from 'playwright-core'
import { pause } from '../support/measure.ts'
import { measuring, type Signed, sizeOf, traced } from './browser.ts'
import { greatestByPlace, type Stretch, traceTime } from './places.ts'
import { type Frames, framesOf, threadOf } from './trace.ts'
import { listView } from './views.ts'

/** Pixels per wheel event: more than the height of the list, so every frame shows other runs. */
const WHEEL_PX = 2400
/** Number of wheel events, or of mouse positions, in a part of the scroll path. */
export const EVENTS_PER_PART = 10
/** Milliseconds without any movement after which the measurement fails. */
const STALL_TIMEOUT_MS = 60_000
/** Number of mouse positions while the scroll bar is dragged in one direction. */
const MOVES = 200
/** Milliseconds between two mouse positions. */
const MOVE_MS = 16
/** Distance from the end of the scroll bar at which its thumb can be grabbed, in pixels. */
const GRAB_PX = 22
const MARK = 'bench-scroll'

/** The frames of a scroll, and the greatest processor time of a frame at each place. */
interface Way extends Frames {
  readonly places: ReadonlyMap<string, number>
}
/** The measurements of one pass: with the wheel and with the scroll bar. */
export interface Scrolled {
  readonly wheel: Way
  readonly bar: Way
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
 * negative, until it is at its start. Adds the parts of the scroll path to `way`.
 * @throws Error if the list does not move for a minute.
 */
async function turn(
  page: Page,
  cdp: CDPSession,
  box: Box,
  by: number,
  runs: number,
  way: Stretch[],
): Promise<void> {
  const x = box.x + box.width / 2
  const y = box.y + box.height / 2
  const type = 'mouseWheel'
  let before: Position | undefined
  let moved = performance.now()
  for (;;) {
    for (let i = 0; i < EVENTS_PER_PART; i++)
      await cdp.send('Input.dispatchMouseEvent', { type, x, y, deltaX: 0, deltaY: by })
    const now = await positionOf(page)
    way.push({
      until: traceTime(),
      place: `${by}: ${Math.round(now.top / (EVENTS_PER_PART * WHEEL_PX))}`,
    })
    if (by < 0 ? now.top === 0 : now.rows >= runs && now.top >= now.height - 2) return
    if (now.top !== before?.top || now.rows !== before.rows) moved = performance.now()
    if (performance.now() - moved > STALL_TIMEOUT_MS)
      throw new Error(`the list does not move on from ${now.top} of ${now.height} pixels`)
    before = now
  }
}

/**
 * Drags the thumb of the scroll bar from one end to the other and back. Adds the parts of the
 * scroll path to `way`.
 */
async function drag(
  page: Page,
  cdp: CDPSession,
  { x, y, width, height }: Box,
  moves: number,
  way: Stretch[],
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
  const distance = height - 2 * GRAB_PX
  await at('mousePressed', GRAB_PX)
  for (let move = 1; move <= 2 * moves; move++) {
    const share = move <= moves ? move / moves : 2 - move / moves
    await at('mouseMoved', GRAB_PX + distance * share)
    await pause(MOVE_MS)
    way.push({ until: traceTime(), place: `${Math.floor(move / EVENTS_PER_PART)}` })
    if (move !== moves) continue
    const { top, height: full } = await positionOf(page)
    if (top < full * 0.9) throw new Error(`the scroll bar moved the list to ${top} of ${full}`)
  }
  await at('mouseReleased', GRAB_PX)
}

/**
 * Measures scrolling through a list of runs.
 * @param runs minimum number of runs in the list.
 * @param options `quick`: drags the scroll bar in fewer steps. `query`: filters of the list, such
 * as `?status=failed`.
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
    const measured = async (work: (way: Stretch[]) => Promise<void>): Promise<Way> => {
      const way: Stretch[] = []
      const events = await traced(signed, page, MARK, () => work(way))
      const frames = framesOf(events, threadOf(events, MARK))
      return { ...frames, places: greatestByPlace(frames, way) }
    }
    const wheel = await measured(async (way) => {
      await turn(page, cdp, box, WHEEL_PX, runs, way)
      await turn(page, cdp, box, -WHEEL_PX, runs, way)
    })
    const bar = await measured((way) => drag(page, cdp, box, quick ? MOVES / 4 : MOVES, way))
    const { rows } = await positionOf(page)
    const { heap } = await sizeOf(cdp)
    return { wheel, bar, runs: rows, heap }
  } finally {
    await context.close()
  }
}
