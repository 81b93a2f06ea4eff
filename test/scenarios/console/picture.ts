/**
 * Compares pictures of pages by their layout. A picture is reduced to the mean brightness of the
 * cells of a grid, so that different fonts, times and ids change little.
 */
import { PNG } from 'pngjs'

/** Number of columns and rows of the grid. */
const GRID = { columns: 40, rows: 25 } as const
/** Difference in brightness (0 to 255) above which a cell counts as different. */
const DIFFERENT = 20

/** Returns the mean brightness of each cell of a PNG, as base64 of one byte per cell. */
export function layoutOf(picture: Buffer): string {
  const { width, height, data } = PNG.sync.read(picture)
  const cells = Buffer.alloc(GRID.columns * GRID.rows)
  for (let row = 0; row < GRID.rows; row++)
    for (let column = 0; column < GRID.columns; column++) {
      const [left, right] = [column, column + 1].map((at) =>
        Math.floor((at * width) / GRID.columns),
      ) as [number, number]
      const [top, bottom] = [row, row + 1].map((at) => Math.floor((at * height) / GRID.rows)) as [
        number,
        number,
      ]
      let sum = 0
      for (let y = top; y < bottom; y++)
        for (let x = left; x < right; x++) {
          const at = (y * width + x) * 4
          sum += ((data[at] ?? 0) * 3 + (data[at + 1] ?? 0) * 6 + (data[at + 2] ?? 0)) / 10
        }
      cells[row * GRID.columns + column] = Math.round(sum / ((bottom - top) * (right - left)))
    }
  return cells.toString('base64')
}

/** Returns the share of cells (0 to 1) in which two layouts differ. */
export function layoutDifference(one: string, other: string): number {
  const [a, b] = [Buffer.from(one, 'base64'), Buffer.from(other, 'base64')]
  if (a.length !== b.length) return 1
  let different = 0
  for (const [at, value] of a.entries()) if (Math.abs(value - (b[at] ?? 0)) > DIFFERENT) different++
  return different / a.length
}
