/**
 * The changes that the clients of a session's follower receive, independent of the stream format.
 * The formats are transcript frames (`v2.ts`) and the older numbered events (`v1.ts`).
 */
import type { JsonObject } from '../../../protocol/common.ts'
import type { SessionEvent, SessionFrame } from '../../../protocol/sessions/events.ts'
import type { TranscriptMessage } from '../../../protocol/sessions/schema.ts'
import { settledTurns } from '../../../protocol/sessions/settled.ts'
import type { TranscriptPage } from '../../../protocol/sessions/transcript/pages.ts'
import type { Appended, Preview } from '../../../protocol/sessions/transcript/previews.ts'
import { oneLine } from '../../streams/sse.ts'

/** A change to a session, as it is passed to a stream format. */
export type Change =
  /**
   * A stored frame as it was committed.
   * - `row`: the streaming row to which the frame belongs, in the state after the frame.
   * - `again`: whether the frame invalidates chunks of this row that were already sent.
   * - `completes`: if the frame ends a row, the number of the row's blocks that were already sent
   *   as chunks.
   * - `began`: whether the frame's turn had already begun.
   */
  | {
      readonly kind: 'frame'
      readonly revision: number
      readonly frame: SessionFrame
      readonly at: number
      readonly row?: TranscriptMessage
      readonly again?: boolean
      readonly completes?: number
      readonly began?: boolean
    }
  /** A stored event that is not part of the transcript. `row` is the message to which it refers. */
  | {
      readonly kind: 'note'
      readonly event: SessionEvent
      readonly at: number
      readonly row?: TranscriptMessage
    }
  /**
   * A whole streaming row, which replaces everything sent for this row so far. `again` is true if
   * chunks of the row were sent before.
   */
  | {
      readonly kind: 'row'
      readonly row: TranscriptMessage
      readonly again: boolean
      readonly at: number
    }
  /** A chunk of a streaming row. */
  | {
      readonly kind: 'piece'
      readonly preview: Preview
      readonly appended?: Appended | undefined
    }
/**
 * The changes since a client's cursor, represented by the current state of the changed records.
 * `rows` are the streaming rows with their content so far. `begun` are the turns whose start the
 * client has received. `at` is the time in Unix milliseconds. `tail`: whether the client has joined,
 * so that the changes must be sent in the order in which they were committed.
 */
export interface Caught {
  readonly page: TranscriptPage
  readonly rows: readonly TranscriptMessage[]
  readonly begun: ReadonlySet<string>
  readonly at: number
  readonly tail: boolean
}
/**
 * The reason why the server ends a stream: the client has nothing to wait for (`idle`), or it
 * should reconnect (`rotate`).
 */
export type End = 'idle' | 'rotate'

/**
 * A stream format. The methods return the text of whole frames. An empty text means that nothing is
 * sent.
 */
export interface Dialect {
  readonly name: 'v1' | 'v2'
  caught(caught: Caught): string
  /** Returns the frame that reports that everything up to the given revision has been sent. */
  ready(revision: number): string
  change(change: Change): string
  end(reason: End): string
  /**
   * Returns the time in milliseconds for which the stream of a session without active turns stays
   * open.
   * @param settled whether the client has received the end of a turn.
   */
  patience(settled: boolean): number
}

/**
 * Returns whether a compaction is in progress after an event, or undefined if the event does not
 * determine it.
 */
export const isCompacting = ({ type }: SessionEvent): boolean | undefined =>
  type === 'compaction.started' ||
  (type === 'compaction.created' || type === 'compaction.failed' ? false : undefined)
/** Returns the ids of the active turns of a page that have begun. */
export const begunTurns = ({ active }: TranscriptPage): string[] =>
  active.filter(({ record }) => record.status !== 'queued').map(({ record }) => record.id)
/** Returns whether a change ends a turn. */
export const endsTurn = (change: Change): boolean =>
  change.kind === 'frame' &&
  change.frame.type === 'turn.upsert' &&
  settledTurns.has(change.frame.status)

/**
 * Returns the text of one frame, whose JSON begins with the event type. Without an id, a client
 * cannot resume after the frame.
 */
export function frameText(event_type: string, data: JsonObject, id?: string | number): string {
  // The text is joined, because a copy of the data with one more property takes longer.
  const json = oneLine(JSON.stringify(data))
  const rest = json === '{}' ? '}' : `,${json.slice(1)}`
  return `${id === undefined ? '' : `id: ${id}\n`}event: ${event_type}\ndata: {"event_type":"${event_type}"${rest}\n\n`
}
