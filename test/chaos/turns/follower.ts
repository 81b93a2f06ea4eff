/**
 * Follows a session through the gateways and folds its frames as the client library does. Records
 * the state of each turn when its end is shown.
 */
import { followTranscript, Transcript } from '../../../client/transcript.ts'
import { canonicalJson } from '../../../protocol/rules/canonical-json.ts'
import { settledTurns } from '../../../protocol/sessions/settled.ts'
import type { Shown } from './history.ts'
import { spell } from './plans.ts'

interface Options {
  readonly urls: readonly string[]
  readonly key: string
  readonly session_id: string
  /** The cursor before the first message. */
  readonly cursor: string
  readonly signal: AbortSignal
}
/** Milliseconds without a byte after which a connection is closed. */
const SILENCE_MS = 8000
/** Maximum pause in milliseconds between two connections. */
const MAX_PAUSE_MS = 100

export class SessionFollower {
  readonly transcript: Transcript
  readonly ends = new Map<string, Shown>()
  readonly back: string[] = []
  connections = 1
  /** The number of broken connections. */
  lost = 0
  /** The error with which following stopped; undefined if it did not fail. */
  fault: string | undefined
  readonly #waiting = new Map<string, () => void>()
  readonly #signal: AbortSignal

  constructor({ urls, key, session_id, cursor, signal }: Options) {
    this.transcript = new Transcript(cursor)
    this.#signal = signal
    void this.#follow({ url: urls, key, session_id, signal })
  }
  async #follow(source: {
    readonly url: readonly string[]
    readonly key: string
    readonly session_id: string
    readonly signal: AbortSignal
  }): Promise<void> {
    const pause = (ms: number): Promise<void> =>
      new Promise((done) => setTimeout(done, Math.min(ms, MAX_PAUSE_MS)))
    try {
      for await (const { frame } of followTranscript({
        ...source,
        transcript: this.transcript,
        forever: true,
        silence: SILENCE_MS,
        pause,
        onReconnect: (reason) => this.#again(reason),
      })) {
        if (!frame || frame.event_type === 'turn.upsert') this.#look()
      }
    } catch (error) {
      this.fault = String(error)
    }
  }
  #again(reason: string): void {
    this.connections++
    if (!reason.startsWith('the server ended')) this.lost++
  }
  #look(): void {
    for (const { id, status } of this.transcript.turns.values()) {
      const before = this.ends.get(id)
      if (!settledTurns.has(status)) {
        if (before) this.back.push(`${id} was ${before.status} and then ${status}`)
        continue
      }
      if (before) continue
      this.ends.set(id, shownIn(this.transcript, id))
      this.#waiting.get(id)?.()
    }
  }
  /**
   * Waits until the end of a turn is shown. Returns the state of the turn at that moment, or
   * undefined if the signal is aborted first.
   */
  async ended(turn: string): Promise<Shown | undefined> {
    if (!this.ends.has(turn) && !this.#signal.aborted) {
      let end = () => {}
      await new Promise<void>((done) => {
        end = done
        this.#waiting.set(turn, done)
        this.#signal.addEventListener('abort', end, { once: true })
      })
      this.#signal.removeEventListener('abort', end)
      this.#waiting.delete(turn)
    }
    return this.ends.get(turn)
  }
}

export const shownIn = (transcript: Transcript, turn: string): Shown => ({
  status: transcript.turns.get(turn)?.status ?? 'not there',
  rows: transcript
    .messages()
    .filter(({ turn_id, status }) => turn_id === turn && status === 'final')
    .map(spell),
})
export function textOf(transcript: Transcript): string {
  const byId = (a: { readonly id: string }, b: { readonly id: string }): number =>
    a.id < b.id ? -1 : 1
  return canonicalJson([
    transcript.cursor,
    transcript.messages(),
    [...transcript.turns.values()].sort(byId),
    [...transcript.interactions.values()].sort(byId),
  ])
}
