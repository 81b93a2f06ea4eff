/**
 * Derives the entries of a transcript, from top to bottom: messages, their questions, and the ends
 * of turns. The functions are pure.
 *
 * Invariants:
 * N1. An entry keeps its key while it is shown. The streaming form of a message has the key of its
 *     final form.
 * N2. Messages are in the order of `Transcript.messages()`. A question follows the message that
 *     contains its tool use, and the end of a turn follows the turn's last message. Pending
 *     questions without such a message come last.
 */
import type { Interaction } from '../../protocol/interactions/schema.ts'
import type { TranscriptMessage, TranscriptTurn } from '../../protocol/sessions/schema.ts'
import { settledTurns } from '../../protocol/sessions/settled.ts'
import type { Block, ToolResultBlock } from '../../protocol/sessions/turns/blocks.ts'
import type { Transcript } from '../transcript/fold.ts'

export type Entry =
  | { readonly kind: 'message'; readonly key: string; readonly message: TranscriptMessage }
  | { readonly kind: 'question'; readonly key: string; readonly interaction: Interaction }
  | { readonly kind: 'end'; readonly key: string; readonly turn: TranscriptTurn }
/** Tool results by the id of the tool use. */
export type Results = ReadonlyMap<string, ToolResultBlock>

/** Whether a block is shown in its own message. A result is shown with its tool use instead. */
export const isShown = ({ type }: Block): boolean => type !== 'tool_result'
const byAge = (a: Interaction, b: Interaction): number =>
  a.created_at < b.created_at ? -1 : a.created_at > b.created_at ? 1 : a.id < b.id ? -1 : 1

/** Returns the entries in display order, and the tool results. */
export function entriesOf(transcript: Transcript): {
  readonly entries: readonly Entry[]
  readonly results: Results
} {
  const all = transcript.messages()
  const shown = all.filter(({ content, status }) => status === 'streaming' || content.some(isShown))
  const results = new Map(
    all.flatMap(({ content }) =>
      content.flatMap((block) =>
        block.type === 'tool_result' ? [[block.tool_use_id, block] as const] : [],
      ),
    ),
  )
  const questions = [...transcript.interactions.values()].sort(byAge)
  const last = new Map(
    shown.flatMap(({ id, turn_id }) => (turn_id === undefined ? [] : [[turn_id, id] as const])),
  )
  const placed = new Set<string>()
  const ask = (interaction: Interaction): Entry => {
    placed.add(interaction.id)
    return { kind: 'question', key: interaction.id, interaction }
  }
  const entries = shown.flatMap((message): Entry[] => {
    const { id, turn_id = '', content } = message
    const uses = new Set(content.flatMap((block) => (block.type === 'tool_use' ? [block.id] : [])))
    const turn = transcript.turns.get(turn_id)
    return [
      { kind: 'message', key: id, message },
      ...questions
        .filter(({ consumer }) => uses.has(consumer.agent_tool?.tool_call_id ?? ''))
        .map(ask),
      ...(turn && last.get(turn_id) === id && settledTurns.has(turn.status)
        ? [{ kind: 'end', key: `end of ${turn_id}`, turn } as const]
        : []),
    ]
  })
  const loose = questions.filter(({ id, status }) => status === 'pending' && !placed.has(id))
  return { entries: [...entries, ...loose.map(ask)], results }
}
