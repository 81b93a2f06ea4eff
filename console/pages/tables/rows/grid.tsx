/**
 * The rows of a table as a grid that is used like a spreadsheet. Only visible cells are in the
 * document. The grid itself keeps the focus and refers to its active cell
 * (`aria-activedescendant`), so the focus is not lost when a cell leaves the document.
 */

import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { getOwn } from '../../../../protocol/lookup.ts'
import type { Column } from '../../../../protocol/tables/schema.ts'
import { Icon } from '../../../design/icons.tsx'
import { designText } from '../../../design/text.ts'
import { visibleRange } from '../../../design/virtual/visible-range.ts'
import { tablesText as text } from '../text.ts'
import { editedText, isLong, shownText, widthOf } from '../values.ts'
import { type After, CellEditor } from './cell.tsx'
import type { Sort } from './filter.ts'
import { type CellPlace, cellAfterKey, nextCell } from './moves.ts'
import type { TableRow } from './rows.ts'

/** Height of a row in pixels. */
const LINE_PX = 34
/** Width in pixels of the column of row numbers. */
const NUMBERS_PX = 64
/** Distance from the visible part within which columns are rendered as well. */
const OVERSCAN_PX = 300

interface Editing {
  readonly row: TableRow
  readonly col: number
  readonly initial: string
}

/**
 * Shows the grid.
 * @param props.store stores a value of a cell. Throws an `ApiError` if the service refuses the
 *   value.
 */
export function Grid({
  label,
  columns,
  rows,
  more,
  editable,
  sort,
  sortable,
  selected,
  onSort,
  onSelect,
  onOpen,
  onEnd,
  onDelete,
  store,
}: {
  readonly label: string
  readonly columns: readonly Column[]
  readonly rows: readonly TableRow[]
  readonly more: boolean
  readonly editable: boolean
  readonly sort: readonly Sort[]
  readonly sortable: boolean
  readonly selected: ReadonlySet<string>
  readonly onSort: (field: string, add: boolean) => void
  readonly onSelect: (ids: ReadonlySet<string>) => void
  readonly onOpen: (row: TableRow) => void
  /** Loads more rows; undefined while rows are being loaded, and after a failure. */
  readonly onEnd: (() => void) | undefined
  readonly onDelete: () => void
  readonly store: (row: TableRow, column: string, value: unknown) => Promise<void>
}) {
  const frame = useRef<HTMLDivElement>(null)
  const base = useId()
  const [view, setView] = useState({ top: 0, left: 0, height: 600, width: 1200 })
  const [at, setActive] = useState<CellPlace>({ row: 0, col: 1 })
  const [editing, setEditing] = useState<Editing>()
  const anchor = useRef(0)
  const lefts = [0]
  for (const [index, { type }] of columns.entries())
    lefts.push((lefts[index] ?? 0) + (index === 0 ? NUMBERS_PX : 0) + widthOf(type))
  // For i > 0, lefts[i] is the right edge of the grid's column i. Column 0 has the row numbers.
  const leftOf = (col: number): number =>
    col === 0 ? 0 : col === 1 ? NUMBERS_PX : (lefts[col - 1] ?? 0)
  const width = lefts.at(-1) ?? NUMBERS_PX
  const cols = columns.length + 1
  const active = { row: Math.min(at.row, rows.length - 1), col: Math.min(at.col, cols - 1) }

  useEffect(() => {
    const element = frame.current
    if (!element) return
    const measure = (): void =>
      setView({
        top: element.scrollTop,
        left: element.scrollLeft,
        height: element.clientHeight,
        width: element.clientWidth,
      })
    const observer = new ResizeObserver(measure)
    observer.observe(element)
    element.addEventListener('scroll', measure, { passive: true })
    return () => {
      observer.disconnect()
      element.removeEventListener('scroll', measure)
    }
  }, [])
  const { first, end } = visibleRange(view.top, view.height - LINE_PX, LINE_PX, rows.length)
  const nearEnd = end >= rows.length
  useEffect(() => {
    if (nearEnd && more) onEnd?.()
    // `onEnd` is undefined during a load. It is a dependency, so that the next page is loaded after
    // that load.
  }, [nearEnd, more, rows.length, onEnd === undefined])

  /** Scrolls so that a cell is visible, and not covered by the header or the row numbers. */
  const reveal = ({ row, col }: CellPlace): void => {
    const element = frame.current
    if (!element) return
    const top = row * LINE_PX
    const visible = element.clientHeight - LINE_PX
    if (row >= 0 && top < element.scrollTop) element.scrollTop = top
    else if (row >= 0 && top + LINE_PX > element.scrollTop + visible)
      element.scrollTop = top + LINE_PX - visible
    const [left, right] = [leftOf(col) - NUMBERS_PX, leftOf(col + 1)]
    if (col > 0 && left < element.scrollLeft) element.scrollLeft = left
    else if (col > 0 && right > element.scrollLeft + element.clientWidth)
      element.scrollLeft = Math.min(left, right - element.clientWidth)
  }
  const activate = (place: CellPlace): void => {
    setActive(place)
    reveal(place)
  }
  const edit = (place: CellPlace, typed?: string): void => {
    const row = rows[place.row]
    const column = columns[place.col - 1]
    if (!editable || !row || !column) return
    activate(place)
    const initial = typed ?? editedText(getOwn(row.data, column.name), column.type)
    setEditing({ row, col: place.col, initial })
  }
  const ended = (after: After, goOn: boolean): void => {
    const { row, col } = active
    setEditing(undefined)
    // If the person clicked outside of the grid, the clicked element keeps the focus.
    const inside = frame.current?.contains(document.activeElement)
    if (after !== 'stay' || inside) frame.current?.focus({ preventScroll: true })
    if (after === 'down' && row + 1 < rows.length) activate({ row: row + 1, col })
    if (!goOn) return
    const next = nextCell(active, after === 'next' ? 1 : -1, cols)
    if (rows[next.row]) edit(next)
  }
  const toggle = (index: number, range: boolean): void => {
    const row = rows[index]
    if (!row) return
    const next = new Set(selected)
    const [from, to] = [Math.min(anchor.current, index), Math.max(anchor.current, index)]
    if (range) for (const one of rows.slice(from, to + 1)) next.add(one.id)
    else if (!next.delete(row.id)) next.add(row.id)
    anchor.current = index
    onSelect(next)
  }
  const onKeyDown = (event: KeyboardEvent): void => {
    if (editing || event.altKey) return
    const row = rows[active.row]
    const column = columns[active.col - 1]
    const ctrl = event.ctrlKey || event.metaKey
    const screen = Math.max(1, Math.floor((view.height - LINE_PX) / LINE_PX) - 1)
    const moved = cellAfterKey(
      active,
      { key: event.key, ctrl },
      { rows: rows.length, cols, screen },
    )
    const done = (): void => {
      event.preventDefault()
      event.stopPropagation()
    }
    if (moved) {
      done()
      if (event.shiftKey && moved.row !== active.row) toggle(Math.max(0, moved.row), true)
      activate(moved)
    } else if (active.row < 0 && (event.key === 'Enter' || event.key === ' ')) {
      done()
      if (column) onSort(column.name, event.shiftKey)
    } else if (event.key === 'Enter' && (event.shiftKey || active.col === 0 || !editable)) {
      done()
      if (row) onOpen(row)
    } else if (event.key === 'Enter' || event.key === 'F2') {
      done()
      edit(active)
    } else if (event.key === ' ' && !ctrl) {
      done()
      toggle(active.row, event.shiftKey)
    } else if (event.key === 'Escape' && selected.size > 0) {
      done()
      onSelect(new Set())
    } else if (event.key === 'Delete' || event.key === 'Backspace') {
      done()
      if (selected.size > 0) onDelete()
      else edit(active, '')
    } else if (ctrl && event.key === 'c' && row && column) {
      done()
      void navigator.clipboard.writeText(editedText(getOwn(row.data, column.name), column.type))
    } else if (event.key.length === 1 && !ctrl && column && active.row >= 0 && editable) {
      done()
      edit(active, column.type === 'boolean' ? undefined : event.key)
    }
  }
  const onPaste = (event: ClipboardEvent): void => {
    if (editing || active.col === 0 || active.row < 0) return
    const pasted = event.clipboardData?.getData('text/plain')
    if (!pasted) return
    event.preventDefault()
    edit(active, pasted.replace(/\r?\n$/, ''))
  }

  const editedRow = editing ? rows.findIndex(({ id }) => id === editing.row.id) : -1
  const shownCols = columns
    .map((column, index) => ({ column, col: index + 1 }))
    .filter(
      ({ column: { type }, col }) =>
        col === editing?.col ||
        (leftOf(col) + widthOf(type) > view.left - OVERSCAN_PX &&
          leftOf(col) < view.left + view.width + OVERSCAN_PX),
    )
  const shownRows = rows.slice(first, end).map((row, index) => ({ row, index: first + index }))
  const edited = rows[editedRow]
  if (edited && (editedRow < first || editedRow >= end))
    shownRows.push({ row: edited, index: editedRow })
  const cellId = (row: number, col: number): string => `${base}-${row}-${col}`
  const isShown = active.row < 0 || (active.row >= first && active.row < end)
  return (
    <div
      ref={frame}
      class="sheet"
      role="grid"
      tabIndex={0}
      aria-label={label}
      aria-describedby={`${base}-hint`}
      aria-rowcount={more ? -1 : rows.length + 1}
      aria-colcount={cols}
      aria-multiselectable="true"
      aria-readonly={!editable}
      aria-activedescendant={isShown ? cellId(active.row, active.col) : undefined}
      onKeyDown={onKeyDown}
      onPaste={onPaste}
    >
      <span class="unseen" id={`${base}-hint`}>
        {text.gridHint}
      </span>
      <div
        class="sheet-body"
        style={{ width: `${width}px`, height: `${(rows.length + 1) * LINE_PX}px` }}
      >
        <div role="rowgroup" class="sheet-head">
          <div role="row" aria-rowindex={1} class="sheet-row">
            <div
              id={cellId(-1, 0)}
              role="columnheader"
              aria-colindex={1}
              class={active.row < 0 && active.col === 0 ? 'sheet-number active' : 'sheet-number'}
            >
              <span class="unseen">{text.row}</span>
            </div>
            {shownCols.map(({ column, col }) => (
              <Head
                key={column.name}
                id={cellId(-1, col)}
                column={column}
                col={col}
                left={leftOf(col)}
                active={active.row < 0 && active.col === col}
                order={sort.find(({ field }) => field === column.name)?.order}
                sortable={sortable}
                onSort={(add) => {
                  setActive({ row: -1, col })
                  onSort(column.name, add)
                }}
              />
            ))}
          </div>
        </div>
        <div role="rowgroup">
          {shownRows.map(({ row, index }) => (
            <div
              key={row.id}
              role="row"
              aria-rowindex={index + 2}
              aria-selected={selected.has(row.id)}
              class={selected.has(row.id) ? 'sheet-row selected' : 'sheet-row'}
              style={{ transform: `translateY(${(index + 1) * LINE_PX}px)` }}
            >
              <div
                id={cellId(index, 0)}
                role="rowheader"
                aria-colindex={1}
                class={
                  active.row === index && active.col === 0 ? 'sheet-number active' : 'sheet-number'
                }
                title={text.select(index + 1)}
                onClick={(event) => {
                  setActive({ row: index, col: 0 })
                  toggle(index, event.shiftKey)
                }}
                onDblClick={() => onOpen(row)}
              >
                {index + 1}
              </div>
              {shownCols.map(({ column, col }) => {
                const isEdited = editing?.row.id === row.id && editing.col === col
                const value = getOwn(row.data, column.name)
                const isActive = active.row === index && active.col === col
                return (
                  <div
                    key={column.name}
                    id={cellId(index, col)}
                    role="gridcell"
                    aria-colindex={col + 1}
                    class={`sheet-cell ${column.type} ${isActive ? 'active' : ''} ${isEdited ? 'edited' : ''}`}
                    style={{ left: `${leftOf(col)}px`, width: `${widthOf(column.type)}px` }}
                    onClick={() => setActive({ row: index, col })}
                    onDblClick={() => (editable ? edit({ row: index, col }) : onOpen(row))}
                  >
                    {isEdited ? (
                      <CellEditor
                        column={column}
                        initial={editing.initial}
                        long={isLong(value, column.type)}
                        store={(next) => store(editing.row, column.name, next)}
                        onEnd={ended}
                      />
                    ) : (
                      <span class="user-text">{shownText(value)}</span>
                    )}
                  </div>
                )
              })}
            </div>
          ))}
        </div>
      </div>
    </div>
  )
}

function Head({
  id,
  column: { name, type, required, description, deprecated },
  left,
  col,
  active,
  order,
  sortable,
  onSort,
}: {
  readonly id: string
  readonly column: Column
  readonly left: number
  readonly col: number
  readonly active: boolean
  readonly order: Sort['order'] | undefined
  readonly sortable: boolean
  readonly onSort: (add: boolean) => void
}) {
  const canSort = sortable && type !== 'object' && type !== 'array'
  return (
    <div
      id={id}
      role="columnheader"
      aria-colindex={col + 1}
      aria-sort={order === 'asc' ? 'ascending' : order === 'desc' ? 'descending' : undefined}
      class={`sheet-cell head ${active ? 'active' : ''} ${canSort ? 'sortable' : ''}`}
      style={{ left: `${left}px`, width: `${widthOf(type)}px` }}
      title={[designText.about(name, type), description].filter(Boolean).join('\n')}
      onClick={(event) => canSort && onSort(event.shiftKey)}
    >
      <span class={deprecated ? 'clip user-text deprecated' : 'clip user-text'}>
        {name}
        {required && <span aria-hidden="true"> *</span>}
      </span>
      {order && (
        <span class={order === 'asc' ? 'sorted up' : 'sorted'}>
          <Icon name="down" />
        </span>
      )}
    </div>
  )
}
