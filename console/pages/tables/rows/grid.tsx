/**
 * The rows of a table as a grid that is used like a spreadsheet. Only visible cells are in the
 * document. The grid itself keeps the focus and refers to its active cell
 * (`aria-activedescendant`), so the focus is not lost when a cell leaves the document.
 */

import { useEffect, useId, useMemo, useRef, useState } from 'preact/hooks'
import { getOwn } from '../../../../protocol/lookup.ts'
import type { Column } from '../../../../protocol/tables/schema.ts'
import { visibleRange } from '../../../design/virtual/visible-range.ts'
import { tablesText as text } from '../text.ts'
import { editedText, isLong } from '../values.ts'
import { type After, CellEditor } from './cell.tsx'
import type { Sort } from './filter.ts'
import { gridColumns } from './grid-columns.ts'
import { ColumnHead, GridRow } from './grid-parts.tsx'
import { type CellPlace, gridAction, nextCell } from './moves.ts'
import type { TableRow } from './rows.ts'
import { LINE_PX, revealColumn, revealRow, rowsPerScreen, useViewport } from './viewport.ts'

interface GridProps {
  readonly label: string
  readonly columns: readonly Column[]
  readonly rows: readonly TableRow[]
  /** Whether more rows can be loaded. */
  readonly more: boolean
  readonly editable: boolean
  readonly sort: readonly Sort[]
  readonly sortable: boolean
  /** Ids of the selected rows. */
  readonly selected: ReadonlySet<string>
  readonly onSort: (field: string, add: boolean) => void
  readonly onSelect: (ids: ReadonlySet<string>) => void
  readonly onOpen: (row: TableRow) => void
  /** Loads more rows; undefined while rows are being loaded, and after a failure. */
  readonly onEnd: (() => void) | undefined
  /** Deletes the selected rows. */
  readonly onDelete: () => void
  /** Stores a value of a cell. Throws an `ApiError` if the service refuses the value. */
  readonly store: (row: TableRow, column: string, value: unknown) => Promise<void>
}
/** The cell whose value is being edited. */
interface Editing {
  readonly row: TableRow
  readonly col: number
  /** The text with which the edit began. */
  readonly initial: string
}

/** Shows the grid. */
export function Grid(props: GridProps) {
  const { label, columns, rows, more, editable, sort, sortable, selected, onSelect, onOpen } = props
  const frame = useRef<HTMLDivElement>(null)
  const base = useId()
  const viewport = useViewport(frame)
  const layout = useMemo(() => gridColumns(columns), [columns])
  const [at, setActive] = useState<CellPlace>({ row: 0, col: 1 })
  const [editing, setEditing] = useState<Editing>()
  /** The row at which a range of selected rows begins. */
  const anchor = useRef(0)
  const cols = columns.length + 1
  const active = { row: Math.min(at.row, rows.length - 1), col: Math.min(at.col, cols - 1) }

  const { first, end } = visibleRange(viewport.top, viewport.height - LINE_PX, LINE_PX, rows.length)
  const { onEnd } = props
  const nearEnd = end >= rows.length
  useEffect(() => {
    if (nearEnd && more) onEnd?.()
    // `onEnd` is undefined during a load. It is a dependency, so that the next page is loaded after
    // that load.
  }, [nearEnd, more, rows.length, onEnd === undefined])

  /** Makes a cell the active one, and scrolls to it. */
  const activate = (place: CellPlace): void => {
    setActive(place)
    if (!frame.current) return
    if (place.row >= 0) revealRow(frame.current, place.row)
    if (place.col > 0) revealColumn(frame.current, layout.edgesOf(place.col))
  }
  /** Begins to edit a cell. `typed` is the text that replaces its value. */
  const edit = (place: CellPlace, typed?: string): void => {
    const row = rows[place.row]
    const column = columns[place.col - 1]
    if (!editable || !row || !column) return
    activate(place)
    const initial = typed ?? editedText(getOwn(row.data, column.name), column.type)
    setEditing({ row, col: place.col, initial })
  }
  const endEdit = (after: After, goOn: boolean): void => {
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
  /** Selects or deselects a row; with `range`, selects all rows from the last one to this one. */
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
    const { key, shiftKey: shift } = event
    const action = gridAction(
      { key, shift, ctrl: event.ctrlKey || event.metaKey },
      {
        active,
        size: { rows: rows.length, cols, screen: rowsPerScreen(viewport) },
        editable,
        hasSelection: selected.size > 0,
      },
    )
    if (!action) return
    event.preventDefault()
    event.stopPropagation()
    const row = rows[active.row]
    const column = columns[active.col - 1]
    switch (action.kind) {
      case 'move':
        if (shift && action.to.row !== active.row) toggle(Math.max(0, action.to.row), true)
        activate(action.to)
        break
      case 'sort':
        if (column) props.onSort(column.name, shift)
        break
      case 'open':
        if (row) onOpen(row)
        break
      case 'edit':
        edit(active)
        break
      case 'erase':
        edit(active, '')
        break
      case 'type':
        edit(active, column?.type === 'boolean' ? undefined : key)
        break
      case 'toggle':
        toggle(active.row, shift)
        break
      case 'deselect':
        onSelect(new Set())
        break
      case 'delete':
        props.onDelete()
        break
      case 'copy':
        if (row && column)
          void navigator.clipboard.writeText(editedText(getOwn(row.data, column.name), column.type))
    }
  }
  const onPaste = (event: ClipboardEvent): void => {
    if (editing || active.col === 0 || active.row < 0) return
    const pasted = event.clipboardData?.getData('text/plain')
    if (!pasted) return
    event.preventDefault()
    edit(active, pasted.replace(/\r?\n$/, ''))
  }

  const { left, width } = viewport
  const shownColumns = layout.near(left, left + width, editing?.col)
  const shownRows = rows.slice(first, end).map((row, index) => ({ row, index: first + index }))
  // The edited row stays in the document, because its editor has the focus.
  const editedIndex = editing ? rows.findIndex(({ id }) => id === editing.row.id) : -1
  const editedRow = rows[editedIndex]
  if (editedRow && (editedIndex < first || editedIndex >= end))
    shownRows.push({ row: editedRow, index: editedIndex })
  const editorOf = ({ id, data }: TableRow) => {
    const column = editing?.row.id === id ? columns[editing.col - 1] : undefined
    if (!editing || !column) return undefined
    const element = (
      <CellEditor
        column={column}
        initial={editing.initial}
        long={isLong(getOwn(data, column.name), column.type)}
        store={(next) => props.store(editing.row, column.name, next)}
        onEnd={endEdit}
      />
    )
    return { col: editing.col, element }
  }
  const cellId = (row: number, col: number): string => `${base}-${row}-${col}`
  const isActiveShown = active.row < 0 || (active.row >= first && active.row < end)
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
      aria-activedescendant={isActiveShown ? cellId(active.row, active.col) : undefined}
      onKeyDown={onKeyDown}
      onPaste={onPaste}
    >
      <span class="unseen" id={`${base}-hint`}>
        {text.gridHint}
      </span>
      <div
        class="sheet-body"
        style={{ width: `${layout.width}px`, height: `${(rows.length + 1) * LINE_PX}px` }}
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
            {shownColumns.map((placed) => (
              <ColumnHead
                key={placed.column.name}
                id={cellId(-1, placed.col)}
                placed={placed}
                active={active.row < 0 && active.col === placed.col}
                order={sort.find(({ field }) => field === placed.column.name)?.order}
                sortable={sortable}
                onSort={(add) => {
                  setActive({ row: -1, col: placed.col })
                  props.onSort(placed.column.name, add)
                }}
              />
            ))}
          </div>
        </div>
        <div role="rowgroup">
          {shownRows.map(({ row, index }) => (
            <GridRow
              key={row.id}
              row={row}
              index={index}
              columns={shownColumns}
              cellId={cellId}
              selected={selected.has(row.id)}
              activeCol={active.row === index ? active.col : undefined}
              editor={editorOf(row)}
              onActivate={(col) => setActive({ row: index, col })}
              onEdit={editable ? (col) => edit({ row: index, col }) : undefined}
              onOpen={() => onOpen(row)}
              onToggle={(range) => toggle(index, range)}
            />
          ))}
        </div>
      </div>
    </div>
  )
}
