/** Positions of the columns of the grid, in pixels. Column 0 has the numbers of the rows. */
import type { Column } from '../../../../protocol/tables/schema.ts'
import { widthOf } from '../values.ts'

/** Width of the column of row numbers, which stays in place when the grid is scrolled. */
export const NUMBERS_PX = 64
/** Distance from the visible part within which columns are rendered as well. */
const OVERSCAN_PX = 300

/** A column of the table, with its number and its position in the grid. */
export interface PlacedColumn {
  readonly column: Column
  readonly col: number
  readonly left: number
  readonly width: number
}
export interface GridColumns {
  readonly width: number
  /** Returns the columns in or near a part of the grid, and column `also`. */
  near(left: number, right: number, also: number | undefined): readonly PlacedColumn[]
  /** Returns the left and right edge of a column. */
  edgesOf(col: number): readonly [left: number, right: number]
}

export function gridColumns(columns: readonly Column[]): GridColumns {
  const placed: PlacedColumn[] = []
  let right = NUMBERS_PX
  for (const [index, column] of columns.entries()) {
    const width = widthOf(column.type)
    placed.push({ column, col: index + 1, left: right, width })
    right += width
  }
  return {
    width: right,
    near: (from, to, also) =>
      placed.filter(
        ({ col, left, width }) =>
          col === also || (left + width > from - OVERSCAN_PX && left < to + OVERSCAN_PX),
      ),
    edgesOf: (col) => {
      const { left, width } = placed[col - 1] ?? { left: 0, width: NUMBERS_PX }
      return [left, left + width]
    },
  }
}
