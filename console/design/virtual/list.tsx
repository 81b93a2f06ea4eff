/**
 * Virtual lists: only the visible lines and a few around them are in the document. All lines have
 * one height, so an index determines a position.
 */
import type { ComponentChildren } from 'preact'
import { useEffect, useLayoutEffect, useMemo, useRef } from 'preact/hooks'
import type { Sequence } from '../../api/growing.ts'
import { RenderBudget } from './budget.ts'
import { Line, type LineContent } from './line.tsx'
import { useScrolling } from './scrolling.ts'
import { type Slots, shownSlots, slotsOf } from './slots.ts'
import { OVERSCAN_LINES, visibleRange } from './visible-range.ts'

/** Milliseconds between two attempts to focus a line that was scrolled into view. */
const FOCUS_MS = 50
/** Maximum number of attempts to focus the line. */
const MAX_FOCUS_ATTEMPTS = 10
/**
 * Maximum height of the content of a list, because browsers limit the height of an element. The
 * positions in a longer list are scaled.
 */
const MAX_HEIGHT_PX = 8_000_000

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
   * Returns the content of a line. It is called again only if the item or this function has
   * changed. The cells of a line are reused for other items, so their components must not have any
   * state.
   */
  readonly render: (item: T) => LineContent
  /** Called when the last item is rendered, to load more. */
  readonly onEnd?: () => void
  /**
   * Index of the line that was selected with the keyboard. When its item changes, the line is
   * scrolled into view and its link receives the focus.
   */
  readonly current?: number
}) {
  const frame = useRef<HTMLDivElement>(null)
  const { view, renderNext, renderSettled } = useScrolling(frame)
  const full = items.length * line
  const shown = Math.min(full, MAX_HEIGHT_PX)
  const ratio = shown > view.height ? (full - view.height) / (shown - view.height) : 1
  const scrolled = view.scrolled * ratio
  const range = visibleRange(scrolled, view.height, line, items.length)
  const { first, end } = range
  const nearEnd = end >= items.length
  useEffect(() => {
    if (nearEnd) onEnd?.()
  }, [nearEnd, items.length])
  // Effects must not refer to `head`, because they would keep its elements in memory.
  const headHeight = head ? line : 0
  const chosen = current === undefined ? undefined : items.at(current)
  const key = chosen === undefined ? undefined : keyOf(chosen)
  useEffect(() => {
    const element = frame.current
    if (!element || current === undefined) return undefined
    const seen = element.clientHeight - headHeight
    const top = current * line
    const from = element.scrollTop * ratio
    if (top < from) element.scrollTop = top / ratio
    else if (top + line > from + seen) element.scrollTop = (top + line - seen) / ratio
    // The line is rendered after the next measurement, or later in a slow browser, so the focus is
    // attempted several times.
    const link = `.line.current[aria-rowindex="${current + 1}"] a`
    let left = MAX_FOCUS_ATTEMPTS
    const timer = setInterval(() => {
      const found = element.querySelector<HTMLElement>(link)
      found?.focus({ preventScroll: true })
      if (found || --left === 0) clearInterval(timer)
    }, FOCUS_MS)
    return () => clearInterval(timer)
  }, [key])
  // The difference between the actual and the scaled scroll position, by which all lines are
  // shifted. It is 0 unless positions are scaled, so that scrolling does not change the lines that
  // stay.
  const shift = ratio === 1 ? 0 : view.scrolled - scrolled
  const rendered = items.slice(first, end)
  const slots = useRef<Slots>(new Map())
  const wanted = slotsOf(rendered.map(keyOf), slots.current)
  const budget = useMemo(() => new RenderBudget(), [])
  const lastView = useRef(view)
  // During fast scrolling, each step skips the lines around the visible ones, so only the visible
  // ones must be rendered.
  const isLongStep =
    view !== lastView.current && Math.abs(view.moved) * ratio > OVERSCAN_LINES * line
  const visible = {
    first: Math.floor(scrolled / line),
    end: Math.ceil((scrolled + view.height) / line),
  }
  budget.begin(performance.now(), isLongStep ? visible : range)
  useLayoutEffect(() => {
    lastView.current = view
    slots.current = shownSlots(wanted, budget.postponed)
    if (budget.incomplete) renderNext()
    else if (budget.postponed.size > 0) renderSettled()
  })
  return (
    <div
      ref={frame}
      class="virtual"
      style={{ height }}
      role="table"
      aria-label={label}
      aria-rowcount={items.length}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region must be focusable
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
                key={wanted.get(id)}
                id={id}
                item={item}
                render={render}
                index={at}
                current={at === current}
                columns={columns}
                height={line}
                top={at * line + shift}
                budget={budget}
              />
            )
          })}
        </div>
      </div>
    </div>
  )
}
