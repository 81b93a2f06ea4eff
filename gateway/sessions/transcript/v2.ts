/**
 * The format of the transcript stream: upserts of records, blocks and chunks. A frame has an id
 * only if everything up to its revision has been sent. These frames have one: turns, questions and
 * final rows as they are committed, the last frame of a page, and `stream.ready`. Streaming content
 * never has an id. The older format is in `v1.ts`.
 */
import type { JsonObject } from '../../../protocol/common.ts'
import { rowIn, type SessionFrame } from '../../../protocol/sessions/events.ts'
import type { TranscriptMessage } from '../../../protocol/sessions/schema.ts'
import { settledTurns } from '../../../protocol/sessions/settled.ts'
import type { Changed } from '../../../protocol/sessions/transcript/pages.ts'
import { type Caught, type Dialect, frameText } from './change.ts'

/** Returns whether a committed frame has an id, from which a client can resume. */
const isPlace = (frame: SessionFrame): boolean =>
  frame.type === 'turn.upsert' ||
  frame.type === 'interaction.upsert' ||
  (frame.type === 'message.upsert' && frame.status === 'final')

/**
 * Creates the format of the transcript stream.
 * @param seal returns the cursor of a revision.
 * @param idle time in milliseconds for which the stream of a session without active turns stays
 * open.
 */
export function transcriptDialect(
  session_id: string,
  seal: (revision: number) => string,
  idle: number,
): Dialect {
  const row = (message: TranscriptMessage): string =>
    frameText('message.upsert', message as JsonObject)
  /**
   * Returns the frames of a page: active turns, final rows, ended turns and questions, and then the
   * streaming rows. A client that has joined receives them in the order of their revisions, so that
   * a question precedes the turn that waits for it. The last frame before the streaming rows has an
   * id.
   */
  const caught = ({ page, rows, tail }: Caught): string => {
    const { after, through, messages, turns, interactions, active, pending } = page
    const goingOn = active.filter(({ revision }) => revision > after)
    const frame = (type: string) => (one: Changed<JsonObject>) => ({ type, ...one })
    const state = [
      ...goingOn.map(frame('turn.upsert')),
      ...messages.map(frame('message.upsert')),
      ...turns.filter(({ record }) => settledTurns.has(record.status)).map(frame('turn.upsert')),
      ...(after < 0
        ? pending.map((record) => ({ type: 'interaction.upsert', record, revision: 0 }))
        : interactions.map(frame('interaction.upsert'))),
    ]
    if (tail) state.sort((a, b) => a.revision - b.revision)
    const frames = state.map(({ type, record }, index) =>
      frameText(type, record, index === state.length - 1 ? seal(through) : undefined),
    )
    return [...frames, ...rows.map(row)].join('')
  }
  return {
    name: 'v2',
    caught,
    ready: (revision) => {
      const resume_cursor = seal(revision)
      return frameText('stream.ready', { session_id, resume_cursor }, resume_cursor)
    },
    change: (change) => {
      switch (change.kind) {
        case 'frame': {
          const { frame } = change
          const { type, ...data } =
            frame.type === 'message.upsert' ? { type: frame.type, ...rowIn(frame) } : frame
          // If chunks of a block were already sent, the whole block is sent, and replaces the
          // chunks.
          const blocks =
            frame.type === 'message.upsert'
              ? frame.content.slice(0, change.completes ?? 0).map((block, content_index) =>
                  frameText('message.block', {
                    session_id,
                    message_id: frame.id,
                    content_index,
                    block,
                  }),
                )
              : []
          return (
            blocks.join('') +
            frameText(type, data as JsonObject, isPlace(frame) ? seal(change.revision) : undefined)
          )
        }
        case 'row':
          return row(change.row)
        case 'piece': {
          const {
            preview: { message_id },
            appended,
          } = change
          if (!appended) return ''
          const { index: content_index, opened, added } = appended
          const empty =
            'text' in added ? { type: 'text', text: '' } : { type: 'thinking', thinking: '' }
          const place = { session_id, message_id, content_index }
          const delta = frameText('message.delta', { ...place, ...added })
          return opened ? frameText('message.block', { ...place, block: empty }) + delta : delta
        }
        case 'note':
          return ''
      }
    },
    end: (reason) => frameText('stream.end', { session_id, reason }),
    patience: () => idle,
  }
}
