/** Markdown tables with a uniform number format. */

/** Milliseconds, with two decimals below ten. NaN is shown as a dash. */
export const ms = (value: number): string =>
  Number.isNaN(value) ? '–' : value.toFixed(value < 10 ? 2 : 0)
/** A count or a rate. */
export const whole = (value: number): string =>
  Number.isNaN(value) ? '–' : Math.round(value).toLocaleString('en')
/** Several figures in one cell. */
export const cell = (...texts: readonly string[]): string =>
  texts.every((text) => text === '–') ? '–' : texts.join(' / ')

const row = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`
/** A Markdown table. */
export const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [row(head), row(head.map(() => '---')), ...rows.map(row)].join('\n')
/** A note about the measurement, below a table. */
export const note = (...sentences: readonly string[]): string =>
  `\n\n${sentences.filter(Boolean).join(' ')}`
