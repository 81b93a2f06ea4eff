/**
 * The changes that followers of a session are shown, independent of the stream format: transcript
 * frames, or the older numbered events.
 */
import type { JsonObject } from '../../../protocol/common.ts'
import type { SessionEvent, SessionFrame } from '../../../protocol/sessions/events.ts'
import type { TranscriptMessage } from '../../../protocol/sessions/schema.ts'
import { settledTurns } from '../../../protocol/sessions/settled.ts'
import type { TranscriptPage } from '../../../protocol/sessions/transcript/pages.ts'
import type { Appended, Preview } from '../../../protocol/sessions/transcript/previews.ts'

export type Change =
  /**
   * A stored frame as it was committed. `row`: the streaming row to which it belongs, in the state
   * after it. `again`: it voids what that row has shown. `completes`: it ends a row of which this
   * many blocks were shown in chunks. `began`: its turn had begun before.
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
  /** Another stored event, which is not part of the transcript; `row`: the message it refers to. */
  | {
      readonly kind: 'note'
      readonly event: SessionEvent
      readonly at: number
      readonly row?: TranscriptMessage
    }
  /**
   * A whole streaming row, which replaces everything shown of it before. `again`: chunks of it were
   * shown before.
   */
  | {
      readonly kind: 'row'
      readonly row: TranscriptMessage
      readonly again: boolean
      readonly at: number
    }
  /** A chunk of a streaming row. */
  | { readonly kind: 'piece'; readonly preview: Preview; readonly appended?: Appended }
/**
 * The changes since a client's cursor, in their current state. `rows`: the streaming rows with
 * their content so far. `begun`: the turns whose begin the client was already shown.
 */
export interface Caught {
  readonly page: TranscriptPage
  readonly rows: readonly TranscriptMessage[]
  readonly begun: ReadonlySet<string>
  readonly at: number
}
/** Why the server ends a stream. */
export type End = 'idle' | 'rotate'

/**
 * A stream format. The methods return the text of whole frames; an empty text means that nothing is
 * sent.
 */
export interface Dialect {
  readonly name: 'v1' | 'v2'
  caught(caught: Caught): string
  /** Reports that everything up to a revision was sent. */
  ready(revision: number): string
  change(change: Change): string
  end(reason: End): string
  /**
   * Milliseconds for which a session without active turns is still followed.
   * @param settled the client was shown the end of a turn.
   */
  patience(settled: boolean): number
}

/**
 * Whether a compaction is in progress after an event; undefined if the event does not determine it.
 */
export const compacts = ({ type }: SessionEvent): boolean | undefined =>
  type === 'compaction.started' ||
  (type === 'compaction.created' || type === 'compaction.failed' ? false : undefined)
/** The active turns of a page that are not queued. */
export const begunOf = ({ active }: TranscriptPage): string[] =>
  active.filter(({ record }) => record.status !== 'queued').map(({ record }) => record.id)
/** Whether a change ends a turn. */
export const endsTurn = (change: Change): boolean =>
  change.kind === 'frame' &&
  change.frame.type === 'turn.upsert' &&
  settledTurns.has(change.frame.status)

/** Characters that some clients treat as line ends; they are escaped. */
const LINES = /[\u0085\u2028\u2029]/g
/** Returns JSON on a single line, whichever line ends the client recognizes. */
function oneLine(data: JsonObject): string {
  const json = JSON.stringify(data)
  return json.search(LINES) >= 0
    ? json.replace(
        LINES,
        (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
      )
    : json
}
/** Returns the text of one frame. */
export const spell = (event_type: string, data: JsonObject, id?: string | number): string =>
  `${id === undefined ? '' : `id: ${id}\n`}event: ${event_type}\ndata: ${oneLine({ event_type, ...data })}\n\n`
