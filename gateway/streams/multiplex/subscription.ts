/**
 * One subscription of a multiplexed stream, from its admission to its end. It follows the same
 * sequence, with the same follower and the same checks, as the single stream of its topic. Only its
 * sink differs: it writes to the connection that all subscriptions share.
 *
 * Invariants:
 * U1. A subscription is admitted like a request to the row of its topic: project, permission and
 *     session are checked before the first frame, and again while it is open (`../../guard.ts`).
 * U2. After a temporary failure, the subscription is retried here, because the client cannot retry
 *     one subscription without the others.
 * U3. After the stream of a session has ended with `rotate`, it is opened again from its last
 *     cursor, as soon as the connection has drained. A client that has not read in the meantime
 *     therefore continues from the view.
 */
import { errorBody, errors, isRefusal, type Refusal, refuse } from '../../../protocol/errors.ts'
import { isId } from '../../../protocol/ids.ts'
import type { StreamSubscription, StreamTopic } from '../../../protocol/streams/rows.ts'
import { enterProject } from '../../auth/authorize.ts'
import { type Call, type Edge, rows } from '../../call.ts'
import { guardOf, recheckAdmission } from '../../guard.ts'
import type { Sink } from '../../http/respond.ts'
import type { OpenEnvironmentLog } from '../../logs/environment.ts'
import type { FollowedSessions } from '../../sessions/transcript/followed.ts'
import { openTranscript } from '../../sessions/transcript/stream.ts'
import { openTranscriptCursor } from '../../sessions/transcript/transcript-cursor.ts'
import { sleep } from '../../timing.ts'
import { pauseMs } from '../follow.ts'
import { openSequence } from '../stream.ts'
import type { OpenChanges } from './changes.ts'
import { createRelabeler, type SubscriptionEvent, subscriptionFrame } from './relabel.ts'

/** The connection that subscriptions share. */
export interface Shared {
  readonly sink: Pick<Sink, 'write' | 'full' | 'closed'>
  /** Calls `run` whenever the unsent data has been sent, until the returned function is called. */
  onDrain(run: () => void): () => void
}
/** The services of a gateway that subscriptions use. */
export interface Sequences {
  readonly edge: Edge
  readonly sessions: FollowedSessions
  readonly changes: OpenChanges
  readonly environmentLogs: OpenEnvironmentLog
}

/** The row of each topic's single stream, and the path slot for the target of the subscription. */
const topics: { readonly [T in StreamTopic]: { readonly row: string; readonly slot?: string } } = {
  run: { row: 'run.events', slot: 'id' },
  runs: { row: 'run.feed' },
  session: { row: 'session.transcript_stream', slot: 'session_id' },
  channel: { row: 'channel.events', slot: 'id' },
  // The topic requires the permission of this row, because every list of the records that it
  // reports requires at least this permission.
  changes: { row: 'interaction.list' },
  logs: { row: 'run.logs', slot: 'id' },
  environment_log: { row: 'environment.worker_logs', slot: 'environment_id' },
}

/**
 * Returns the call that would open the single stream of the subscription's topic, or the refusal of
 * that call.
 */
async function admit(
  edge: Edge,
  call: Call,
  { topic, project: name, target = '', filter = {} }: StreamSubscription,
): Promise<Call | Refusal> {
  const { slot } = topics[topic]
  const rowName = name === undefined ? call.name : topics[topic].row
  const row = rows[rowName]
  if (!row) throw new Error(`there is no row ${rowName}`)
  const known = await edge.directory.organization()
  if (isRefusal(known)) return known
  // Only the topic `run` accepts a deleted project, whose runs stay readable.
  const project =
    name === undefined ? undefined : enterProject(call.caller, known, name, topic === 'run')
  if (isRefusal(project)) return project
  if (!project && call.caller.scope.kind === 'project')
    return refuse('forbidden', undefined, 'This key belongs to a project.')
  const slots = slot === undefined ? {} : { [slot]: target }
  const part: Call = { ...call, name: rowName, row, slots, query: filter, body: {}, project }
  return (await recheckAdmission(edge, part)) ?? part
}

/** A sequence that was opened for a subscription. */
interface Opened {
  /**
   * The start position; absent for the newest part of a transcript and for a sequence without
   * cursors.
   */
  readonly after?: number | string
  join(sink: Sink, revoked: () => void): void
  watch?(look: () => void): () => void
  release(): void
}
async function open(
  { edge, sessions, changes, environmentLogs }: Sequences,
  call: Call,
  { topic }: StreamSubscription,
  after: number | string | undefined,
): Promise<Opened | Refusal> {
  if (topic === 'changes') return changes(call, after as number | undefined)
  if (topic === 'environment_log') return environmentLogs(call)
  if (topic !== 'session')
    return openSequence(edge, edge.followers, call, after as number | undefined)
  const session_id = call.slots['session_id'] ?? ''
  const project = call.project?.id ?? ''
  if (!isId(session_id, 'agent_session')) return refuse('not_found')
  const cursor =
    after === undefined
      ? undefined
      : openTranscriptCursor(edge.world, project, session_id, String(after))
  if (cursor && isRefusal(cursor)) return cursor
  const opened = await openTranscript(edge, sessions, call, session_id, {
    version: 'v2',
    from: cursor ? { after: cursor.revision } : {},
  })
  return isRefusal(opened)
    ? opened
    : {
        ...(after !== undefined && { after }),
        join: (sink) => void opened.join(sink),
        watch: opened.watch,
        release: opened.release,
      }
}

/** The reason why a client no longer receives a sequence. */
type End = 'completed' | 'closed' | { readonly lost: Refusal }

export class OpenSubscription {
  readonly #sequences: Sequences
  readonly #call: Call
  readonly #subscription: StreamSubscription
  readonly #shared: Shared
  #after: number | string | undefined
  #end: ((end: End) => void) | undefined
  #over = false

  /** @param call the call that opened the multiplexed stream. */
  constructor(sequences: Sequences, call: Call, subscription: StreamSubscription, shared: Shared) {
    this.#sequences = sequences
    this.#call = call
    this.#subscription = subscription
    this.#shared = shared
    this.#after = subscription.after
  }

  /**
   * Follows the sequence. Resolves when the subscription was refused, has ended, or its connection
   * has closed.
   * @param attempted called after the first attempt to open the sequence.
   */
  async follow(attempted: () => void): Promise<void> {
    try {
      await this.#follow(attempted)
    } finally {
      this.#over = true
    }
  }
  async #follow(attempted: () => void): Promise<void> {
    for (let failures = 0, started = false; !this.#closed; ) {
      const opened = await this.#open().catch(() => refuse('service_unavailable'))
      attempted()
      if (isRefusal(opened)) {
        // An unknown code from a newer release is treated as temporary; see `answerOf`.
        if ((errors[opened.refused]?.status ?? 503) < 500) return this.#refuse(opened)
        await sleep(this.#sequences.edge.world, pauseMs(failures++))
        continue
      }
      failures = 0
      const [call, sequence] = opened
      if (this.#closed) return sequence.release()
      this.#after ??= sequence.after
      if (!started) this.#say('subscription.started', {}, this.#after)
      started = true
      const end = await this.#joined(call, sequence)
      if (end === 'closed') return
      if (end !== 'completed') return this.#lose(end.lost)
      if (this.#subscription.topic !== 'session') {
        this.#say('subscription.ended', { reason: 'completed' })
        return
      }
      await this.#drained()
    }
  }
  /** Ends the subscription without a frame, because its connection has closed. */
  close(): void {
    this.#over = true
    this.#end?.('closed')
  }
  /** Sends the refusal and ends the subscription, because the caller has lost access. */
  lose(refused: Refusal): void {
    if (this.#closed) return
    this.#lose(refused)
    this.close()
  }

  get #closed(): boolean {
    return this.#over || this.#shared.sink.closed
  }
  async #open(): Promise<readonly [Call, Opened] | Refusal> {
    const { edge } = this.#sequences
    const call = await admit(edge, this.#call, this.#subscription)
    if (isRefusal(call)) return call
    const opened = await open(this.#sequences, call, this.#subscription, this.#after)
    return isRefusal(opened) ? opened : [call, opened]
  }
  #say(event: SubscriptionEvent, data: object, cursor?: number | string): void {
    if (!this.#closed)
      this.#shared.sink.write(subscriptionFrame(this.#subscription, event, data, cursor))
  }
  #refuse(refused: Refusal): void {
    this.#sequences.edge.world.count.refused?.(refused.refused)
    this.#say('subscription.refused', errorBody(refused))
  }
  #lose(refused: Refusal): void {
    this.#say('subscription.ended', { reason: 'access_lost', ...errorBody(refused) })
  }
  /** Follows a sequence. Resolves to the reason why the client no longer receives it. */
  #joined(call: Call, opened: Opened): Promise<End> {
    const { topic } = this.#subscription
    return new Promise((resolve) => {
      const closers: (() => void)[] = []
      let end: End | undefined
      const over = (why: End): void => {
        if (end !== undefined) return
        end = why
        this.#end = undefined
        for (const run of closers) run()
        resolve(why)
      }
      this.#end = over
      const relabeled = createRelabeler(this.#subscription, 'stream.end', (cursor) => {
        this.#after = topic === 'session' ? cursor : Number(cursor)
      })
      const { sink, onDrain } = this.#shared
      let stopDrain = () => {}
      const own: Sink = {
        write: (chunk) => {
          if (end === undefined) sink.write(relabeled(chunk))
        },
        get full() {
          return sink.full
        },
        get closed() {
          return end !== undefined || sink.closed
        },
        onDrain: (run) => {
          stopDrain()
          stopDrain = onDrain(run)
        },
        onClose: (run) => {
          if (end === undefined) closers.push(run)
          else run()
        },
        end: () => over('completed'),
      }
      const lost = (refused: Refusal): void => over({ lost: refused })
      const guard = guardOf(this.#sequences.edge, call, lost)
      const unwatch = opened.watch?.(() => void guard.look())
      this.#look = () => void guard.look()
      own.onClose(() => {
        this.#look = () => {}
        guard.stop()
        stopDrain()
        unwatch?.()
        opened.release()
      })
      opened.join(own, () => lost(refuse('not_found')))
    })
  }
  #look = (): void => {}
  /** Checks again whether the caller has access. */
  look(): void {
    this.#look()
  }
  async #drained(): Promise<void> {
    if (!this.#shared.sink.full || this.#closed) return
    await new Promise<void>((resolve) => {
      const stop = this.#shared.onDrain(() => {
        stop()
        resolve()
      })
      this.#end = () => {
        stop()
        resolve()
      }
    })
    this.#end = undefined
  }
}
