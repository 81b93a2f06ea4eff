/**
 * The senders of the messages of the role `user`. The transcript contains no principals, so the
 * askers of turns, the senders of nudges and their names are read from the service.
 */
import type { TranscriptMessage } from '../../../protocol/sessions/schema.ts'
import { Refused } from '../service.ts'

/** The reads of the service that find senders. */
export interface SenderReads {
  /** Returns the id of the caller's principal. */
  me(): Promise<string>
  /** Returns the askers of turns, by the id of the turn. A lagging list lacks new turns. */
  askers(turns: readonly string[]): Promise<ReadonlyMap<string, string>>
  /** Returns the id of the principal that sent a nudge. */
  nudgeSender(nudge: string): Promise<string>
  /** Returns the name of a principal. */
  nameOf(principal: string): Promise<string>
}

/** The label of a message whose sender is unknown, or the service itself. */
const UNKNOWN = 'User'
const SERVICE = 'system'
/** Maximum number of attempts to find the sender of a message. */
const MAX_ATTEMPTS = 4
/** Maximum number of turns per request. */
const MAX_TURNS = 100

/** What identifies the sender: a nudge that reached a running turn, or a turn. */
function sourceOf({ metadata, turn_index, turn_id }: TranscriptMessage): string | undefined {
  const nudge = turn_index === 0 ? undefined : metadata?.['session_nudge_id']
  return typeof nudge === 'string' ? nudge : turn_id
}
const isNudge = ({ metadata }: TranscriptMessage, source: string): boolean =>
  metadata?.['session_nudge_id'] === source

/** Returns the result, or undefined if the service refused or did not respond. */
async function ifAnswered<T>(read: Promise<T>): Promise<T | undefined> {
  try {
    return await read
  } catch (error) {
    if (error instanceof Refused) return undefined
    throw error
  }
}

/** Finds the senders of a session's messages. */
export class Senders {
  readonly #reads: SenderReads
  readonly #labels = new Map<string, string>()
  readonly #attempts = new Map<string, number>()
  readonly #names = new Map<string, string>()
  #me: string | undefined

  constructor(reads: SenderReads) {
    this.#reads = reads
  }
  /** Notes that the user of the page sent a nudge, or the message of a turn. */
  sentHere(source: string): void {
    this.#labels.set(source, 'You')
  }
  /** Returns the label of a message's sender; undefined while it is being looked up. */
  labelOf(message: TranscriptMessage): string | undefined {
    const source = sourceOf(message)
    if (source === undefined) return UNKNOWN
    const label = this.#labels.get(source)
    return label ?? ((this.#attempts.get(source) ?? 0) >= MAX_ATTEMPTS ? UNKNOWN : undefined)
  }
  /**
   * Looks up the senders that are missing.
   * @returns `complete` if none were missing; `missing` if some still are, so that another attempt
   * is useful.
   */
  async load(messages: readonly TranscriptMessage[]): Promise<'complete' | 'found' | 'missing'> {
    const wanted = messages.filter((one) => one.role === 'user' && this.labelOf(one) === undefined)
    if (wanted.length === 0) return 'complete'
    const sources = new Map(wanted.map((one) => [sourceOf(one) ?? '', one]))
    for (const source of sources.keys())
      this.#attempts.set(source, (this.#attempts.get(source) ?? 0) + 1)
    this.#me ??= await ifAnswered(this.#reads.me())
    const turns = [...sources].flatMap(([id, one]) => (isNudge(one, id) ? [] : [id]))
    const askers = new Map<string, string>()
    for (let at = 0; at < turns.length; at += MAX_TURNS) {
      const found = await ifAnswered(this.#reads.askers(turns.slice(at, at + MAX_TURNS)))
      for (const [turn, asker] of found ?? []) askers.set(turn, asker)
    }
    for (const [source, one] of sources) {
      const id = isNudge(one, source)
        ? await ifAnswered(this.#reads.nudgeSender(source))
        : askers.get(source)
      // Without the own id, the page cannot tell whether the user is the sender.
      if (id !== undefined && this.#me !== undefined) this.#labels.set(source, await this.#name(id))
    }
    return wanted.some((one) => this.labelOf(one) === undefined) ? 'missing' : 'found'
  }
  async #name(id: string): Promise<string> {
    if (id === this.#me) return 'You'
    if (id === SERVICE) return UNKNOWN
    const name = this.#names.get(id) ?? (await ifAnswered(this.#reads.nameOf(id))) ?? id
    this.#names.set(id, name)
    return name
  }
}
