/** The types of the follower of a session: its ports, its clients and the position that they have reached. */
import type { Refusal } from '../../../protocol/errors.ts'
import type {
  TranscriptPage,
  TranscriptQuestion,
} from '../../../protocol/sessions/transcript/pages.ts'
import type { Previewed } from '../../../protocol/sessions/transcript/previews.ts'
import type { Sink } from '../../http/respond.ts'
import type { Dialect } from './change.ts'

/** The functions of the session and the node that a follower needs. Times are milliseconds. */
export interface Ports {
  /**
   * Queries a page. `fresh`: the page must contain everything up to this cursor; absent: everything
   * committed by now.
   */
  ask(
    question: Omit<TranscriptQuestion, 'session_id'>,
    fresh?: number,
  ): Promise<TranscriptPage | Refusal>
  /** Returns everything that a row has shown so far; undefined without a publisher. */
  shown(message_id: string): Promise<Previewed | undefined>
  now(): number
  later(ms: number, run: () => void): () => void
  /** How long a stream lasts before its client must reconnect. */
  readonly age: number
  /** Count a client that was too slow, and the changes that were written. */
  slow(): void
  given(changes: number): void
}

export interface Client {
  readonly sink: Sink
  readonly dialect: Dialect
  settled: boolean
  /** The turns whose begin the client was shown before it joined. */
  readonly begun: Set<string>
  /** Cancels the timer that ends an idle stream. */
  idle: (() => void) | undefined
}

export interface Head {
  cursor: number
  revision: number
}
