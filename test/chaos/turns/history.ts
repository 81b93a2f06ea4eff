/** What the clients of a run of turns saw, as plain data: times are milliseconds since it began. */
import type { Kind } from './plans.ts'

/** A turn as it stood when it was looked at. */
export interface Shown {
  readonly status: string
  /** Its rows as plans.ts spells them. */
  readonly rows: readonly string[]
}
/** A message that was sent, again and again under its key until it was answered, and what became of its turn. */
export interface Sent {
  readonly key: string
  readonly kind: Kind
  readonly n: number
  /** Number of the session. */
  readonly session: number
  readonly at: number
  /** The turn that the answer named. */
  turn?: string
  /** The turns that the answers to later repeats named. */
  readonly again: string[]
  /** As the follower of the session showed it in the moment in which it showed the end. */
  seen?: Shown & { readonly at: number }
  /** As it is on record afterwards. */
  recorded?: Shown
}
/** What a tool did: whether it began, and whether it came to its end. */
export interface Execution {
  readonly call: string
  readonly at: number
  done: boolean
}
/** A session as it was followed over any number of connections, and as it is read afresh. */
export interface Followed {
  readonly session: number
  readonly connections: number
  /** Connections that broke instead of being ended. */
  readonly lost: number
  /** What the follower holds in the end; and the fresh reading through each gateway. Equal texts mean equal transcripts. */
  readonly folded: string
  readonly fresh: readonly string[]
  /** Turns that were shown as going on after their end had been shown. */
  readonly back: readonly string[]
}
export interface Strike {
  readonly at: number
  readonly what: string
}
export interface TurnHistory {
  readonly sent: readonly Sent[]
  readonly executions: readonly Execution[]
  readonly followed: readonly Followed[]
  /** Turns on record, by session. */
  readonly onRecord: ReadonlyMap<number, readonly string[]>
  readonly strikes: readonly Strike[]
  /** Answers that may not be. */
  readonly oddities: readonly string[]
}
