/** Formats results as Markdown tables, with a uniform number format. */

/** Formats milliseconds, with two decimals below ten; NaN as a dash. */
export const ms = (value: number): string =>
  Number.isNaN(value) ? '–' : value.toFixed(value < 10 ? 2 : 0)
/** Formats a count or a rate as a whole number; NaN as a dash. */
export const whole = (value: number): string =>
  Number.isNaN(value) ? '–' : Math.round(value).toLocaleString('en')
/** Joins several figures for one cell; a single dash if all of them are missing. */
export const cell = (...texts: readonly string[]): string =>
  texts.every((text) => text === '–') ? '–' : texts.join(' / ')

const row = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`
/** Returns a Markdown table. */
export const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [row(head), row(head.map(() => '---')), ...rows.map(row)].join('\n')
/** Returns a note about the measurement, to be placed below a table. */
export const note = (...sentences: readonly string[]): string =>
  `\n\n${sentences.filter(Boolean).join(' ')}`
