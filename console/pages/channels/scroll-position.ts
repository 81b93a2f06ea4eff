/**
 * Keeps the scroll position of a list that grows at both ends. At the bottom, the list follows its
 * end. Elsewhere, the visible elements keep their position.
 */
import type { RefObject } from 'preact'
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'

/** Distance from the end within which the list counts as scrolled to the end. */
const NEAR_END_PX = 40

/** The scroll position before a change. `top` is the offset in pixels of the element `anchor`. */
interface ScrollPosition {
  atBottom: boolean
  anchor: string | undefined
  top: number
}
interface KeptPosition {
  /** The scroll area. */
  readonly area: RefObject<HTMLDivElement | null>
  /** The list in the area. Its elements with an id are anchors. */
  readonly content: RefObject<HTMLOListElement | null>
  readonly held: { current: ScrollPosition }
  /** Notes the current position. */
  readonly measure: () => void
  /** Returns to the noted position. */
  readonly restore: () => void
}

/**
 * Restores the position after each change of `lines`, and when the area or the list is resized.
 * @param shown whether the list is shown.
 */
export function useScrollPosition(lines: unknown, shown: boolean): KeptPosition {
  const area = useRef<HTMLDivElement>(null)
  const content = useRef<HTMLOListElement>(null)
  const held = useRef<ScrollPosition>({ atBottom: true, anchor: undefined, top: 0 })
  const measure = (): void => {
    const element = area.current
    if (!element) return
    const { scrollTop, scrollHeight, clientHeight } = element
    const { top } = element.getBoundingClientRect()
    let anchor: Element | undefined
    for (const one of content.current?.children ?? [])
      if (one.id !== '' && one.getBoundingClientRect().bottom > top) {
        anchor = one
        break
      }
    held.current = {
      atBottom: scrollTop + clientHeight >= scrollHeight - NEAR_END_PX,
      anchor: anchor?.id,
      top: (anchor?.getBoundingClientRect().top ?? top) - top,
    }
  }
  const restore = (): void => {
    const element = area.current
    if (!element) return
    const { atBottom, anchor, top } = held.current
    if (atBottom) element.scrollTop = element.scrollHeight
    else {
      const kept = anchor === undefined ? null : document.getElementById(anchor)
      if (kept)
        element.scrollTop +=
          kept.getBoundingClientRect().top - element.getBoundingClientRect().top - top
    }
  }
  useLayoutEffect(restore, [lines])
  useEffect(() => {
    const observer = new ResizeObserver(() => restore())
    if (content.current) observer.observe(content.current)
    if (area.current) observer.observe(area.current)
    return () => observer.disconnect()
  }, [shown])
  return { area, content, held, measure, restore }
}
