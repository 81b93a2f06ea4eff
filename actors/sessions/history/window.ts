/**
 * The window: the rows that the model is shown. Compaction keeps it small. The window is also
 * bounded when compaction is disabled or fails, so that neither a snapshot nor a commit grows with
 * the conversation.
 *
 * Invariants:
 * W1. The window begins with the last summary, if any, and ends with the last row.
 * W2. A window that exceeds its bounds is cut to about half of the allowed size. Cuts are therefore
 *     rare, and the beginning of the window stays in the caches of providers for longer.
 * W3. The window is cut only before the input of a turn or an appended row, so no result loses its
 *     tool use. The rows of the newest turn are kept, however long the turn is, unless rows were
 *     appended during the turn.
 */
import { limits } from '../../../protocol/sessions/limits.ts'
import type { TranscriptMessage } from '../../../protocol/sessions/schema.ts'

export interface Window {
  readonly window: readonly TranscriptMessage[]
  /** Number of characters of the rows' content as JSON. */
  readonly size: number
}
const sizeOf = ({ content }: TranscriptMessage): number => JSON.stringify(content).length
const measured = (window: readonly TranscriptMessage[]): Window => ({
  window,
  size: window.reduce((sum, row) => sum + sizeOf(row), 0),
})
const over = (rows: number, size: number, share: number): boolean =>
  rows > limits.window.rows * share || size > limits.window.size * share
/** Whether a conversation can start with this row. */
const begins = ({ role, turn_id, content }: TranscriptMessage): boolean =>
  (role === 'user' || turn_id === undefined) &&
  !content.some(({ type }) => type === 'tool_result' || type === 'reminder')

/** Adds a final row. */
export function addRow(before: Window, row: TranscriptMessage): Window {
  const after = { window: [...before.window, row], size: before.size + sizeOf(row) }
  return over(after.window.length, after.size, 1) ? cut(after) : after
}
/**
 * Replaces the rows that a summary covers with the summary. It covers every earlier summary, also
 * one whose sequence number is higher because rows were added while it was created.
 */
export const replaceWithSummary = (
  { window }: Window,
  summary: TranscriptMessage,
  covered: number,
): Window =>
  measured([
    summary,
    ...window.filter(
      ({ entry_type, sequence }) => entry_type !== 'compaction' && (sequence ?? 0) > covered,
    ),
  ])
/** Whether the window should be compacted before its bounds force a cut. */
export const isNearlyFull = ({ window, size }: Window): boolean => over(window.length, size, 0.75)

function cut({ window, size }: Window): Window {
  const summary = window[0]?.entry_type === 'compaction' ? window[0] : undefined
  const rest = summary ? window.slice(1) : window
  let from = 0
  let left = size - (summary ? sizeOf(summary) : 0)
  for (const [index, row] of rest.entries()) {
    if (index > 0 && begins(row)) {
      from = index
      if (!over(rest.length - index, left, 0.5)) break
    }
    left -= sizeOf(row)
  }
  return measured([...(summary ? [summary] : []), ...rest.slice(from)])
}
