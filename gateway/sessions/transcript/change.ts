/** What a session's followers are shown, before a stream spells it: the transcript as frames, or the older numbered events. */
import type { JsonObject } from '../../../protocol/common.ts'
import type { SessionEvent, SessionFrame } from '../../../protocol/sessions/events.ts'
import type { TranscriptPage } from '../../../protocol/sessions/transcript/pages.ts'
import type { Appended, Preview } from '../../../protocol/sessions/transcript/previews.ts'
import { settledTurns } from '../../../protocol/sessions/settled.ts'
import type { TranscriptMessage } from '../../../protocol/sessions/schema.ts'

export type Change =
  /** A stored frame as it was committed; `row`: the row that streams which it belongs to, as it is after it; `again`: it begins that row anew; `completes`: it ends a row of which so many blocks were shown by pieces; `began`: it is of a turn that had begun before. */
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
  /** Another stored event, of which no transcript knows; `row`: the message it speaks of. */
  | {
      readonly kind: 'note'
      readonly event: SessionEvent
      readonly at: number
      readonly row?: TranscriptMessage
    }
  /** A row that streams, whole: what it had before is void. `again`: pieces of it were shown before. */
  | {
      readonly kind: 'row'
      readonly row: TranscriptMessage
      readonly again: boolean
      readonly at: number
    }
  /** A piece of a row that streams. */
  | { readonly kind: 'piece'; readonly preview: Preview; readonly appended?: Appended }
/** What changed since a client's cursor, as it is now; `rows`: those that stream, with what they have shown so far; `begun`: turns of which the client was shown that they began. */
export interface Caught {
  readonly page: TranscriptPage
  readonly rows: readonly TranscriptMessage[]
  readonly begun: ReadonlySet<string>
  readonly at: number
}
/** Why a stream is ended on purpose. */
export type End = 'idle' | 'rotate'

/** One way to spell what happens. Texts are whole frames; an empty one shows nothing. */
export interface Dialect {
  readonly name: 'v1' | 'v2'
  caught(caught: Caught): string
  /** Everything up to a revision was given. */
  ready(revision: number): string
  change(change: Change): string
  end(reason: End): string
  /** Milliseconds for which a session without active turns is still followed. @param settled a turn was seen to end. */
  patience(settled: boolean): number
}

/** Whether a compaction is under way after an event; undefined: the event does not say. */
export const compacts = ({ type }: SessionEvent): boolean | undefined =>
  type === 'compaction.started' ||
  (type === 'compaction.created' || type === 'compaction.failed' ? false : undefined)
/** Turns of a page that are under way and were not just queued. */
export const begunOf = ({ active }: TranscriptPage): string[] =>
  active.filter(({ record }) => record.status !== 'queued').map(({ record }) => record.id)
/** Whether a turn ends here. */
export const endsTurn = (change: Change): boolean =>
  change.kind === 'frame' &&
  change.frame.type === 'turn.upsert' &&
  settledTurns.has(change.frame.status)

/** Characters that some clients take for the end of a line, spelled so that none does. */
const LINES = /[\u0085\u2028\u2029]/g
/** JSON on one line, whatever a reader takes for one. */
function oneLine(data: JsonObject): string {
  const json = JSON.stringify(data)
  return json.search(LINES) >= 0
    ? json.replace(
        LINES,
        (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
      )
    : json
}
/** One frame. */
export const spell = (event_type: string, data: JsonObject, id?: string | number): string =>
  `${id === undefined ? '' : `id: ${id}\n`}event: ${event_type}\ndata: ${oneLine({ event_type, ...data })}\n\n`
