/** The effects of keys in a grid, as in a spreadsheet. The functions are pure. */

/** A cell. Row -1 is the header. Column 0 has the numbers of the rows. */
export interface CellPlace {
  readonly row: number
  readonly col: number
}
export interface PressedKey {
  readonly key: string
  /** Whether Ctrl or Cmd is pressed. */
  readonly ctrl: boolean
  readonly shift: boolean
}
/** The numbers of rows and columns, and the number of rows by which a page key moves. */
export interface GridSize {
  readonly rows: number
  readonly cols: number
  readonly screen: number
}

/** What a key does. All actions except `move` concern the active cell or the selected rows. */
export type GridAction =
  | { readonly kind: 'move'; readonly to: CellPlace }
  /** `edit` begins with the value of the cell, `erase` with an empty text, `type` with the key. */
  | { readonly kind: 'edit' | 'erase' | 'type' }
  | { readonly kind: 'sort' | 'open' | 'copy' }
  /** `toggle` selects or deselects the row of the cell. */
  | { readonly kind: 'toggle' | 'deselect' | 'delete' }

/** Returns what a key does; undefined for a key without an effect. */
export function gridAction(
  pressed: PressedKey,
  {
    active,
    size,
    editable,
    hasSelection,
  }: {
    readonly active: CellPlace
    readonly size: GridSize
    readonly editable: boolean
    readonly hasSelection: boolean
  },
): GridAction | undefined {
  const { key, ctrl, shift } = pressed
  const to = cellAfterKey(active, pressed, size)
  if (to) return { kind: 'move', to }
  if (active.row < 0 && (key === 'Enter' || key === ' ')) return { kind: 'sort' }
  if (key === 'Enter' && (shift || active.col === 0 || !editable)) return { kind: 'open' }
  if (key === 'Enter' || key === 'F2') return { kind: 'edit' }
  if (key === ' ' && !ctrl) return { kind: 'toggle' }
  if (key === 'Escape' && hasSelection) return { kind: 'deselect' }
  if (key === 'Delete' || key === 'Backspace') return { kind: hasSelection ? 'delete' : 'erase' }
  const hasValue = active.row >= 0 && active.col > 0
  if (ctrl && key === 'c' && hasValue) return { kind: 'copy' }
  if (key.length === 1 && !ctrl && hasValue && editable) return { kind: 'type' }
  return undefined
}

/** Returns the cell to which a key moves. Returns undefined for a key that does not move. */
export function cellAfterKey(
  { row, col }: CellPlace,
  { key, ctrl }: Pick<PressedKey, 'key' | 'ctrl'>,
  { rows, cols, screen }: GridSize,
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
