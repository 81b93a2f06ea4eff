/**
 * The types of live data in a browser: the sequences that pages follow, and the frames that they
 * receive. `open.ts` implements `Live`.
 *
 * Contract of `follow`: the listener receives every event after its cursor once and in order,
 * across reconnections and other tabs. Frames without a cursor (output of a model while it is
 * generated) are never repeated, and may be missing after a reconnection. A session is the
 * exception: after a reconnection, its records are sent again in their current state, as the fold
 * of `client/transcript/fold.ts` expects. After a frame `stream.reset`, events may be missing, and
 * earlier events may be repeated, so the listener loads its records again.
 */
import type { StreamSubscription, StreamTopic } from '../../protocol/streams/rows.ts'

/**
 * The topics.
 * - `run`: the timeline of the run `target` with the output of its models, from the beginning or
 *   after a cursor. It ends with the run.
 * - `runs`: the feed of all runs of the project.
 * - `session`: the transcript of the session `target`, as `session.transcript_stream` sends it.
 * - `channel`: the events of the channel `target`.
 * - `changes`: the kinds and ids of changed records of the project, or of the organization if there
 *   is no project, so that a page can load them again.
 * - `logs`: the lines that workers print for the run `target`, from the start or after a cursor.
 * - `environment_log`: a log of the worker of the environment `target`: its newest lines, and the
 *   lines added later.
 */
export type LiveTopic = StreamTopic

/** A sequence of frames that a page follows. */
export interface LiveSubscription {
  /** Id or handle of the project. Only `changes` may omit it, which means the organization. */
  readonly project?: string
  readonly topic: LiveTopic
  /** Id of the run, session, channel or environment. Absent for `runs` and `changes`. */
  readonly target?: string
  /**
   * The cursor after which frames are sent: a number, or a string for sessions. Without a cursor, a
   * run and its logs begin at the start, a session and an environment log begin with their newest
   * part, and all other sequences begin with new frames.
   */
  readonly after?: LiveCursor
  /** Selects the lines of `logs` and `environment_log`. */
  readonly filter?: NonNullable<StreamSubscription['filter']>
}
export type LiveCursor = number | string

/** A frame of a subscription. `data` is the same as in the separate stream of the topic. */
export interface LiveFrame {
  /**
   * The event name, such as `run.completed`. Frames of the topic `changes` have the event
   * `changes`, with `LiveChanges` as data.
   */
  readonly event: string
  /** The position after the frame. Absent from frames after which a client cannot resume. */
  readonly cursor?: LiveCursor
  readonly data: unknown
}
/** A record that has changed. */
interface LiveChange {
  /**
   * The resource, such as `interaction` (see `protocol/streams/changes.ts`); `*` means that
   * anything may have changed, so everything must be loaded again.
   */
  readonly kind: string
  /** Id of the record. Absent: any record of the kind may have changed or disappeared. */
  readonly id?: string
}
/** The data of a `changes` frame. */
export interface LiveChanges {
  readonly changes: readonly LiveChange[]
}

/** Why the service refused or ended a subscription, or the whole connection. */
export interface LiveFault {
  /** A code of `protocol/errors.ts`. */
  readonly code: string
  readonly message: string
  readonly details?: Readonly<Record<string, unknown>>
}
/**
 * The state of a subscription.
 * - `connecting`: requested for the first time.
 * - `live`: the service sends frames. Lists should be loaded in this state, because later changes
 *   arrive as frames.
 * - `waiting`: the connection was lost. It is opened again after a pause. Nothing is missed.
 * - `refused`: the service refused it, or the access was lost (`fault`). Nothing follows.
 * - `ended`: the sequence is complete, such as that of a completed run. Nothing follows.
 */
export type LiveState = 'connecting' | 'live' | 'waiting' | 'refused' | 'ended'
export interface LiveStatus {
  readonly state: LiveState
  /** The reason for `refused`. */
  readonly fault?: LiveFault
}
/** The state of the connection that all subscriptions of a credential share. */
export interface LiveConnection {
  /** `idle`: nothing is followed. `refused`: the credential was refused (`fault`). */
  readonly state: 'idle' | 'connecting' | 'live' | 'waiting' | 'refused'
  readonly fault?: LiveFault
}

/** The callbacks of a page for one subscription. They are called asynchronously. */
export interface LiveListener {
  frame(frame: LiveFrame): void
  /** Called with the current state of the subscription, and then with each new state. */
  state?(status: LiveStatus): void
}

/** The live data of one credential. */
export interface Live {
  /** Follows a subscription until the returned function is called. */
  follow(subscription: LiveSubscription, listener: LiveListener): () => void
  /** The current state of the connection. */
  readonly connection: LiveConnection
  /** Calls `on` with each new state of the connection, until the returned function is called. */
  onConnection(on: (connection: LiveConnection) => void): () => void
  /** Tries to connect immediately, for example after the person has signed in again. */
  retry(): void
  /** Ends all subscriptions of this page. */
  close(): void
}

/** The options of `openLive`. */
export interface LiveOptions {
  /** Base address of the service; by default the origin of the page. */
  readonly url?: string
  /**
   * Headers of every request, such as `Authorization`. Cookies are always sent to the same origin.
   */
  readonly headers?: Readonly<Record<string, string>>
  /**
   * Identifies the signed-in person. Tabs share a connection only if their `url`, `headers` and
   * `identity` are equal, so that another person's session is never used.
   */
  readonly identity?: string
  /**
   * The URL of the bundled `worker.ts`. Without it, or in browsers without `SharedWorker`, the
   * page opens a separate connection.
   */
  readonly worker?: string | URL
}
