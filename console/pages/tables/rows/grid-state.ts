/**
 * The state of the grid, with a hook for each part of it: the active cell, the edit of a cell, and
 * the selection of rows.
 */
import type { RefObject } from 'preact'
import { useRef, useState } from 'preact/hooks'
import { getOwn } from '../../../../protocol/lookup.ts'
import type { Column } from '../../../../protocol/tables/schema.ts'
import { editedText } from '../values.ts'
import type { After } from './cell.tsx'
import type { GridColumns } from './grid-columns.ts'
import { type CellPlace, type GridSize, nextCell } from './moves.ts'
import type { TableRow } from './rows.ts'
import { revealColumn, revealRow } from './viewport.ts'

type Frame = RefObject<HTMLElement | null>

interface ActiveCell {
  readonly active: CellPlace
  /** Makes a visible cell the active one. */
  readonly setActive: (place: CellPlace) => void
  /** Makes a cell the active one, and scrolls to it. */
  readonly activate: (place: CellPlace) => void
}
/** Returns the active cell. It stays inside of the grid when rows or columns are removed. */
export function useActiveCell(
  frame: Frame,
  { rows, cols }: Pick<GridSize, 'rows' | 'cols'>,
  layout: GridColumns,
): ActiveCell {
  const [place, setActive] = useState<CellPlace>({ row: 0, col: 1 })
  return {
    active: { row: Math.min(place.row, rows - 1), col: Math.min(place.col, cols - 1) },
    setActive,
    activate: (to) => {
      setActive(to)
      if (!frame.current) return
      if (to.row >= 0) revealRow(frame.current, to.row)
      if (to.col > 0) revealColumn(frame.current, layout.edgesOf(to.col))
    },
  }
}

/** The cell whose value is being edited. */
interface Editing {
  readonly row: TableRow
  readonly col: number
  /** The text with which the edit began. */
  readonly initial: string
}
interface CellEdit {
  /** Undefined while no cell is being edited. */
  readonly editing: Editing | undefined
  /** Begins to edit a cell. `typed` is the text that replaces its value. */
  readonly edit: (place: CellPlace, typed?: string) => void
  /**
   * Ends the edit, and moves the active cell.
   * @param goOn whether the edit continues in the next or previous cell.
   */
  readonly endEdit: (after: After, goOn: boolean) => void
}
/** Returns the edit of a cell. The edited cell is the active one. */
export function useCellEdit({
  frame,
  rows,
  columns,
  editable,
  cell: { active, activate },
}: {
  readonly frame: Frame
  readonly rows: readonly TableRow[]
  readonly columns: readonly Column[]
  readonly editable: boolean
  readonly cell: ActiveCell
}): CellEdit {
  const [editing, setEditing] = useState<Editing>()
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
    const next = nextCell(active, after === 'next' ? 1 : -1, columns.length + 1)
    if (rows[next.row]) edit(next)
  }
  return { editing, edit, endEdit }
}

/**
 * Returns a function that selects or deselects a row. With `range`, it selects all rows from the
 * last one to this one.
 */
export function useRowToggle(
  rows: readonly TableRow[],
  selected: ReadonlySet<string>,
  onSelect: (ids: ReadonlySet<string>) => void,
): (index: number, range: boolean) => void {
  /** The row at which a range begins. */
  const anchor = useRef(0)
  return (index, range) => {
    const row = rows[index]
    if (!row) return
    const next = new Set(selected)
    const [from, to] = [Math.min(anchor.current, index), Math.max(anchor.current, index)]
    if (range) for (const one of rows.slice(from, to + 1)) next.add(one.id)
    else if (!next.delete(row.id)) next.add(row.id)
    anchor.current = index
    onSelect(next)
  }
}
