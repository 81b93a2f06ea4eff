/** The parts of the grid: the header with the heads of the columns, and a row. */
import type { ComponentChildren } from 'preact'
import { getOwn } from '../../../../protocol/lookup.ts'
import { Icon } from '../../../design/icons.tsx'
import { designText } from '../../../design/text.ts'
import { tablesText as text } from '../text.ts'
import { shownText } from '../values.ts'
import type { Sort } from './filter.ts'
import type { PlacedColumn } from './grid-columns.ts'
import type { TableRow } from './rows.ts'
import { LINE_PX } from './viewport.ts'

/** Creates the ids of the cells, to which the grid refers. */
export type CellId = (row: number, col: number) => string

/** Shows the header. It has the number -1 among the rows. */
export const GridHeader = ({
  columns,
  cellId,
  activeCol,
  sort,
  sortable,
  onSort,
}: {
  readonly columns: readonly PlacedColumn[]
  readonly cellId: CellId
  /** The column of the active cell; undefined if the cell is in a row. */
  readonly activeCol: number | undefined
  readonly sort: readonly Sort[]
  readonly sortable: boolean
  readonly onSort: (placed: PlacedColumn, add: boolean) => void
}) => (
  <div role="rowgroup" class="sheet-head">
    <div role="row" aria-rowindex={1} class="sheet-row">
      <div
        id={cellId(-1, 0)}
        role="columnheader"
        aria-colindex={1}
        class={activeCol === 0 ? 'sheet-number active' : 'sheet-number'}
      >
        <span class="unseen">{text.row}</span>
      </div>
      {columns.map((placed) => (
        <ColumnHead
          key={placed.column.name}
          id={cellId(-1, placed.col)}
          placed={placed}
          active={activeCol === placed.col}
          order={sort.find(({ field }) => field === placed.column.name)?.order}
          sortable={sortable}
          onSort={(add) => onSort(placed, add)}
        />
      ))}
    </div>
  </div>
)

/** Shows the head of a column. A click sorts; with Shift, it adds the column to the sort order. */
function ColumnHead({
  id,
  placed: { column, col, left, width },
  active,
  order,
  sortable,
  onSort,
}: {
  readonly id: string
  readonly placed: PlacedColumn
  readonly active: boolean
  readonly order: Sort['order'] | undefined
  readonly sortable: boolean
  readonly onSort: (add: boolean) => void
}) {
  const { name, type, required, description, deprecated } = column
  const canSort = sortable && type !== 'object' && type !== 'array'
  return (
    <div
      id={id}
      role="columnheader"
      aria-colindex={col + 1}
      aria-sort={order === 'asc' ? 'ascending' : order === 'desc' ? 'descending' : undefined}
      class={`sheet-cell head ${active ? 'active' : ''} ${canSort ? 'sortable' : ''}`}
      style={{ left: `${left}px`, width: `${width}px` }}
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

/**
 * Shows a row.
 * @param props.activeCol the column of the active cell; undefined if the cell is in another row.
 * @param props.editor replaces the value of the column in which a value is being edited.
 */
export function GridRow({
  row,
  index,
  columns,
  cellId,
  selected,
  activeCol,
  editor,
  onActivate,
  onEdit,
  onOpen,
  onToggle,
}: {
  readonly row: TableRow
  readonly index: number
  readonly columns: readonly PlacedColumn[]
  readonly cellId: CellId
  readonly selected: boolean
  readonly activeCol: number | undefined
  readonly editor: { readonly col: number; readonly element: ComponentChildren } | undefined
  readonly onActivate: (col: number) => void
  /** Undefined if the rows cannot be edited. A double click then opens the row. */
  readonly onEdit: ((col: number) => void) | undefined
  readonly onOpen: () => void
  readonly onToggle: (range: boolean) => void
}) {
  return (
    <div
      role="row"
      aria-rowindex={index + 2}
      aria-selected={selected}
      class={selected ? 'sheet-row selected' : 'sheet-row'}
      style={{ transform: `translateY(${(index + 1) * LINE_PX}px)` }}
    >
      <div
        id={cellId(index, 0)}
        role="rowheader"
        aria-colindex={1}
        class={activeCol === 0 ? 'sheet-number active' : 'sheet-number'}
        title={text.select(index + 1)}
        onClick={(event) => {
          onActivate(0)
          onToggle(event.shiftKey)
        }}
        onDblClick={onOpen}
      >
        {index + 1}
      </div>
      {columns.map(({ column: { name, type }, col, left, width }) => {
        const isEdited = editor?.col === col
        return (
          <div
            key={name}
            id={cellId(index, col)}
            role="gridcell"
            aria-colindex={col + 1}
            class={`sheet-cell ${type} ${activeCol === col ? 'active' : ''} ${isEdited ? 'edited' : ''}`}
            style={{ left: `${left}px`, width: `${width}px` }}
            onClick={() => onActivate(col)}
            onDblClick={() => (onEdit ? onEdit(col) : onOpen())}
          >
            {isEdited ? (
              editor.element
            ) : (
              <span class="user-text">{shownText(getOwn(row.data, name))}</span>
            )}
          </div>
        )
      })}
    </div>
  )
}
