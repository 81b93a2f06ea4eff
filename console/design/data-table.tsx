/** Tables of moderate size. Long lists use `VirtualList` instead. */
import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'

/** The heading of a column. */
interface Heading {
  readonly name: string
  /** Whether the column contains numbers, which are aligned to the right. */
  readonly number?: boolean
  /** Whether the name is visually hidden. Screen readers still read it. */
  readonly unseen?: boolean
}
/** A column of a table. */
export interface Column<T> extends Heading {
  readonly cell: (item: T) => ComponentChildren
}

const Headings = ({ of }: { readonly of: readonly Heading[] }) => (
  <thead>
    <tr>
      {of.map(({ name, number, unseen }) => (
        <th key={name} scope="col" class={number ? 'number' : ''}>
          {unseen ? <span class="unseen">{name}</span> : name}
        </th>
      ))}
    </tr>
  </thead>
)

/** The frame of a table whose rows (`children`) the page renders. It scrolls like `DataTable`. */
export const TableFrame = ({
  label,
  headings,
  children,
}: {
  /** Name of the table for screen readers. */
  readonly label: string
  readonly headings: readonly (string | Heading)[]
  readonly children: ComponentChildren
}) => (
  // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region must be focusable
  <section class="table-frame" aria-label={label} tabIndex={0}>
    <table class="table">
      <Headings of={headings.map((one) => (typeof one === 'string' ? { name: one } : one))} />
      {children}
    </table>
  </section>
)

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
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region must be focusable
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
        <Headings of={columns} />
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
