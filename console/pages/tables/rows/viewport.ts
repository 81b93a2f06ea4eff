/** The visible part of the grid, and scrolling to a cell. */
import type { RefObject } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { onScrollOrResize } from '../../../design/virtual/measured.ts'
import { NUMBERS_PX } from './grid-columns.ts'

/** Height of a row in pixels. The header has the same height and stays in place. */
export const LINE_PX = 34

/** The visible part of the grid in pixels. The header covers its first line. */
export interface Viewport {
  readonly top: number
  readonly left: number
  readonly height: number
  readonly width: number
}

/** Returns the visible part of the grid. It is updated while the grid is scrolled or resized. */
export function useViewport(frame: RefObject<HTMLElement | null>): Viewport {
  const [viewport, setViewport] = useState({ top: 0, left: 0, height: 600, width: 1200 })
  useEffect(() => {
    const element = frame.current
    if (!element) return
    const measure = (): void =>
      setViewport({
        top: element.scrollTop,
        left: element.scrollLeft,
        height: element.clientHeight,
        width: element.clientWidth,
      })
    return onScrollOrResize(element, measure)
  }, [])
  return viewport
}

/** Returns the number of rows that are visible at the same time, less one. */
export const rowsPerScreen = ({ height }: Viewport): number =>
  Math.max(1, Math.floor((height - LINE_PX) / LINE_PX) - 1)

/** Scrolls vertically so that the header does not cover a row. */
export function revealRow(element: HTMLElement, row: number): void {
  const top = row * LINE_PX
  const visible = element.clientHeight - LINE_PX
  if (top < element.scrollTop) element.scrollTop = top
  else if (top + LINE_PX > element.scrollTop + visible) element.scrollTop = top + LINE_PX - visible
}
/** Scrolls horizontally so that the row numbers do not cover a column. */
export function revealColumn(
  element: HTMLElement,
  [left, right]: readonly [left: number, right: number],
): void {
  const start = left - NUMBERS_PX
  if (start < element.scrollLeft) element.scrollLeft = start
  else if (right > element.scrollLeft + element.clientWidth)
    element.scrollLeft = Math.min(start, right - element.clientWidth)
}
