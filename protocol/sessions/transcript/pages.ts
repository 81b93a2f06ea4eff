/**
 * Pages of a transcript as views answer them. Each thing stands at the revision of its last change and is shown as it is now, so
 * what changed after a revision is a range. Whoever has taken all pages up to one without `more` has everything up to its
 * `revision`; whoever stops between two goes on after `through`.
 */
import type { Interaction } from '../../interactions/schema.ts'
import type { Pass } from '../events.ts'
import type { TranscriptMessage, TurnUpsert } from '../schema.ts'

export interface TranscriptQuestion {
  readonly session_id: string
  /** What changed after this revision; or after the message of this number; without both: the newest part. */
  readonly after?: number
  readonly after_sequence?: number
  /** Nothing that changed after this revision; absent: up to now. Open questions and streaming rows are always those of now. */
  readonly until?: number
  /** Things on a page; it is also bounded by bytes, and has at least one. */
  readonly limit: number
}
/** Something as it is now, and the revision of its last change. */
export interface Changed<T> {
  readonly revision: number
  readonly record: T
}
/** What the older stream tells of a summary besides its row. */
export type Summing = Pick<Pass, 'trigger' | 'message_count' | 'summary_model'>
export interface TranscriptPage {
  /** What was asked for: the revision after which this page begins; −1 for the newest part. */
  readonly after: number
  /** The page has everything that changed in (after, through]. */
  readonly through: number
  /** The revision at which this page and those that follow it end. */
  readonly cut: number
  readonly more: boolean
  /** Of the session when it was asked, and the journal cursor of its last entry. */
  readonly revision: number
  readonly last: number
  /** By revision, which for final rows is the order of their sequences. */
  readonly messages: readonly (Changed<TranscriptMessage> & { readonly summing?: Summing })[]
  readonly turns: readonly Changed<TurnUpsert>[]
  readonly interactions: readonly Changed<Interaction>[]
  /** Every turn that has not ended. */
  readonly active: readonly Changed<TurnUpsert>[]
  /** Without `more`: every row that streams, and every question that is open. */
  readonly live: readonly Changed<TranscriptMessage>[]
  readonly pending: readonly Interaction[]
}
/** What a turn has that is not committed, as views answer it. */
export interface LiveRowsOfTurn {
  readonly rows: readonly Changed<TranscriptMessage>[]
}
