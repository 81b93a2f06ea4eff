/**
 * Charts over time, drawn by uPlot on a canvas, with the same values as a table for screen readers
 * and for copying.
 */
import { useEffect, useRef, useState } from 'preact/hooks'
import type uPlot from 'uplot'
import { DataTable } from '../design/data-table.tsx'
import { showError } from '../design/notify.ts'
import { loadPart } from '../router/part.ts'
import { theme } from '../shell/theme.ts'
import { formatExact, formatMark } from '../text/format.ts'
import { chartText as text } from './text.ts'

/** One line of a chart. */
interface Series {
  readonly label: string
  /** A custom property of `design/tokens.css`, such as `--good`. */
  readonly colour: string
  /** One value for each time; null: the value is not known. */
  readonly values: readonly (number | null)[]
}

/** Height in pixels. `chart.css` reserves the same height. */
const HEIGHT_PX = 180
// The library is requested when the page loads, not when the first values arrive.
const library = loadPart('chart', () => import('uplot')).then(({ default: loaded }) => loaded)

/**
 * Returns the computed colour of a custom property, because a canvas does not support
 * `light-dark()`.
 */
function computedColour(property: string): string {
  const probe = document.createElement('i')
  probe.style.color = `var(${property})`
  document.body.append(probe)
  const { color } = getComputedStyle(probe)
  probe.remove()
  return color
}

/** The font of the labels, and the gap between a label and its axis with the tick, in pixels. */
const FONT = '12px system-ui, sans-serif'
const LABEL_GAP_PX = 20
/** Minimum width of the labels of the values in pixels, so that charts next to each other align. */
const LABELS_PX = 64
/** Returns the width in pixels that the longest of the labels needs. */
function widthOf(labels: readonly string[] | null): number {
  const pen = document.createElement('canvas').getContext('2d')
  if (!pen) return LABELS_PX
  pen.font = FONT
  const widths = (labels ?? []).map((label) => pen.measureText(label).width)
  return Math.max(LABELS_PX, Math.ceil(Math.max(0, ...widths)) + LABEL_GAP_PX)
}

/** Returns the indices of values without known neighbours, which a line would not show. */
const alone = (values: ArrayLike<number | null | undefined>): number[] =>
  Array.from(values).flatMap((value, index, all) =>
    value != null && all[index - 1] == null && all[index + 1] == null ? [index] : [],
  )

interface Props {
  readonly title: string
  /** Unix milliseconds in ascending order. */
  readonly times: readonly number[]
  readonly series: readonly Series[]
  /** Formats a value. */
  readonly format: (value: number) => string
}

/** Shows the values of a chart as a table, with one row for each time. */
function ValueTable({ title, times, series, format }: Props) {
  return (
    <DataTable
      label={title}
      items={times.map((at, index) => ({ at, index }))}
      keyOf={({ at }) => String(at)}
      columns={[
        { name: text.time, cell: ({ at }) => formatExact(at) },
        ...series.map(({ label, values }) => ({
          name: label,
          number: true,
          cell: ({ index }: { readonly index: number }) => {
            const value = values[index]
            return value == null ? '–' : format(value)
          },
        })),
      ]}
    />
  )
}

/**
 * Shows series over time. The table is rendered only while it is open, because a live chart would
 * otherwise re-render all of its rows with each change.
 */
export function Chart(props: Props) {
  const { title, times, series, format } = props
  const frame = useRef<HTMLDivElement>(null)
  const [Plot, setPlot] = useState<typeof uPlot>()
  const [isTableOpen, setTableOpen] = useState(false)
  const plot = useRef<uPlot | undefined>(undefined)
  const shape = series.map(({ label, colour }) => `${label} ${colour}`).join()
  useEffect(() => {
    void library.then((loaded) => setPlot(() => loaded), showError)
  }, [])
  useEffect(() => {
    const element = frame.current
    if (!Plot || !element) return
    const axis = {
      font: FONT,
      stroke: computedColour('--soft'),
      grid: { stroke: computedColour('--line'), width: 1 },
      ticks: { stroke: computedColour('--line'), width: 1 },
    }
    const made = new Plot(
      {
        width: element.clientWidth,
        height: HEIGHT_PX,
        legend: { show: false },
        cursor: { y: false },
        ms: 1,
        axes: [
          {
            ...axis,
            // Minimum distance between tick marks in pixels, so that the longest times fit.
            space: 80,
            values: (_, marks, __, ___, step) => marks.map((at) => formatMark(at, step)),
          },
          {
            ...axis,
            size: (_, labels) => widthOf(labels),
            values: (_, ticks) => ticks.map(format),
          },
        ],
        series: [
          {},
          ...series.map(({ label, colour }) => ({
            label,
            stroke: computedColour(colour),
            width: 2,
            points: {
              show: true,
              size: 5,
              filter: (plot: uPlot, at: number) => alone(plot.data[at] ?? []),
            },
          })),
        ],
      },
      [[...times], ...series.map(({ values }) => [...values])],
      element,
    )
    plot.current = made
    const observer = new ResizeObserver(() =>
      made.setSize({ width: element.clientWidth, height: HEIGHT_PX }),
    )
    observer.observe(element)
    return () => {
      observer.disconnect()
      made.destroy()
      plot.current = undefined
    }
  }, [Plot, shape, theme.value])
  useEffect(() => {
    plot.current?.setData([[...times], ...series.map(({ values }) => [...values])])
  }, [times, series])
  return (
    <figure class="chart">
      <figcaption class="row apart">
        <h2>{title}</h2>
        <span class="row small">
          {series.map(({ label, colour }) => (
            <span key={label} class="row">
              <i class="chart-mark" style={{ background: `var(${colour})` }} />
              {label}
            </span>
          ))}
        </span>
      </figcaption>
      <div ref={frame} class={Plot ? 'chart-frame' : 'chart-frame loading'} aria-hidden="true" />
      <details class="small" onToggle={({ currentTarget }) => setTableOpen(currentTarget.open)}>
        <summary>{text.asTable}</summary>
        {isTableOpen && <ValueTable {...props} />}
      </details>
    </figure>
  )
}
