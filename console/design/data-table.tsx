/** Tables of moderate size, with a header and an optional caption. Long lists are virtual lists. */
import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'

/** A column of a table. */
export interface Column<T> {
  readonly name: string
  readonly cell: (item: T) => ComponentChildren
  /** Aligns numbers to the right. */
  readonly number?: boolean
}

/** A table. It scrolls horizontally if it is too wide. */
export function DataTable<T>({
  label,
  columns,
  items,
  keyOf,
}: {
  /** Name of the table for screen readers. */
  readonly label: string
  readonly columns: readonly Column<T>[]
  readonly items: readonly T[]
  readonly keyOf: (item: T) => string
}) {
  const frame = useRef<HTMLElement>(null)
  const hasFocus = useRef(false)
  // The table receives the focus when the focused row is removed.
  useEffect(() => {
    if (hasFocus.current && document.activeElement === document.body)
      frame.current?.focus({ preventScroll: true })
  }, [items])
  return (
    <section
      ref={frame}
      class="table-frame"
      aria-label={label}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region needs the keyboard
      tabIndex={0}
      onFocusIn={() => {
        hasFocus.current = true
      }}
      onFocusOut={({ target }) =>
        queueMicrotask(() => {
          if (target instanceof Element && target.isConnected) hasFocus.current = false
        })
      }
    >
      <table class="table">
        <thead>
          <tr>
            {columns.map(({ name, number }) => (
              <th key={name} scope="col" class={number ? 'number' : ''}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {items.map((item) => (
            <tr key={keyOf(item)}>
              {columns.map(({ name, cell, number }) => (
                <td key={name} class={number ? 'number' : ''}>
                  {cell(item)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}
