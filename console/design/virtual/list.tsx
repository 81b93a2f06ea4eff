/**
 * Virtual lists: only the visible lines and a few around them are in the document. All lines have
 * one height, so an index determines a position.
 */
import { type ComponentChildren, createRef } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { Sequence } from '../../api/growing.ts'
import { Pure } from '../pure.ts'
import { type Slots, slotsOf } from './slots.ts'
import { visibleRange } from './visible-range.ts'

/** Milliseconds until a line that was scrolled into view has been rendered. */
const FOCUS_MS = 50
/** Browsers limit the height of an element; beyond this, positions are scaled. */
const TALLEST = 8_000_000

/** The content of a line: its cells, and the URL to which the line links. */
interface LineContent {
  readonly cells: readonly ComponentChildren[]
  readonly href?: string
  readonly selected?: boolean
}

/**
 * A list that renders only the lines near its visible range.
 * @param props.line height of a line in pixels; `columns` is a value of `grid-template-columns`.
 */
export function VirtualList<T>({
  items,
  line,
  columns,
  height,
  label,
  head,
  keyOf,
  render,
  onEnd,
  current,
}: {
  readonly items: Sequence<T>
  readonly line: number
  readonly columns: string
  /** CSS height of the list. */
  readonly height: string
  readonly label: string
  /** Names of the columns. */
  readonly head?: readonly ComponentChildren[]
  readonly keyOf: (item: T) => string
  /**
   * Returns the content of a line. It is not called again while the item and this function are the
   * same. The cells of a line are used again for other items, so their components must have no
   * state of their own.
   */
  readonly render: (item: T) => LineContent
  /** Called when the last item is rendered, to load more. */
  readonly onEnd?: () => void
  /**
   * Index of the line that was selected by keyboard. When its item changes, the line is scrolled
   * into view and its link receives the focus.
   */
  readonly current?: number
}) {
  const frame = useRef<HTMLDivElement>(null)
  const [view, setView] = useState({ scrolled: 0, height: 800, moved: 0 })
  useEffect(() => {
    const element = frame.current
    if (!element) return
    let waiting = 0
    const measure = (): void => {
      waiting = 0
      const { scrollTop: scrolled, clientHeight: height } = element
      setView((before) => ({ scrolled, height, moved: scrolled - before.scrolled }))
    }
    const later = (): void => {
      if (waiting === 0) waiting = requestAnimationFrame(measure)
    }
    const observer = new ResizeObserver(later)
    observer.observe(element)
    element.addEventListener('scroll', later, { passive: true })
    measure()
    return () => {
      cancelAnimationFrame(waiting)
      observer.disconnect()
      element.removeEventListener('scroll', later)
    }
  }, [])
  const full = items.length * line
  const shown = Math.min(full, TALLEST)
  const ratio = shown > view.height ? (full - view.height) / (shown - view.height) : 1
  const scrolled = view.scrolled * ratio
  const { first, end } = visibleRange(scrolled, view.height, line, items.length, view.moved * ratio)
  const nearEnd = end >= items.length
  useEffect(() => {
    if (nearEnd) onEnd?.()
  }, [nearEnd, items.length])
  const chosen = current === undefined ? undefined : items.at(current)
  const key = chosen === undefined ? undefined : keyOf(chosen)
  useEffect(() => {
    const element = frame.current
    if (!element || current === undefined) return undefined
    const seen = element.clientHeight - (head ? line : 0)
    const top = current * line
    const from = element.scrollTop * ratio
    if (top < from) element.scrollTop = top / ratio
    else if (top + line > from + seen) element.scrollTop = (top + line - seen) / ratio
    // The line is rendered after the next measurement.
    const timer = setTimeout(
      () => element.querySelector<HTMLElement>('.line.current a')?.focus({ preventScroll: true }),
      FOCUS_MS,
    )
    return () => clearTimeout(timer)
  }, [key])
  // Zero unless positions are scaled, so that scrolling changes nothing in lines that stay.
  const shift = ratio === 1 ? 0 : view.scrolled - scrolled
  const rendered = items.slice(first, end)
  const slots = useRef<Slots>(new Map())
  slots.current = slotsOf(rendered.map(keyOf), slots.current)
  return (
    <div
      ref={frame}
      class="virtual"
      style={{ height }}
      role="table"
      aria-label={label}
      aria-rowcount={items.length}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region needs the keyboard
      tabIndex={0}
    >
      <div class="virtual-inside" role="presentation">
        {head && (
          <div role="rowgroup" class="virtual-head">
            <div
              role="row"
              class="line head"
              style={{ gridTemplateColumns: columns, height: `${line}px` }}
            >
              {head.map((name, index) => (
                <div role="columnheader" class="clip" key={index}>
                  {name}
                </div>
              ))}
            </div>
          </div>
        )}
        <div role="rowgroup" class="sizer" style={{ height: `${shown}px` }}>
          {rendered.map((item, index) => {
            const at = first + index
            const id = keyOf(item)
            return (
              <Line
                key={slots.current.get(id)}
                id={id}
                item={item}
                render={render}
                index={at}
                current={at === current}
                columns={columns}
                height={line}
                top={at * line + shift}
              />
            )
          })}
        </div>
      </div>
    </div>
  )
}

interface LineProps<T> {
  /** The key of the item. */
  readonly id: string
  readonly item: T
  readonly render: (item: T) => LineContent
  readonly index: number
  readonly current: boolean
  readonly columns: string
  readonly height: number
  /** Distance from the start of the list in pixels. */
  readonly top: number
}
class Line<T> extends Pure<LineProps<T>> {
  readonly frame = createRef<HTMLDivElement>()
  override componentDidUpdate({ id }: LineProps<T>): void {
    // The focus must not move to another item, whose link Enter would open.
    const { current: line } = this.frame
    if (id !== this.props.id && line?.contains(document.activeElement))
      line.closest<HTMLElement>('.virtual')?.focus({ preventScroll: true })
  }
  override render({ item, render, index, current, columns, height, top }: LineProps<T>) {
    const { cells, href, selected = false } = render(item)
    return (
      <div
        ref={this.frame}
        role="row"
        class={`line${selected ? ' selected' : ''}${current ? ' current' : ''}`}
        style={{
          gridTemplateColumns: columns,
          height: `${height}px`,
          transform: `translateY(${top}px)`,
        }}
        aria-rowindex={index + 1}
        aria-selected={selected}
      >
        {cells.map((cell, at) => (
          <div role="cell" class="clip" key={at}>
            {at === 0 && href !== undefined ? (
              <a class="whole" href={href}>
                {cell}
              </a>
            ) : (
              cell
            )}
          </div>
        ))}
      </div>
    )
  }
}
