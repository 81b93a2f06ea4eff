/**
 * Pages of a transcript as views return them. Each item has the revision of its last change and
 * appears in its current form, so the changes after a revision form a range. A reader that has all
 * pages up to one without `more` has everything up to that page's `revision`; a reader that stops
 * earlier continues after `through`.
 */
import type { Interaction } from '../../interactions/schema.ts'
import type { Pass } from '../events.ts'
import type { TranscriptMessage, TurnUpsert } from '../schema.ts'

export interface TranscriptQuestion {
  readonly session_id: string
  /**
   * Selects changes after this revision, or after the message with this number; without both: the
   * newest part.
   */
  readonly after?: number
  readonly after_sequence?: number
  /**
   * Excludes changes after this revision; absent: up to now. Open questions and streaming rows are
   * always the current ones.
   */
  readonly until?: number
  /**
   * Maximum number of items on a page. A page is also bounded by bytes, but has at least one item.
   */
  readonly limit: number
}
/** The current form of an item, and the revision of its last change. */
export interface Changed<T> {
  readonly revision: number
  readonly record: T
}
/** Fields of a compaction that the older stream adds to the row of its summary. */
export type Summing = Pick<Pass, 'trigger' | 'message_count' | 'summary_model'>
export interface TranscriptPage {
  /** The requested revision, after which this page begins; −1 for the newest part. */
  readonly after: number
  /** The page contains everything that changed in (after, through]. */
  readonly through: number
  /** The revision at which this page and its successors end. */
  readonly cut: number
  readonly more: boolean
  /**
   * `revision`: the session's revision at the time of the query; `last`: the journal cursor of its
   * last entry.
   */
  readonly revision: number
  readonly last: number
  /** Ordered by revision, which for final rows is also the order of their sequences. */
  readonly messages: readonly (Changed<TranscriptMessage> & { readonly summing?: Summing })[]
  readonly turns: readonly Changed<TurnUpsert>[]
  readonly interactions: readonly Changed<Interaction>[]
  /** Every turn that has not ended. */
  readonly active: readonly Changed<TurnUpsert>[]
  /** Only without `more`: every streaming row, and every open question. */
  readonly live: readonly Changed<TranscriptMessage>[]
  readonly pending: readonly Interaction[]
}
/** Uncommitted rows of a turn, as views return them. */
export interface LiveRowsOfTurn {
  readonly rows: readonly Changed<TranscriptMessage>[]
}
