/**
 * The window: the rows that the model is shown. Compaction keeps it small; where that is switched off or fails, it is bounded
 * all the same, so that neither a snapshot nor a commit grows with the conversation.
 *
 * Invariants:
 * W1. It begins with the last summary, if there is one, and ends with the last row.
 * W2. Beyond its bounds it is cut to about the half, so that cutting is rare and what providers cache of its beginning lasts.
 * W3. It is cut before what a person said, or what was appended: no result is left without its tool use, and of the newest turn
 *     nothing is cut, however long it is.
 */
import { limits } from '../../../protocol/sessions/limits.ts'
import type { TranscriptMessage } from '../../../protocol/sessions/schema.ts'

export interface Window {
  readonly window: readonly TranscriptMessage[]
  /** Characters of its content as JSON. */
  readonly size: number
}
const sizeOf = ({ content }: TranscriptMessage): number => JSON.stringify(content).length
const measured = (window: readonly TranscriptMessage[]): Window => ({
  window,
  size: window.reduce((sum, row) => sum + sizeOf(row), 0),
})
const over = (rows: number, size: number, share: number): boolean =>
  rows > limits.window.rows * share || size > limits.window.size * share
/** A row from which on a conversation can be read. */
const begins = ({ role, turn_id, content }: TranscriptMessage): boolean =>
  (role === 'user' || turn_id === undefined) &&
  !content.some(({ type }) => type === 'tool_result' || type === 'reminder')

/** A final row enters. */
export function entered(before: Window, row: TranscriptMessage): Window {
  const after = { window: [...before.window, row], size: before.size + sizeOf(row) }
  return over(after.window.length, after.size, 1) ? cut(after) : after
}
/** A summary takes the place of the rows that it covers. */
export const summedUp = ({ window }: Window, summary: TranscriptMessage, covered: number): Window =>
  measured([summary, ...window.filter(({ sequence }) => (sequence ?? 0) > covered)])
/** Whether it should be summed up before its bounds do away with something. */
export const nearlyFull = ({ window, size }: Window): boolean => over(window.length, size, 0.75)

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
