/**
 * The ports through which the shard host uses storage, messaging, time and randomness.
 * `nodes/nats/` implements them over NATS, `test/support/memory.ts` in memory with injected faults.
 * The host accesses no clock or socket directly, and no random source except to name its process
 * (`cluster/node-id.ts`).
 */

/**
 * Outcome of an append: its stream sequence; `conflict` when another owner wrote first; `refused`
 * when the storage accepts no writes and stored nothing; `unknown` when the outcome cannot be
 * determined.
 */
export type Appended = { readonly sequence: number } | 'conflict' | 'refused' | 'unknown'
/** A stored envelope: its stream sequence, the message id of its append, and its bytes. */
export interface Stored {
  readonly sequence: number
  readonly message_id: string
  readonly data: Uint8Array
}

/**
 * Thrown when a stored entry exists but cannot be read: its bytes are damaged, or a large value to
 * which it refers is missing.
 */
export class UnreadableEntry extends Error {}

/**
 * First retained and last sequence of a stream. `missing` is the number of sequences between them
 * that have no entry; absent means 0.
 */
export interface JournalPosition {
  readonly first: number
  readonly last: number
  readonly missing?: number
}

/**
 * When a follower passes envelopes on: as soon as one has arrived, or at the end of the turn of the
 * event loop, together with all others that arrived in this turn. Larger batches take less
 * processor time.
 */
export type FollowBatches = 'at once' | 'per turn'

/** The journal: one stream per partition, one subject per shard. */
export interface Journal {
  /**
   * Appends if the last message of the shard's subject has the sequence `expected`. 0 means that
   * the subject has no message.
   */
  append(
    partition: number,
    shard: number,
    data: Uint8Array,
    expected: number,
    message_id: string,
  ): Promise<Appended>
  /**
   * Returns the shard's last envelope according to the stream's leader.
   * @throws Error when the leader does not answer.
   */
  last(partition: number, shard: number): Promise<Stored | undefined>
  /**
   * Returns the envelope with the given sequence according to the stream's leader, or undefined if
   * the stream has no such envelope.
   * @throws Error when the leader does not answer.
   */
  at(partition: number, sequence: number): Promise<Stored | undefined>
  /**
   * Yields the shard's envelopes with a sequence ≥ `from`, in order, up to the last envelope at the
   * time of the call.
   */
  read(partition: number, shard: number, from: number): AsyncIterable<Stored>
  /** Returns the first and last sequence of the partition's stream, according to its leader. */
  position(partition: number): Promise<JournalPosition>
  /**
   * Passes every envelope of the partition with a sequence ≥ `from` to `on`, in order, until the
   * returned function is called. Calls to `on` do not overlap: each receives the envelopes that
   * have arrived, and waits for the promise that the previous call returned. Recovers automatically
   * from lost consumers.
   * @param batches when a batch is passed on; `at once` by default.
   */
  follow(
    partition: number,
    from: number,
    on: (batch: readonly Stored[]) => Promise<void> | void,
    batches?: FollowBatches,
  ): () => Promise<void>
}

/**
 * Snapshots and checkpoints of a partition: a cache whose entire contents may be lost. Reads are
 * answered by the stream's leader.
 */
export interface Snapshots {
  get(
    partition: number,
    key: string,
  ): Promise<{ readonly data: Uint8Array; readonly revision: number } | undefined>
  /**
   * Creates the key (`revision` 0) or replaces exactly this revision. Without `revision`,
   * overwrites any value. Returns the new revision, or undefined when the key has another revision.
   * @throws Error when the outcome is unknown.
   */
  put(
    partition: number,
    key: string,
    data: Uint8Array,
    revision?: number,
  ): Promise<number | undefined>
  delete(partition: number, key: string): Promise<void>
}

/**
 * A small consistent key-value map with compare-and-set, for membership and ownership records and
 * the records of the installation.
 */
export interface Registry {
  get(key: string): Promise<{ readonly value: string; readonly revision: number } | undefined>
  /**
   * Creates the key (`revision` 0) or replaces exactly this revision. Returns the new revision, or
   * undefined when another writer was first.
   */
  put(key: string, value: string, revision: number): Promise<number | undefined>
  delete(key: string): Promise<void>
  /** Returns all entries whose key starts with the prefix. */
  list(
    prefix: string,
  ): Promise<readonly { readonly key: string; readonly value: string; readonly revision: number }[]>
}

/** Why a request got no answer. */
export type NoAnswer = 'no_responders' | 'timeout'
/**
 * Core NATS messaging: at-most-once delivery. Messages are values that JSON can represent. A long
 * text in the property `appended` costs less than in another property.
 */
export interface Bus {
  /**
   * Sends a request to a subscriber. A subscriber in this process is called directly.
   * @param timeout milliseconds to wait for the answer.
   */
  request(
    subject: string,
    message: unknown,
    timeout: number,
  ): Promise<{ readonly answer: unknown } | NoAnswer>
  /**
   * Returns the answer of a subscriber in this process that answers synchronously, or undefined if
   * this process has no such subscriber. Asynchronous answers are not awaited.
   */
  here(subject: string, message: unknown): unknown
  /**
   * Whether messages whose subject begins with the token `topic` may have a subscriber, in this or
   * another process.
   */
  hears(topic: string): boolean
  /**
   * Whether a message to this subject may have a subscriber, in this or another process. Other
   * processes report their subscriptions to entries of some kinds (`cluster/interest.ts`). Subjects
   * of other messages may always have a subscriber while another process exists.
   */
  wants(subject: string): boolean
  /**
   * Publishes a message to every subscriber without a group, and to one subscriber of each group.
   * @param text returns the message as JSON, for callers that already have it.
   */
  publish(subject: string, message: unknown, text?: (() => string) | undefined): void
  /**
   * Subscribes to a subject. With `group`, only one subscriber of the group receives each message.
   * The handler's result answers a request. Returns a function that unsubscribes.
   * @param within `process` if the subscriber receives only messages of this process.
   */
  subscribe(
    subject: string,
    handler: (message: unknown, subject: string) => unknown,
    group?: string,
    within?: 'process',
  ): () => void
  /** Resolves when the server has received everything published or subscribed so far. */
  flush(): Promise<void>
}

/** The object store: values that are too large for an entry, and files. */
export interface Blobs {
  put(name: string, data: Uint8Array): Promise<void>
  get(name: string): Promise<Uint8Array | undefined>
  /** Deletes a value. An unknown name is not an error. */
  delete(name: string): Promise<void>
}

/**
 * The end of a turn of the event loop. Functions of one kind run in the order in which they were
 * passed. They must not throw.
 */
export interface TurnEnd {
  /**
   * Calls `run` once all messages that were received in this turn have been passed on, so that one
   * commit contains them.
   */
  decide(run: () => void): void
  /**
   * Declares that other processes will respond to messages of this turn. Work that is deferred in
   * this turn then waits until the end of the next turn.
   */
  expectResponses(): void
  /**
   * Calls `run` at the end of this turn, after its messages have left. If responses are expected,
   * calls it at the end of the next turn, so that commands that arrive in response to this turn are
   * appended first.
   */
  defer(run: () => void): void
}
export interface Clock {
  /** Wall-clock time in Unix milliseconds. */
  now(): number
  /** Monotonic time in milliseconds, for durations such as those of leases. */
  elapsed(): number
  /** Calls `run` after `ms` milliseconds. The returned function cancels the call. */
  later(ms: number, run: () => void): () => void
}
export interface Random {
  bytes(length: number): Uint8Array
}
