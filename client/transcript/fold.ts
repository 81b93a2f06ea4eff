/**
 * The transcript as a client stores it: three maps and a cursor, changed by frames and pages. This
 * module is pure: it uses no network and no clock, and runs anywhere.
 *
 * Invariants:
 * K1. Every item is replaced by id. Only deltas append. Applying any other frame, or a page, is
 *     therefore idempotent.
 * K2. From the same cursor, frames and pages result in the same messages and turns.
 * K3. Frames of unknown types are ignored, but their ids advance the cursor.
 */
import type { Interaction } from '../../protocol/interactions/schema.ts'
import { type BlockPatch, patchBlock } from '../../protocol/sessions/events.ts'
import type {
  TranscriptMessage,
  TranscriptSnapshot,
  TranscriptTurn,
  TurnUpsert,
} from '../../protocol/sessions/schema.ts'
import { settledTurns } from '../../protocol/sessions/settled.ts'
import type { Block } from '../../protocol/sessions/turns/blocks.ts'

/** A frame as received: `event_type` and its payload. */
export type TranscriptFrame = { readonly event_type: string } & Readonly<Record<string, unknown>>
/** Statuses of questions that have not ended. */
const open: ReadonlySet<string> = new Set(['pending', 'in_review'])
const byAge = (a: TranscriptTurn, b: TranscriptTurn): number =>
  a.created_at < b.created_at
    ? -1
    : a.created_at > b.created_at
      ? 1
      : a.id < b.id
        ? -1
        : a.id > b.id
          ? 1
          : 0
const withoutPhase = ({ phase: _, ...turn }: TurnUpsert): TranscriptTurn => turn
/** A page as servers send it. Some servers omit `interactions`. */
type SnapshotPage = Omit<TranscriptSnapshot, 'interactions'> & {
  readonly interactions?: TranscriptSnapshot['interactions'] | undefined
}

export class Transcript {
  readonly rows = new Map<string, TranscriptMessage>()
  readonly turns = new Map<string, TranscriptTurn>()
  readonly interactions = new Map<string, Interaction>()
  /** The cursor from which to continue; undefined at first, unless a stored one was given. */
  cursor: string | undefined
  /**
   * Whether the current connection has delivered everything that was stored when it was opened;
   * `begin` resets the value.
   */
  ready = false
  #place: string | undefined

  /** @param cursor a stored cursor to continue from. */
  constructor(cursor?: string) {
    this.cursor = cursor
  }
  /** Prepares for a new connection, whose content is incomplete until `stream.ready`. */
  begin(): void {
    this.ready = false
    this.#place = undefined
  }

  /**
   * Applies a frame.
   * @param id the id of the event, if it has one. It is also the cursor after later frames without
   * an id.
   */
  apply(frame: TranscriptFrame, id?: string): void {
    if (id !== undefined && id !== '') this.#place = id
    const { event_type, ...data } = frame
    const given: unknown = data
    switch (event_type) {
      case 'message.upsert':
        this.#row(given as TranscriptMessage)
        break
      case 'message.block': {
        const { message_id, content_index, block } = given as {
          message_id: string
          content_index: number
          block: Block
        }
        this.#content(message_id, (content) => {
          while (content.length < content_index) content.push({} as Block)
          content[content_index] = block
        })
        break
      }
      case 'message.block.patch': {
        const { message_id, content_index, ...change } = given as {
          message_id: string
          content_index: number
        } & BlockPatch
        this.#content(message_id, (content) => {
          const block = content[content_index]
          if (block) content[content_index] = patchBlock(block, change)
        })
        break
      }
      case 'message.delta': {
        const {
          message_id,
          content_index,
          text = '',
          thinking = '',
        } = given as { message_id: string; content_index: number; text?: string; thinking?: string }
        this.#content(message_id, (content) => {
          const block = content[content_index] as { text?: string; thinking?: string } | undefined
          if (block)
            content[content_index] = {
              ...block,
              ...(text !== '' && { text: (block.text ?? '') + text }),
              ...(thinking !== '' && { thinking: (block.thinking ?? '') + thinking }),
            } as Block
        })
        break
      }
      case 'turn.upsert':
        // Pages contain no `phase`, so it is removed to obtain the same state from frames and
        // pages.
        this.#turn(withoutPhase(given as TurnUpsert))
        break
      case 'interaction.upsert':
        this.interactions.set((given as Interaction).id, given as Interaction)
        break
      case 'stream.ready':
        this.cursor = (given as { resume_cursor: string }).resume_cursor
        this.ready = true
    }
    if (this.#place !== undefined) this.cursor = this.#place
  }

  /**
   * Applies a page. The last page contains every streaming row and every open question, so
   * streaming rows and open questions that are missing from it are removed. A page without
   * `interactions` does not affect questions. Some servers send such pages.
   */
  page({ messages, turns, interactions, has_more, resume_cursor }: SnapshotPage): void {
    for (const row of messages) this.#row(row)
    for (const turn of turns) this.#turn(turn)
    for (const interaction of interactions ?? []) this.interactions.set(interaction.id, interaction)
    this.cursor = resume_cursor
    if (has_more) return
    const here = new Set([...messages, ...(interactions ?? [])].map(({ id }) => id))
    for (const { id, status } of [...this.rows.values()])
      if (status === 'streaming' && !here.has(id)) this.rows.delete(id)
    if (!interactions) return
    for (const { id, status } of [...this.interactions.values()])
      if (open.has(status) && !here.has(id)) this.interactions.delete(id)
  }

  /**
   * Returns the messages in reading order: committed rows by sequence number, then streaming rows
   * by turn.
   */
  messages(): TranscriptMessage[] {
    const ageOf = ({ turn_id }: TranscriptMessage): TranscriptTurn | undefined =>
      turn_id === undefined ? undefined : this.turns.get(turn_id)
    return [...this.rows.values()].sort((a, b) => {
      if (a.sequence !== null || b.sequence !== null)
        return (a.sequence ?? Infinity) - (b.sequence ?? Infinity)
      const [of, other] = [ageOf(a), ageOf(b)]
      return (of && other ? byAge(of, other) : 0) || (a.turn_index ?? 0) - (b.turn_index ?? 0)
    })
  }
  /** Returns the newest turn that has not ended; undefined if all have ended. */
  active(): TranscriptTurn | undefined {
    return [...this.turns.values()]
      .filter(({ status }) => !settledTurns.has(status))
      .sort(byAge)
      .at(-1)
  }
  /** Returns the questions that have not ended. */
  pending(): Interaction[] {
    return [...this.interactions.values()].filter(({ status }) => open.has(status))
  }

  #row(row: TranscriptMessage): void {
    this.rows.set(row.id, { ...row, content: row.content ?? [] })
  }
  #content(id: string, change: (content: Block[]) => void): void {
    const row = this.rows.get(id)
    if (!row) return
    const content = [...row.content]
    change(content)
    this.rows.set(id, { ...row, content })
  }
  #turn(turn: TranscriptTurn): void {
    this.turns.set(turn.id, turn)
    if (!settledTurns.has(turn.status)) return
    for (const { id, status, turn_id } of [...this.rows.values()])
      if (status === 'streaming' && turn_id === turn.id) this.rows.delete(id)
  }
}
