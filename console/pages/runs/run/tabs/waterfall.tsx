/**
 * The rows of the timeline on a time axis. Only the visible rows are in the document. The focus
 * therefore stays on the frame, whose attribute `aria-activedescendant` refers to the current row.
 */
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { Icon } from '../../../../design/icons.tsx'
import { now } from '../../../../design/time.tsx'
import { visibleRange } from '../../../../design/virtual/visible-range.ts'
import { currentUrl, setQuery } from '../../../../router/router.ts'
import { formatDuration, formatNumber } from '../../../../text/format.ts'
import { statusLabel, toneOf } from '../../status.tsx'
import { marksOf, pan, rangeOf, type TimeRange, zoom } from '../data/axis.ts'
import { pausedMs } from '../data/fold.ts'
import type { Row } from '../data/tree.ts'
import { runText as text } from '../text.ts'
import { Bars } from './bars.tsx'

/** Height of a row in pixels. */
const LINE_PX = 30
/** Maximum number of intervals between marks. */
const MAX_INTERVALS = 7
/** Minimum width of an interval. */
const INTERVAL_PX = 68

const hrefOf = (key: string): string => {
  const query = new URLSearchParams(location.search)
  query.set('step', key)
  return `?${query}`
}

/**
 * Shows rows with their bars. The arrow keys move between rows and expand or collapse groups. Enter
 * shows a step.
 */
export function Waterfall({
  rows,
  range,
  whole,
  onRange,
  onOpen,
}: {
  readonly rows: readonly Row[]
  readonly range: TimeRange
  readonly whole: TimeRange
  readonly onRange: (range: TimeRange) => void
  readonly onOpen: (id: string, open: boolean) => void
}) {
  const frame = useRef<HTMLDivElement>(null)
  const base = useId()
  const [view, setView] = useState({ scrolled: 0, height: 600, axis: MAX_INTERVALS * INTERVAL_PX })
  const chosen = currentUrl.value.query.get('step') ?? ''
  const [cursor, setCursor] = useState(chosen)
  const latest = useRef({ range, whole, onRange })
  latest.current = { range, whole, onRange }
  useEffect(() => {
    const element = frame.current
    if (!element) return
    let waiting = 0
    const measure = (): void => {
      waiting = 0
      const axis = element.querySelector('.axis')?.clientWidth ?? 0
      setView({ scrolled: element.scrollTop, height: element.clientHeight, axis })
    }
    const later = (): void => {
      if (waiting === 0) waiting = requestAnimationFrame(measure)
    }
    const turn = (event: WheelEvent): void => {
      if (!event.ctrlKey && !event.metaKey) return
      event.preventDefault()
      const axis = element.querySelector('.axis')?.getBoundingClientRect()
      const at = axis ? (event.clientX - axis.left) / axis.width : 0.5
      const { range, whole, onRange } = latest.current
      onRange(zoom(range, Math.exp(-event.deltaY / 300), Math.max(0, Math.min(1, at)), whole))
    }
    const observer = new ResizeObserver(later)
    observer.observe(element)
    element.addEventListener('scroll', later, { passive: true })
    element.addEventListener('wheel', turn, { passive: false })
    measure()
    return () => {
      cancelAnimationFrame(waiting)
      observer.disconnect()
      element.removeEventListener('scroll', later)
      element.removeEventListener('wheel', turn)
    }
  }, [])
  const at = rows.findIndex(({ id }) => id === cursor)
  const show = (index: number): void => {
    const row = rows[index]
    const element = frame.current
    if (!row || !element) return
    setCursor(row.id)
    const top = index * LINE_PX
    if (top < element.scrollTop) element.scrollTop = top
    else if (top + 2 * LINE_PX > element.scrollTop + element.clientHeight)
      element.scrollTop = top + 2 * LINE_PX - element.clientHeight
  }
  // The selected step may be outside the visible part, so the timeline scrolls to it.
  useEffect(() => {
    const index = rows.findIndex(({ id }) => id === chosen)
    if (index >= 0) show(index)
  }, [chosen])
  const row = rows[at]
  const keys: Readonly<Record<string, () => void>> = {
    ArrowDown: () => show(Math.min(rows.length - 1, at + 1)),
    ArrowUp: () => show(Math.max(0, at - 1)),
    Home: () => show(0),
    End: () => show(rows.length - 1),
    ArrowRight: () => row && row.children > 0 && onOpen(row.id, true),
    ArrowLeft: () => {
      if (row?.open && row.children > 0) onOpen(row.id, false)
      else if (row && row.depth > 0)
        show(rows.findLastIndex((one, i) => i < at && one.depth < row.depth))
    },
    Enter: () => row && setQuery({ step: row.step ? row.id : '' }, { push: true }),
    '+': () => onRange(zoom(range, 2, 0.5, whole)),
    '-': () => onRange(zoom(range, 0.5, 0.5, whole)),
    '0': () => onRange(whole),
    '<': () => onRange(pan(range, -0.25, whole)),
    '>': () => onRange(pan(range, 0.25, whole)),
  }
  const { first, end } = visibleRange(view.scrolled, view.height, LINE_PX, rows.length)
  return (
    <div
      ref={frame}
      class="waterfall"
      style={{ height: `min(${(rows.length + 1) * LINE_PX + 4}px, 62vh)` }}
      role="treegrid"
      aria-label={`${text.timeline}. ${text.timelineHelp}`}
      aria-rowcount={rows.length + 1}
      aria-activedescendant={at >= first && at < end ? `${base}-${at}` : undefined}
      tabIndex={0}
      onKeyDown={(event) => {
        const run = keys[event.key]
        if (!run || event.ctrlKey || event.metaKey || event.altKey) return
        event.preventDefault()
        event.stopPropagation()
        run()
      }}
    >
      <div role="rowgroup" class="waterfall-head">
        <Axis range={range} origin={whole.from} width={view.axis} onRange={onRange} />
      </div>
      <div role="rowgroup" class="sizer" style={{ height: `${rows.length * LINE_PX}px` }}>
        {rows.slice(first, end).map((one, index) => (
          <Line
            key={one.id}
            row={one}
            index={first + index}
            id={`${base}-${first + index}`}
            range={range}
            chosen={one.id === chosen}
            cursor={one.id === cursor}
            onOpen={onOpen}
          />
        ))}
      </div>
    </div>
  )
}

/** The axis with its marks. Dragging selects a range. */
function Axis({
  range,
  origin,
  width,
  onRange,
}: {
  readonly range: TimeRange
  readonly origin: number
  /** Width of the axis in pixels. */
  readonly width: number
  readonly onRange: (range: TimeRange) => void
}) {
  const [drag, setDrag] = useState<{ readonly a: number; readonly b: number }>()
  const intervals = Math.max(1, Math.min(MAX_INTERVALS, Math.floor(width / INTERVAL_PX)))
  const marks = marksOf(range, origin, intervals)
  const positionIn = (event: PointerEvent): number => {
    const { left, width } = (event.currentTarget as Element).getBoundingClientRect()
    return Math.max(0, Math.min(1, (event.clientX - left) / width))
  }
  return (
    <div role="row" class="waterfall-line head" aria-rowindex={1}>
      <div role="columnheader">{text.step}</div>
      <div
        role="columnheader"
        class="axis"
        aria-label={text.time}
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId)
          const a = positionIn(event)
          setDrag({ a, b: a })
        }}
        onPointerMove={(event) => drag && setDrag({ a: drag.a, b: positionIn(event) })}
        onPointerUp={() => {
          if (!drag) return
          setDrag(undefined)
          const [low, high] = [Math.min(drag.a, drag.b), Math.max(drag.a, drag.b)]
          const length = range.to - range.from
          if (high - low > 0.01)
            onRange(rangeOf(range.from + low * length, range.from + high * length))
        }}
        onPointerCancel={() => setDrag(undefined)}
      >
        {marks.map(({ offset, position }) => (
          <span key={offset} class="axis-mark small soft" style={{ left: `${position * 100}%` }}>
            {(1 - position) * width >= INTERVAL_PX * 0.75 &&
              (offset === 0 ? '0' : formatDuration(offset))}
          </span>
        ))}
        {drag && (
          <i
            class="drag"
            style={{
              left: `${Math.min(drag.a, drag.b) * 100}%`,
              width: `${Math.abs(drag.a - drag.b) * 100}%`,
            }}
          />
        )}
      </div>
      <div role="columnheader" class="number">
        {text.duration}
      </div>
    </div>
  )
}

function Line({
  row,
  index,
  id,
  range,
  chosen,
  cursor,
  onOpen,
}: {
  readonly row: Row
  readonly index: number
  readonly id: string
  readonly range: TimeRange
  readonly chosen: boolean
  readonly cursor: boolean
  readonly onOpen: (id: string, open: boolean) => void
}) {
  const { label, step, depth, status, from, to, children, open } = row
  const end = to ?? now.value
  const paused = step ? pausedMs(step) : 0
  const spent = from === undefined ? '' : formatDuration(Math.max(0, end - from - paused))
  const counts = step?.branches
  return (
    <div
      id={id}
      role="row"
      class={`waterfall-line${chosen ? ' selected' : ''}${cursor ? ' cursor' : ''}`}
      style={{ transform: `translateY(${index * LINE_PX}px)` }}
      aria-rowindex={index + 2}
      aria-level={depth + 1}
      aria-expanded={children > 0 ? open : undefined}
      aria-selected={chosen}
    >
      <div role="gridcell" class="name" style={{ paddingInlineStart: `${depth * 1.1}rem` }}>
        {children > 0 ? (
          <button
            type="button"
            tabIndex={-1}
            class={open ? 'fold open' : 'fold'}
            aria-label={text.rowLabel(label, open ? text.closeAll : text.openAll, '')}
            onClick={() => onOpen(row.id, !open)}
          >
            <Icon name="right" />
          </button>
        ) : (
          <span class="fold" />
        )}
        <i class={`dot ${toneOf(status)}`} aria-hidden="true" />
        {step ? (
          <a class="clip user-text whole" tabIndex={-1} href={hrefOf(step.key)}>
            {label}
          </a>
        ) : (
          <span class="clip user-text">{label}</span>
        )}
        {step && children > 0 && (
          <span class="small soft">
            {counts && to === undefined
              ? text.branchesOf(counts.done + counts.failed, counts.total)
              : formatNumber(children)}
          </span>
        )}
        <span class="unseen">{statusLabel(status)}</span>
      </div>
      <div role="gridcell" class="track">
        <Bars row={row} range={range} now={end} />
      </div>
      <div
        role="gridcell"
        class="number small soft"
        title={paused > 0 ? text.withoutPauses(formatDuration(paused)) : undefined}
      >
        {spent}
      </div>
    </div>
  )
}
