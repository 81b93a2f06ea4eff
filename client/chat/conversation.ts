/**
 * The conversation on the page: one row for each entry, identified by the entry's key.
 *
 * Invariants:
 * V1. A row keeps its element. It is moved only when the order of the entries changes, and removed
 *     only when its entry no longer exists.
 * V2. A row whose entry has not changed is not modified.
 */
import type { TranscriptTurn } from '../../protocol/sessions/schema.ts'
import type { Transcript } from '../transcript/fold.ts'
import { el } from './dom.ts'
import { type Entry, entriesOf, type Results } from './entries.ts'
import type { ReadFiles } from './files/file-view.ts'
import { MessageRow } from './message.ts'
import type { Senders } from './people/senders.ts'
import { type Answering, QuestionRow } from './question.ts'

interface Row {
  readonly element: HTMLLIElement
  update(entry: Entry, results: Results): void
}

/** Session operations used by rows. */
interface RowActions {
  readonly answer: Answering
  readonly read: ReadFiles
  readonly senders: Pick<Senders, 'labelOf'>
}

export class Conversation {
  readonly element = el('ol', { class: 'conversation', 'aria-label': 'Conversation' })
  readonly #rows = new Map<string, Row>()
  /** Name of the session's agent, for rows that are created later. */
  agent = 'Agent'
  readonly #actions: RowActions

  constructor(actions: RowActions) {
    this.#actions = actions
  }
  /**
   * Shows the current state of a transcript.
   * @returns the entries that are shown.
   */
  show(transcript: Transcript): readonly Entry[] {
    const { entries, results } = entriesOf(transcript)
    const wanted = new Set(entries.map(({ key }) => key))
    for (const [key, { element }] of this.#rows)
      if (!wanted.has(key)) {
        this.#rows.delete(key)
        element.remove()
      }
    let next: ChildNode | null = this.element.firstChild
    for (const entry of entries) {
      let row = this.#rows.get(entry.key)
      if (!row) this.#rows.set(entry.key, (row = rowOf(entry, this.agent, this.#actions)))
      row.update(entry, results)
      if (row.element === next) next = next.nextSibling
      else this.element.insertBefore(row.element, next)
    }
    return entries
  }
}

function rowOf(first: Entry, agent: string, { answer, read, senders }: RowActions): Row {
  switch (first.kind) {
    case 'message': {
      const row = new MessageRow(first.message, agent, read)
      return {
        element: row.element,
        update: (entry, results) => {
          if (entry.kind === 'message')
            row.update(entry.message, results, senders.labelOf(entry.message))
        },
      }
    }
    case 'question': {
      const row = new QuestionRow(first.interaction, answer)
      let shown: object | undefined
      return {
        element: row.element,
        update: (entry) => {
          if (entry.kind !== 'question' || entry.interaction === shown) return
          shown = entry.interaction
          row.update(entry.interaction)
        },
      }
    }
    case 'end':
      return {
        element: el(
          'li',
          { class: `end ${first.turn.status}`, 'data-id': first.turn.id },
          endOf(first.turn),
        ),
        update: () => {},
      }
  }
}

function endOf({ status, error_type, error_message, usage }: TranscriptTurn): string {
  if (status === 'failed')
    return (
      `The turn failed: ${error_message ?? error_type ?? 'no reason given'}` +
      (error_type === undefined || error_message === undefined ? '' : ` (${error_type})`)
    )
  if (status === 'cancelled') return 'The turn was cancelled.'
  return `Done: ${usage?.input_tokens ?? 0} input tokens, ${usage?.output_tokens ?? 0} output tokens`
}
