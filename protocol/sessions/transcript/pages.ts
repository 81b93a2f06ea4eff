/**
 * Pages of a transcript as views return them. Each item has the revision of its last change and
 * appears in its current form, so a page contains the changes of a range of revisions. If `more` is
 * true, the reader continues after the page's `through`. After a page without `more`, the reader
 * has all changes up to the `cut` of that page.
 */
import type { Interaction } from '../../interactions/schema.ts'
import type { Pass } from '../events.ts'
import type { TranscriptMessage, TurnUpsert } from '../schema.ts'

export interface TranscriptQuestion {
  readonly session_id: string
  /**
   * Selects the changes after this revision. `after_sequence` selects the changes after the message
   * with this sequence. If both are absent, the newest part of the transcript is selected.
   */
  readonly after?: number
  readonly after_sequence?: number
  /**
   * Only changes up to and including this revision are returned; absent: all changes. `active`,
   * `live` and `pending` are not restricted.
   */
  readonly until?: number
  /**
   * Maximum number of items on a page. A page is also limited in size, but the first item is never
   * omitted.
   */
  readonly limit: number
}
/** The current form of an item, and the revision of its last change. */
export interface Changed<T> {
  readonly revision: number
  readonly record: T
}
/** The fields of a compaction that the numbered stream adds to the summary row. */
export type SummaryFields = Pick<Pass, 'trigger' | 'message_count' | 'summary_model'>
export interface TranscriptPage {
  /** The revision after which the page begins; −1 for the newest part of the transcript. */
  readonly after: number
  /**
   * The page contains all changes with revisions greater than `after`, up to and including
   * `through`. A page of the newest part omits older messages.
   */
  readonly through: number
  /** The revision at which the last page of the query ends. */
  readonly cut: number
  readonly more: boolean
  /** Revision of the session at the time of the query. */
  readonly revision: number
  /** Cursor of the last entry of the session. */
  readonly last: number
  /** Final rows, ordered by revision, which is also the order of their sequences. */
  readonly messages: readonly (Changed<TranscriptMessage> & { readonly summing?: SummaryFields })[]
  readonly turns: readonly Changed<TurnUpsert>[]
  readonly interactions: readonly Changed<Interaction>[]
  /** Every turn that has not ended. */
  readonly active: readonly Changed<TurnUpsert>[]
  /** All streaming rows; empty while `more` is true. */
  readonly live: readonly Changed<TranscriptMessage>[]
  /** All open interactions; empty while `more` is true. */
  readonly pending: readonly Interaction[]
}
/** The streaming rows of a turn, as views return them. */
export interface LiveRowsOfTurn {
  readonly rows: readonly Changed<TranscriptMessage>[]
}
