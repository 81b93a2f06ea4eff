/** Movement by keys in a grid, as in a spreadsheet. The functions are pure. */

/** A cell. Row -1 is the header. Column 0 has the numbers of the rows. */
export interface CellPlace {
  readonly row: number
  readonly col: number
}
export interface PressedKey {
  readonly key: string
  readonly ctrl: boolean
}

/**
 * Returns the cell to which a key moves. Returns undefined for a key that does not move.
 * @param size the numbers of rows and columns, and the number of rows that fit on the screen.
 */
export function cellAfterKey(
  { row, col }: CellPlace,
  { key, ctrl }: PressedKey,
  { rows, cols, screen }: { readonly rows: number; readonly cols: number; readonly screen: number },
): CellPlace | undefined {
  const [top, bottom, right] = [-1, rows - 1, cols - 1]
  const to = (next: Partial<CellPlace>): CellPlace => ({
    row: Math.max(top, Math.min(bottom, next.row ?? row)),
    col: Math.max(0, Math.min(right, next.col ?? col)),
  })
  switch (key) {
    case 'ArrowUp':
      return to({ row: ctrl ? 0 : row - 1 })
    case 'ArrowDown':
      return to({ row: ctrl ? bottom : row + 1 })
    case 'ArrowLeft':
      return to({ col: ctrl ? 0 : col - 1 })
    case 'ArrowRight':
      return to({ col: ctrl ? right : col + 1 })
    case 'Home':
      return ctrl ? to({ row: 0, col: 0 }) : to({ col: 0 })
    case 'End':
      return ctrl ? to({ row: bottom, col: right }) : to({ col: right })
    case 'PageUp':
      return to({ row: Math.max(0, row - screen) })
    case 'PageDown':
      return to({ row: row + screen })
    default:
      return undefined
  }
}

/**
 * Returns the cell to which Tab moves or, if `step` is -1, Shift+Tab. From the end or the start of
 * a row, the move leads to the adjacent row.
 */
export function nextCell({ row, col }: CellPlace, step: 1 | -1, cols: number): CellPlace {
  const next = col + step
  if (next >= cols) return { row: row + 1, col: 1 }
  return next < 1 ? { row: row - 1, col: cols - 1 } : { row, col: next }
}
