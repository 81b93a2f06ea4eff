/**
 * Maintains the streaming rows of a session for its follower: their stored content or, if a row has
 * none, the content of its chunks so far (the shown content).
 * protocol/sessions/transcript/previews.ts defines which chunks are valid.
 */
import { patchBlock, rowIn, type SessionFrame } from '../../../protocol/sessions/events.ts'
import type { TranscriptMessage } from '../../../protocol/sessions/schema.ts'
import { settledTurns } from '../../../protocol/sessions/settled.ts'
import type { Changed } from '../../../protocol/sessions/transcript/pages.ts'
import {
  type Appended,
  appendDelta,
  type Preview,
  type Previewed,
  rank,
} from '../../../protocol/sessions/transcript/previews.ts'

/**
 * The effect of a chunk.
 * - `shown`: the chunk continues the known content, or begins newer output.
 * - `hole`: chunks before it are missing.
 * - `void`: the chunk is outdated or a repeat, and is ignored.
 */
interface Heard {
  readonly as: 'shown' | 'hole' | 'void'
  readonly appended?: Appended | undefined
  readonly reset?: TranscriptMessage | undefined
}
interface Live {
  row: TranscriptMessage
  /** The revision of the `message.upsert` that began the row. */
  begun: number
}
/** The effect of a stored frame on the streaming rows. */
interface Applied {
  readonly row?: TranscriptMessage
  /**
   * Whether the frame invalidates the shown content: it restarts a row, or stores blocks of a row
   * that had only chunks.
   */
  readonly void?: boolean
  /** If the frame ends a row, the number of blocks in the shown content of this row. */
  readonly completes?: number
}

export class LiveRows {
  readonly #rows = new Map<string, Live>()
  readonly #shown = new Map<string, Previewed>()
  /** Rows that `unsought` has already returned, each as its id and the revision of its start. */
  readonly #sought = new Set<string>()

  /**
   * Replaces all rows with the rows of a view. Drops the shown content of rows that were restarted,
   * have stored content, or are no longer streaming.
   */
  set(rows: readonly Changed<TranscriptMessage>[]): void {
    this.#rows.clear()
    for (const { revision, record } of rows)
      this.#rows.set(record.id, { row: record, begun: revision })
    for (const [id, { base }] of [...this.#shown])
      if (base < (this.#open(id)?.begun ?? Infinity)) this.#shown.delete(id)
    const begun = new Set(rows.map(({ revision, record }) => `${record.id} ${revision}`))
    for (const key of [...this.#sought]) if (!begun.has(key)) this.#sought.delete(key)
  }

  /** Applies a stored frame, and returns its effect on the streaming rows. */
  apply(frame: SessionFrame, revision: number): Applied {
    switch (frame.type) {
      case 'message.upsert': {
        const row = rowIn(frame)
        const known = this.#rows.has(row.id)
        const completes = this.#shown.get(row.id)?.content.length ?? 0
        this.#shown.delete(row.id)
        if (row.status === 'final') this.#rows.delete(row.id)
        else this.#rows.set(row.id, { row, begun: revision })
        if (row.status !== 'final') return { row, void: known }
        return completes > 0 ? { completes } : {}
      }
      case 'message.block':
        return this.#change(frame.message_id, (content) => {
          const next = [...content]
          next[frame.content_index] = frame.block
          return next
        })
      case 'message.block.patch': {
        const { content_index, type: _, session_id: __, message_id, ...change } = frame
        return this.#change(message_id, (content) =>
          content.map((block, index) =>
            index === content_index ? patchBlock(block, change) : block,
          ),
        )
      }
      case 'turn.upsert':
        if (settledTurns.has(frame.status)) {
          for (const [id, { row }] of [...this.#rows]) {
            if (row.turn_id !== frame.id) continue
            this.#rows.delete(id)
            this.#shown.delete(id)
          }
        }
        return {}
      case 'interaction.upsert':
        return {}
    }
  }
  #change(
    id: string,
    change: (content: TranscriptMessage['content']) => TranscriptMessage['content'],
  ): Applied {
    const live = this.#rows.get(id)
    if (!live) return {}
    live.row = { ...live.row, content: change(live.row.content) }
    return { row: live.row, void: this.#shown.delete(id) }
  }

  /** Returns the current rows, with their shown content. */
  rows(): TranscriptMessage[] {
    return [...this.#rows.keys()].map((id) => this.#composed(id))
  }
  /** Returns the streaming row that contains this tool use; undefined if no such row does. */
  rowOf(tool_use: string): TranscriptMessage | undefined {
    for (const { row } of this.#rows.values())
      if (row.content.some((block) => block.type === 'tool_use' && block.id === tool_use))
        return row
    return undefined
  }
  #composed(id: string): TranscriptMessage {
    const { row } = this.#rows.get(id) as Live
    return withPreview(row, this.#shown.get(id))
  }
  /**
   * Returns the streaming row with this id. Returns undefined if no such row is streaming, or if it
   * has stored content.
   */
  #open(id: string): Live | undefined {
    const live = this.#rows.get(id)
    return live?.row.content.length === 0 ? live : undefined
  }

  /** Applies a chunk if it continues the known content or begins newer output. */
  hear(preview: Preview): Heard {
    const live = this.#open(preview.message_id)
    const shown = this.#shown.get(preview.message_id)
    if (!live || preview.base < live.begun || (shown && rank(preview, shown) < 0))
      return { as: 'void' }
    const same = shown !== undefined && rank(preview, shown) === 0
    if (same && preview.n <= shown.n) return { as: 'void' }
    if (preview.n !== (same ? shown.n : 0) + 1) return { as: 'hole' }
    const before = same ? shown.content : []
    const appended = appendDelta(before, preview.delta)
    const { session_id, turn_id, message_id, base, born, n } = preview
    this.#shown.set(message_id, {
      session_id,
      turn_id,
      message_id,
      base,
      born,
      n,
      content: appended?.content ?? before,
    })
    return {
      as: 'shown',
      appended,
      reset: shown && !same && shown.content.length > 0 ? live.row : undefined,
    }
  }
  /**
   * Applies a whole preview of a row. Returns the row with its new content, or undefined if the
   * preview contains nothing new. `again` is true if the row had shown content before.
   */
  take(given: Previewed): { readonly row: TranscriptMessage; readonly again: boolean } | undefined {
    const live = this.#open(given.message_id)
    const shown = this.#shown.get(given.message_id)
    if (
      !live ||
      given.base < live.begun ||
      (shown && (rank(given, shown) < 0 || (rank(given, shown) === 0 && given.n <= shown.n)))
    )
      return undefined
    this.#shown.set(given.message_id, given)
    return {
      row: this.#composed(given.message_id),
      again: shown !== undefined && shown.content.length > 0,
    }
  }
  /**
   * Returns the ids of rows whose chunks may have been published before this follower subscribed.
   * Each row is returned only once, unless it is restarted.
   */
  unsought(): string[] {
    return [...this.#rows].flatMap(([id, { begun }]) => {
      const key = `${id} ${begun}`
      if (!this.#open(id) || this.#shown.has(id) || this.#sought.has(key)) return []
      this.#sought.add(key)
      return [id]
    })
  }
}

/**
 * Returns a row with the content of its preview, or unchanged if it has stored content or no
 * preview.
 */
export const withPreview = (
  row: TranscriptMessage,
  shown: Previewed | undefined,
): TranscriptMessage =>
  row.content.length === 0 && shown ? { ...row, content: [...shown.content] } : row
