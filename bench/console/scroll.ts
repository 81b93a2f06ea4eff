/**
 * Scrolling through all runs of a project: by the wheel from the first to the last and back, and by
 * dragging the scroll bar. The list loads its pages on the way.
 */
import type { CDPSession, Page } from 'playwright-core'
import { pause } from '../support/measure.ts'
import { measuring, type Signed, sizeOf, traced } from './browser.ts'
import { type Frames, framesOf, threadOf } from './trace.ts'
import { listView } from './views.ts'

/** Pixels per event of the wheel: more than the list is high, so each frame shows other runs. */
const TURN = 2400
/** Events of the wheel between two looks at the position. */
const BETWEEN = 20
/** Looks without a change after which the end is reached, and the pause between them. */
const [STILL, LOOK_MS] = [10, 200]
/** Positions of the mouse while the scroll bar is dragged, and the time between them. */
const [MOVES, MOVE_MS] = [200, 16]
/** Distance from the end of the scroll bar at which its thumb can be held, in pixels. */
const HOLD = 22
const MARK = 'bench-scroll'

/** What was measured. */
export interface Scrolled {
  readonly wheel: Frames
  readonly bar: Frames
  /** Number of runs in the list at the end. */
  readonly runs: number
  /** Bytes of the heap of scripts with all of them. */
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

/** Turns the wheel until the list no longer moves or grows. */
async function turn(page: Page, cdp: CDPSession, box: Box, by: number): Promise<void> {
  const x = box.x + box.width / 2
  const y = box.y + box.height / 2
  let before: Position | undefined
  for (let still = 0; still < STILL; ) {
    for (let i = 0; i < BETWEEN; i++)
      await cdp.send('Input.dispatchMouseEvent', {
        type: 'mouseWheel',
        x,
        y,
        deltaX: 0,
        deltaY: by,
      })
    const now = await positionOf(page)
    const moved = now.top !== before?.top || now.rows !== before.rows
    still = moved ? 0 : still + 1
    if (by < 0 && now.top === 0) return
    before = now
    if (!moved) await pause(LOOK_MS)
  }
}

/** Drags the thumb of the scroll bar from one end to the other and back. */
async function drag(page: Page, cdp: CDPSession, { x, y, width, height }: Box): Promise<void> {
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
  const way = height - 2 * HOLD
  await at('mousePressed', HOLD)
  for (let move = 1; move <= 2 * MOVES; move++) {
    const share = move <= MOVES ? move / MOVES : 2 - move / MOVES
    await at('mouseMoved', HOLD + way * share)
    await pause(MOVE_MS)
    if (move !== MOVES) continue
    const { top, height: full } = await positionOf(page)
    if (top < full * 0.9) throw new Error(`the scroll bar moved the list to ${top} of ${full}`)
  }
  await at('mouseReleased', HOLD)
}

/** Scrolls through the list of runs. */
export async function scrolled(signed: Signed): Promise<Scrolled> {
  const context = await signed.context()
  try {
    const page = await context.newPage()
    await page.goto(`${signed.url}${listView.path}`)
    await page.locator(listView.shown).first().waitFor()
    const cdp = await measuring(page)
    const box = await page.locator('.virtual').boundingBox()
    if (!box) throw new Error('the list is not visible')
    const frames = async (work: () => Promise<void>): Promise<Frames> => {
      const events = await traced(signed, page, MARK, work)
      return framesOf(events, threadOf(events, MARK))
    }
    const wheel = await frames(async () => {
      await turn(page, cdp, box, TURN)
      await turn(page, cdp, box, -TURN)
    })
    const bar = await frames(() => drag(page, cdp, box))
    const { rows } = await positionOf(page)
    return { wheel, bar, runs: rows, heap: (await sizeOf(cdp)).heap }
  } finally {
    await context.close()
  }
}
