/**
 * The rows of a table as a grid that is used like a spreadsheet. Only visible cells are in the
 * document. The grid itself keeps the focus and refers to its active cell
 * (`aria-activedescendant`), so the focus is not lost when a cell leaves the document.
 */

import { useEffect, useId, useMemo, useRef } from 'preact/hooks'
import { getOwn } from '../../../../protocol/lookup.ts'
import type { Column } from '../../../../protocol/tables/schema.ts'
import { visibleRange } from '../../../design/virtual/visible-range.ts'
import { tablesText as text } from '../text.ts'
import { editedText, isLong } from '../values.ts'
import { CellEditor } from './cell.tsx'
import type { Sort } from './filter.ts'
import { gridColumns } from './grid-columns.ts'
import { GridHeader, GridRow } from './grid-parts.tsx'
import { useActiveCell, useCellEdit, useRowToggle } from './grid-state.ts'
import { type GridAction, gridAction } from './moves.ts'
import type { TableRow } from './rows.ts'
import { LINE_PX, rowsPerScreen, useViewport } from './viewport.ts'

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
/**
 * Returns the rows that are rendered, with their positions: those from `first` to `end`, and the
 * edited row, because its editor has the focus.
 */
function renderedRows(
  rows: readonly TableRow[],
  { first, end }: { readonly first: number; readonly end: number },
  editedId: string | undefined,
): readonly { readonly row: TableRow; readonly index: number }[] {
  const rendered = rows.slice(first, end).map((row, index) => ({ row, index: first + index }))
  const index = editedId === undefined ? -1 : rows.findIndex(({ id }) => id === editedId)
  const row = rows[index]
  if (row && (index < first || index >= end)) rendered.push({ row, index })
  return rendered
}

/** Shows the grid. */
export function Grid(props: GridProps) {
  const { label, columns, rows, more, editable, sort, sortable, selected, onSelect, onOpen } = props
  const frame = useRef<HTMLDivElement>(null)
  const base = useId()
  const viewport = useViewport(frame)
  const layout = useMemo(() => gridColumns(columns), [columns])
  const size = { rows: rows.length, cols: columns.length + 1, screen: rowsPerScreen(viewport) }
  const cell = useActiveCell(frame, size, layout)
  const { active } = cell
  const { editing, edit, endEdit } = useCellEdit({ frame, rows, columns, editable, cell })
  const toggle = useRowToggle(rows, selected, onSelect)

  const range = visibleRange(viewport.top, viewport.height - LINE_PX, LINE_PX, rows.length)
  const { onEnd } = props
  const nearEnd = range.end >= rows.length
  useEffect(() => {
    if (nearEnd && more) onEnd?.()
    // `onEnd` is undefined during a load. It is a dependency, so that the next page is loaded after
    // that load.
  }, [nearEnd, more, rows.length, onEnd === undefined])

  /** Performs the action of a key on the active cell or the selected rows. */
  const perform = (action: GridAction, { key, shiftKey: shift }: KeyboardEvent): void => {
    const row = rows[active.row]
    const column = columns[active.col - 1]
    switch (action.kind) {
      case 'move':
        if (shift && action.to.row !== active.row) toggle(Math.max(0, action.to.row), true)
        cell.activate(action.to)
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
  const onKeyDown = (event: KeyboardEvent): void => {
    if (editing || event.altKey) return
    const { key, shiftKey: shift } = event
    const pressed = { key, shift, ctrl: event.ctrlKey || event.metaKey }
    const hasSelection = selected.size > 0
    const action = gridAction(pressed, { active, size, editable, hasSelection })
    if (!action) return
    event.preventDefault()
    event.stopPropagation()
    perform(action, event)
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
  const isActiveShown = active.row < 0 || (active.row >= range.first && active.row < range.end)
  return (
    <div
      ref={frame}
      class="sheet"
      role="grid"
      tabIndex={0}
      aria-label={label}
      aria-describedby={`${base}-hint`}
      aria-rowcount={more ? -1 : rows.length + 1}
      aria-colcount={size.cols}
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
        <GridHeader
          columns={shownColumns}
          cellId={cellId}
          activeCol={active.row < 0 ? active.col : undefined}
          sort={sort}
          sortable={sortable}
          onSort={({ column, col }, add) => {
            cell.setActive({ row: -1, col })
            props.onSort(column.name, add)
          }}
        />
        <div role="rowgroup">
          {renderedRows(rows, range, editing?.row.id).map(({ row, index }) => (
            <GridRow
              key={row.id}
              row={row}
              index={index}
              columns={shownColumns}
              cellId={cellId}
              selected={selected.has(row.id)}
              activeCol={active.row === index ? active.col : undefined}
              editor={editorOf(row)}
              onActivate={(col) => cell.setActive({ row: index, col })}
              onEdit={editable ? (col) => edit({ row: index, col }) : undefined}
              onOpen={() => onOpen(row)}
              onToggle={(withRange) => toggle(index, withRange)}
            />
          ))}
        </div>
      </div>
    </div>
  )
}
