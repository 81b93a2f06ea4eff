/**
 * A flow: one subscription at the service, and the tabs that receive its frames.
 *
 * Invariants:
 * L1. A listener receives each frame with a cursor once and in order. While two connections
 *     overlap, both may deliver the frames of a flow with numeric cursors. Each continues from a
 *     position that the flow had reached, so only frames beyond the highest cursor are new.
 * L2. A flow whose positions cannot be compared (a session, or a flow without a cursor) accepts
 *     frames from only one connection: the newest one on which it was requested.
 *     A frame that restarts the sequence is always new.
 * L3. A listener joins a flow only if the flow delivers everything after the listener's cursor.
 */
import type { StreamMessage } from '../../client/streams/read.ts'
import type { LiveChanges, LiveCursor, LiveFrame, LiveStatus, LiveSubscription } from './live.ts'

/** The receiver of one subscription of a tab. */
export interface Listener {
  frame(frame: LiveFrame): void
  status(status: LiveStatus, cursor?: LiveCursor): void
}
interface Joined {
  readonly listener: Listener
  /** The listener already has the frames up to this cursor. */
  skip: number
}

/**
 * Topics whose frames all have comparable cursors, so that a listener without a cursor may join at
 * any time.
 */
const PLAIN: ReadonlySet<string> = new Set(['runs', 'channel', 'changes'])

/** Returns the key of a subscription's sequence. The cursor is not part of the key. */
export const sequenceOf = ({ project, topic, target, filter }: LiveSubscription): string =>
  JSON.stringify([topic, project ?? null, target ?? null, filter ?? null])

/**
 * Whether a frame with a cursor reports that changes may be missing, so that the frames after it may
 * have cursors that were delivered before.
 */
const isRestart = (event: string, data: StreamMessage['data']): boolean =>
  event === 'stream.reset' ||
  (event === 'changes' && (data as unknown as LiveChanges).changes.some(({ kind }) => kind === '*'))

export class Flow {
  readonly id: string
  readonly sequence: string
  readonly #subscription: LiveSubscription
  readonly #listeners = new Map<Listener, Joined>()
  /** The position that all listeners have reached. */
  #cursor: LiveCursor | undefined
  /** The connections whose frames are accepted (L2). */
  #sources = new WeakSet<object>()
  /** The source of the last frame with a cursor. */
  #last: object | undefined
  /** Whether nothing has been received yet, not even `subscription.started`. */
  #pristine = true
  #status: LiveStatus = { state: 'connecting' }
  /**
   * The last chunk of model output by job: its sequence number, and the connection that delivered
   * it.
   */
  readonly #chunks = new Map<string, { readonly sequence: number; readonly by: object }>()

  constructor(id: string, subscription: LiveSubscription) {
    this.id = id
    this.sequence = sequenceOf(subscription)
    this.#subscription = subscription
    this.#cursor = subscription.after
  }
  get cursor(): LiveCursor | undefined {
    return this.#cursor
  }
  get empty(): boolean {
    return this.#listeners.size === 0
  }
  get listeners(): readonly Listener[] {
    return [...this.#listeners.keys()]
  }

  /** Returns whether a listener with this cursor may join (L3). */
  joinable(after: LiveCursor | undefined): boolean {
    const { topic, after: first } = this.#subscription
    if (this.#pristine && first === after) return true
    if (topic === 'session' || typeof this.#cursor !== 'number') return false
    return after === undefined
      ? PLAIN.has(topic) && !this.#pristine
      : typeof after === 'number' && after >= this.#cursor
  }
  join(listener: Listener, after: LiveCursor | undefined): void {
    const skip = typeof after === 'number' ? after : -1
    this.#listeners.set(listener, { listener, skip })
    listener.status(this.#status, this.#status.state === 'live' ? this.#cursor : undefined)
  }
  leave(listener: Listener): void {
    this.#listeners.delete(listener)
  }

  /** Registers a connection as a source, and returns the subscription to request on it. */
  request(connection: object): LiveSubscription {
    const { after: _, ...rest } = this.#subscription
    if (typeof this.#cursor !== 'number') this.#sources = new WeakSet()
    this.#sources.add(connection)
    return this.#cursor === undefined ? rest : { ...rest, after: this.#cursor }
  }
  /** Returns whether the frames of a connection are accepted. */
  accepts(connection: object): boolean {
    return this.#sources.has(connection)
  }

  /** Handles the start of the subscription at the service. */
  started(cursor: LiveCursor | undefined): void {
    this.#pristine = false
    this.#cursor ??= cursor
    this.setStatus({ state: 'live' })
  }
  /** Sets the state, and notifies the listeners if it has changed. */
  setStatus(status: LiveStatus): void {
    if (this.#status.state === status.state) return
    this.#status = status
    const cursor = status.state === 'live' ? this.#cursor : undefined
    for (const listener of this.#listeners.keys()) listener.status(status, cursor)
  }
  /** Delivers a frame, unless it was delivered before. */
  deliver({ event, cursor, data }: StreamMessage, connection: object): void {
    const restarts = cursor !== undefined && isRestart(event, data)
    if (
      !restarts &&
      (cursor === undefined
        ? this.#repeatsChunk(event, data, connection)
        : this.#repeats(cursor, connection))
    )
      return
    this.#pristine = false
    if (restarts) for (const joined of this.#listeners.values()) joined.skip = -1
    if (cursor !== undefined) {
      this.#cursor = cursor
      this.#last = connection
    }
    const frame: LiveFrame = { event, ...(cursor !== undefined && { cursor }), data }
    for (const joined of this.#listeners.values())
      if (typeof cursor !== 'number' || cursor > joined.skip) joined.listener.frame(frame)
  }
  /**
   * Whether a frame was delivered before. A frame with the same cursor as the last one is a repeat
   * only if it arrives over another connection, because several frames of one event share a cursor.
   */
  #repeats(cursor: LiveCursor, connection: object): boolean {
    if (typeof cursor !== 'number' || typeof this.#cursor !== 'number') return false
    return cursor < this.#cursor || (cursor === this.#cursor && connection !== this.#last)
  }
  /**
   * Whether another connection has already delivered a chunk. On the same connection, a smaller
   * sequence number means that a new attempt of the job has started.
   */
  #repeatsChunk(event: string, data: StreamMessage['data'], by: object): boolean {
    const { job_id, sequence } = data
    if (event !== 'generation.delta' || typeof sequence !== 'number') return false
    const last = this.#chunks.get(String(job_id))
    if (last && last.by !== by && sequence <= last.sequence) return true
    this.#chunks.set(String(job_id), { sequence, by })
    return false
  }
}
