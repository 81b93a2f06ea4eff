/**
 * Text with line numbers. Only visible lines are in the document, and long lines are truncated, so
 * that large texts can be shown.
 */
import { useEffect, useRef, useState } from 'preact/hooks'
import { onScrollOrResize } from '../design/virtual/measured.ts'
import { visibleRange } from '../design/virtual/visible-range.ts'
import { previewText as text } from './text.ts'

/** Height of a line in pixels, the same as in `preview.css`. */
const LINE_HEIGHT_PX = 20
/** Maximum number of characters shown per line. */
const MAX_CHARACTERS = 4000
/** Maximum number of lines, because browsers limit the height of an element. */
const MAX_LINES = 350_000

/** How a line is highlighted; undefined for no highlighting. */
export type LineTone = 'good' | 'bad' | 'info' | undefined
/** Returns the highlighting of a line in a unified diff. */
export function diffTone(line: string): LineTone {
  if (/^(@@|diff |index |\+\+\+ |--- )/.test(line)) return 'info'
  return line.startsWith('+') ? 'good' : line.startsWith('-') ? 'bad' : undefined
}

/**
 * Shows a text.
 * @param props.end keeps the end visible while text is added, unless the user has scrolled up.
 */
export function Lines({
  value,
  label,
  tone,
  end = false,
}: {
  readonly value: string
  readonly label: string
  readonly tone?: (line: string) => LineTone
  readonly end?: boolean
}) {
  const frame = useRef<HTMLDivElement>(null)
  const [view, setView] = useState({ scrolled: 0, height: 600 })
  const all = value.replace(/\r?\n$/, '').split(/\r?\n/)
  const lines = all.length > MAX_LINES ? all.slice(0, MAX_LINES) : all
  const wasAtEnd = useRef(true)
  useEffect(() => {
    const element = frame.current
    if (!element) return
    const measure = (): void => {
      wasAtEnd.current =
        element.scrollTop + element.clientHeight >= element.scrollHeight - 2 * LINE_HEIGHT_PX
      setView({ scrolled: element.scrollTop, height: element.clientHeight })
    }
    return onScrollOrResize(element, measure)
  }, [])
  useEffect(() => {
    const element = frame.current
    if (end && element && wasAtEnd.current) element.scrollTop = element.scrollHeight
  }, [value, end])
  const { first, end: last } = visibleRange(
    view.scrolled,
    view.height,
    LINE_HEIGHT_PX,
    lines.length,
  )
  const digits = String(lines.length).length
  return (
    <>
      <div
        ref={frame}
        class="lines"
        style={{ height: `min(38rem, 65vh, ${lines.length * LINE_HEIGHT_PX + 20}px)` }}
        role="region"
        aria-label={label}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: needed to scroll by keyboard
        tabIndex={0}
      >
        <div class="lines-sizer" style={{ height: `${lines.length * LINE_HEIGHT_PX}px` }}>
          {lines.slice(first, last).map((line, index) => (
            <div
              key={first + index}
              class={`lines-line ${tone?.(line) ?? ''}`}
              style={{ transform: `translateY(${(first + index) * LINE_HEIGHT_PX}px)` }}
            >
              <span class="lines-number" style={{ width: `${digits + 2}ch` }} aria-hidden="true">
                {first + index + 1}
              </span>
              <code class="user-text">
                {line.length > MAX_CHARACTERS ? `${line.slice(0, MAX_CHARACTERS)}…` : line}
              </code>
            </div>
          ))}
        </div>
      </div>
      {all.length > lines.length && <p class="small soft">{text.linesCut(lines.length)}</p>}
    </>
  )
}
