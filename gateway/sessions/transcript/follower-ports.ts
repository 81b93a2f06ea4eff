/**
 * The types of the follower of a session (`follower.ts`): its ports, its clients, and the position
 * that the clients have reached.
 */
import type { Refusal } from '../../../protocol/errors.ts'
import type {
  TranscriptPage,
  TranscriptQuestion,
} from '../../../protocol/sessions/transcript/pages.ts'
import type { Previewed } from '../../../protocol/sessions/transcript/previews.ts'
import type { Sink } from '../../http/respond.ts'
import type { Dialect } from './change.ts'

/** The functions that a follower needs. Times are in milliseconds. */
export interface Ports {
  /**
   * Fetches a page of the transcript. The view first applies everything up to the cursor `fresh`
   * or, without `fresh`, everything that was committed before the query.
   */
  ask(
    question: Omit<TranscriptQuestion, 'session_id'>,
    fresh?: number,
  ): Promise<TranscriptPage | Refusal>
  /** Returns the preview of a row, as generated so far, or undefined when no node publishes it. */
  shown(message_id: string): Promise<Previewed | undefined>
  now(): number
  later(ms: number, run: () => void): () => void
  /** The time after which a stream ends, so that its client reconnects. */
  readonly age: number
  /** Counts a client that was too slow. */
  countFallback(): void
  /** Counts changes that were written. */
  countSent(changes: number): void
}

/** A client of a follower. `settled` is true once the client has received the end of a turn. */
export interface Client {
  readonly sink: Sink
  readonly dialect: Dialect
  settled: boolean
  /** The turns whose start the client received before it joined. */
  readonly begun: Set<string>
  /** Cancels the idle timer. Undefined while the timer is not running. */
  idle: (() => void) | undefined
}

/** The position that all joined clients have reached, as a cursor and as a revision. */
export interface Head {
  cursor: number
  revision: number
}
