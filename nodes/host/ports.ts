/**
 * What the shard host needs of the world. `nodes/nats/` implements these ports over NATS, `test/support/memory.ts` in memory with
 * faults; the host itself never sees a clock, a socket or a random source.
 */

/**
 * Outcome of an append: its stream sequence; another owner wrote (`conflict`); the storage takes nothing (`refused`, and
 * nothing was stored); or nobody knows (`unknown`).
 */
export type Appended = { readonly sequence: number } | 'conflict' | 'refused' | 'unknown'
/** A stored envelope: its stream sequence, the message id it was appended with, its bytes. */
export interface Stored {
  readonly sequence: number
  readonly message_id: string
  readonly data: Uint8Array
}

/** First kept and last sequence of a stream; `missing`: how many sequences between them have no entry, 0 when absent. */
export interface JournalPosition {
  readonly first: number
  readonly last: number
  readonly missing?: number
}

/** The journal: one stream per partition, one subject per shard. */
export interface Journal {
  /** Append if the last message of the shard's subject has sequence `expected` (0: there is none). */
  append(
    partition: number,
    shard: number,
    data: Uint8Array,
    expected: number,
    message_id: string,
  ): Promise<Appended>
  /** The shard's last envelope as the stream's leader knows it. Throws when the leader cannot be asked. */
  last(partition: number, shard: number): Promise<Stored | undefined>
  /** The shard's envelopes with a sequence ≥ `from`, in order, up to the last one at the time of the call. */
  read(partition: number, shard: number, from: number): AsyncIterable<Stored>
  /** What the partition's stream holds, as its leader knows it. */
  position(partition: number): Promise<JournalPosition>
  /**
   * Hand every envelope of the partition with a sequence ≥ `from` to `on`, in order, without end, in batches of what has
   * arrived; the next batch waits for the promise. Recovers by itself from lost consumers. Returns a function that stops.
   */
  follow(
    partition: number,
    from: number,
    on: (batch: readonly Stored[]) => Promise<void> | void,
  ): () => Promise<void>
}

/** Snapshots and checkpoints of a partition: a cache that may be lost as a whole. Reads come from the stream's leader. */
export interface Snapshots {
  get(
    partition: number,
    key: string,
  ): Promise<{ readonly data: Uint8Array; readonly revision: number } | undefined>
  /**
   * Create (`revision` 0) or replace exactly this revision; without one, whatever is there. Gives the new revision, or
   * undefined when the key has another one. Throws when nobody knows.
   */
  put(
    partition: number,
    key: string,
    data: Uint8Array,
    revision?: number,
  ): Promise<number | undefined>
  delete(partition: number, key: string): Promise<void>
}

/** A small consistent map with compare-and-set, for leases and installation constants. */
export interface Registry {
  get(key: string): Promise<{ readonly value: string; readonly revision: number } | undefined>
  /** Create (`revision` 0) or replace exactly this revision. Gives the new revision, or undefined when somebody else was first. */
  put(key: string, value: string, revision: number): Promise<number | undefined>
  delete(key: string): Promise<void>
  /** All entries whose key starts with the prefix. */
  list(
    prefix: string,
  ): Promise<readonly { readonly key: string; readonly value: string; readonly revision: number }[]>
}

/** Why a request got no answer. */
export type NoAnswer = 'no_responders' | 'timeout'
/** Core messaging: at most once. */
export interface Bus {
  /** Ask whoever listens; with a listener in this process the call is direct. */
  request(
    subject: string,
    message: unknown,
    timeout: number,
  ): Promise<{ readonly answer: unknown } | NoAnswer>
  /** The answer of a listener of this process that knows it at once; undefined when there is none. What it would answer later is not waited for. */
  here(subject: string, message: unknown): unknown
  /** @param text the message as JSON, for where that is already known. */
  publish(subject: string, message: unknown, text?: (() => string) | undefined): void
  /** Listen; with `group`, one listener of the group gets each message. The handler's result answers a request. Returns a function that stops. */
  subscribe(
    subject: string,
    handler: (message: unknown, subject: string) => unknown,
    group?: string,
  ): () => void
  /** Resolves when all that was published or subscribed so far has reached the server. */
  flush(): Promise<void>
}

/** Values too large for an entry. */
export interface Blobs {
  put(name: string, data: Uint8Array): Promise<void>
  get(name: string): Promise<Uint8Array | undefined>
  /** Remove a value; unknown names are no error. */
  delete(name: string): Promise<void>
}

export interface Clock {
  /** Unix milliseconds, for people. */
  now(): number
  /** Milliseconds that only grow, for judging leases. */
  elapsed(): number
  /** Run something later; the returned function cancels it. */
  later(ms: number, run: () => void): () => void
}
export interface Random {
  bytes(length: number): Uint8Array
}
