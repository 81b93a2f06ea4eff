/**
 * Follows the scroll position of an element.
 *
 * Invariant: nothing here refers to elements that a component returns. Each element refers to its
 * neighbours, so one reference would keep every element that was ever shown in memory.
 */
import type { RefObject } from 'preact'
import { useEffect, useMemo, useState } from 'preact/hooks'
import { onScrollOrResize } from './measured.ts'

/** The visible part of an element's content, in pixels. */
interface View {
  readonly scrolled: number
  readonly height: number
  /** Signed distance of the last scroll step; 0 after scrolling has ended (`renderSettled`). */
  readonly moved: number
}
/** The scroll position of an element, and functions that re-render its component. */
interface Scrolling {
  readonly view: View
  /** Re-renders the component in the next frame, unless a scroll step does so first. */
  readonly renderNext: () => void
  /** Re-renders the component, with `moved` set to 0, when scrolling has ended. */
  readonly renderSettled: () => void
}

/** Milliseconds without a scroll step after which scrolling has ended. */
const SETTLED_MS = 100

/** Returns the scroll position of an element, and re-renders the component after each change. */
export function useScrolling(element: RefObject<HTMLElement | null>): Scrolling {
  const [view, setView] = useState<View>({ scrolled: 0, height: 800, moved: 0 })
  const { cancel, renderNext, renderSettled } = useMemo(() => {
    let frame = 0
    let timer: ReturnType<typeof setTimeout> | undefined
    return {
      cancel: (): void => {
        cancelAnimationFrame(frame)
        clearTimeout(timer)
      },
      renderNext: (): void => {
        cancelAnimationFrame(frame)
        // If a scroll event caused the render, the outer callback may still run in the current
        // frame. The component is therefore re-rendered by the inner one.
        frame = requestAnimationFrame(() => {
          frame = requestAnimationFrame(() => setView((before) => ({ ...before })))
        })
      },
      renderSettled: (): void => {
        clearTimeout(timer)
        timer = setTimeout(() => setView((before) => ({ ...before, moved: 0 })), SETTLED_MS)
      },
    }
  }, [])
  useEffect(() => {
    const { current: scroller } = element
    if (!scroller) return
    const measure = (): void => {
      cancel()
      const { scrollTop: scrolled, clientHeight: height } = scroller
      setView((before) => ({ scrolled, height, moved: scrolled - before.scrolled }))
    }
    const end = onScrollOrResize(scroller, measure)
    measure()
    return () => {
      cancel()
      end()
    }
  }, [])
  return { view, renderNext, renderSettled }
}
