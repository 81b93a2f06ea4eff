/**
 * Opens streams of sessions in both formats: determines the start position, checks access while the
 * stream is open, and answers commands with a stream. The content is sent by `follower.ts`.
 */
import { isRefusal, type Refusal, refuse, refuseFields } from '../../../protocol/errors.ts'
import { isId } from '../../../protocol/ids.ts'
import { type Call, type Edge, factsOf, scopeId } from '../../call.ts'
import { guardOf } from '../../guard.ts'
import type { Answer, Exchange, Sink } from '../../http/respond.ts'
import { cursorOfText, openStream } from '../../streams/sse.ts'
import { knownResults } from '../results.ts'
import { sessionReferenceOf } from '../visibility.ts'
import { type Dialect, frameText } from './change.ts'
import type { FollowedSessions } from './followed.ts'
import type { SessionFollower } from './follower.ts'
import { openTranscriptCursor } from './transcript-cursor.ts'

interface Start {
  readonly version: Dialect['name']
  readonly from: { readonly after?: number; readonly after_sequence?: number }
}

/**
 * Determines the format and the start position of a stream, by operation name. For the transcript
 * stream, the cursor of the query takes precedence over `Last-Event-ID`. For the older stream, the
 * larger of `after_sequence` and `Last-Event-ID` applies.
 */
const starts: Readonly<
  Record<string, (edge: Edge, call: Call, session_id: string) => Start | Refusal>
> = {
  'session.transcript_stream': (edge, call, session_id) => {
    const given = call.query['cursor'] ?? call.incoming.header('last-event-id')
    const opened =
      given === undefined
        ? undefined
        : openTranscriptCursor(edge.world, scopeId(edge, call), session_id, String(given))
    if (opened && isRefusal(opened)) return opened
    return { version: 'v2', from: opened ? { after: opened.revision } : {} }
  },
  'session.stream': (_, { query, incoming }) => {
    const text = incoming.header('last-event-id')
    const header = text === undefined ? 0 : cursorOfText(text)
    if (header === undefined)
      return refuseFields({
        field: 'Last-Event-ID',
        message: 'must be the number of a message',
        expected: 'integer',
        actual: String(text).slice(0, 100),
      })
    return {
      version: 'v1',
      from: { after_sequence: Math.max(header, Number(query['after_sequence'] ?? 0)) },
    }
  },
}
/** Returns whether an operation is a stream of a session. */
export const isSessionStream = (name: string): boolean => Object.hasOwn(starts, name)

/**
 * Opens the stream of an operation. Returns undefined when the stream was opened or the client has
 * disconnected, otherwise a refusal.
 */
export async function runSessionStream(
  edge: Edge,
  sessions: FollowedSessions,
  call: Call,
  exchange: Exchange,
  name: string,
): Promise<Answer | Refusal | undefined> {
  const session_id = call.slots['session_id'] ?? ''
  if (!isId(session_id, 'agent_session')) return refuse('not_found')
  const start = starts[name]?.(edge, call, session_id) ?? refuse('not_found')
  return isRefusal(start) ? start : follow(edge, sessions, call, exchange, session_id, start)
}

async function follow(
  edge: Edge,
  sessions: FollowedSessions,
  call: Call,
  exchange: Exchange,
  session_id: string,
  { version, from }: Start,
): Promise<Answer | Refusal | undefined> {
  const opened = await openTranscript(edge, sessions, call, session_id, { version, from })
  if (isRefusal(opened)) return opened
  if (!exchange.open) {
    opened.release()
    return undefined
  }
  const guard = guardOf(edge, call, () => sink.end())
  const sink: Sink = openStream(edge.world, exchange, ': keepalive', () => void guard.look())
  const unwatch = opened.watch(() => void guard.look())
  sink.onClose(() => {
    guard.stop()
    unwatch()
    opened.release()
  })
  const { follower } = opened
  void opened.join(sink).then(() => (version === 'v1' ? catchUp() : undefined))
  return undefined

  /**
   * Sends the tool results that arrived before the stream was opened. A result that arrives while
   * they are read may be sent twice.
   */
  async function catchUp(): Promise<void> {
    const results = await knownResults(edge.world, scopeId(edge, call), session_id, () =>
      sink.closed ? [] : follower.rows,
    )
    if (results.length > 0)
      sink.write(
        results.map((result) => frameText('tool.result', { session_id, ...result })).join(''),
      )
  }
}

/** A session whose first page has been read. One client may join it. */
interface OpenedTranscript {
  readonly follower: SessionFollower
  /** Sends the transcript to a client, until its sink closes. */
  join(sink: Sink): Promise<void>
  /**
   * Calls `look` when the access may have been revoked, until the returned function is called. Does
   * nothing for a call that identifies its session by a key instead of the path: such calls are
   * refused for keys of channels, so the session belongs to no channel.
   */
  watch(look: () => void): () => void
  /** Releases the follower. Must be called once the client has left. */
  release(): void
}
/** Opens a session for a client that was admitted. */
export async function openTranscript(
  edge: Edge,
  sessions: FollowedSessions,
  call: Call,
  session_id: string,
  { version, from }: Start,
): Promise<OpenedTranscript | Refusal> {
  const project = scopeId(edge, call)
  const { member, release } = sessions.acquire(project, session_id)
  const { follower, dialects } = member
  const first = await follower.first(from).catch(() => refuse('service_unavailable'))
  if (isRefusal(first)) {
    release()
    return first
  }
  return {
    follower,
    join: (sink) => follower.join(sink, dialects[version], first),
    watch: (look) => {
      const stop =
        sessionReferenceOf(call.slots, factsOf(call)) &&
        edge.sessionVisibility.onChange(project, session_id, call.caller, look)
      return () => void stop?.then((end) => end())
    },
    release,
  }
}

/**
 * Returns whether a command that starts a turn must be answered with the stream of the session, as
 * its `Accept` header requests.
 */
export const wantsStream = ({ row, incoming }: Call): boolean =>
  row.verb === 'command' &&
  row.shape.stream === 'accept' &&
  (incoming.header('accept') ?? '')
    .split(',')
    .some((part) => part.split(';')[0]?.trim().toLowerCase() === 'text/event-stream')
/**
 * Opens the older stream (`session.stream`) as the answer to a command that starts a turn. The
 * stream begins after the input of the command. A refusal is returned unchanged.
 */
export async function answerWithStream(
  edge: Edge,
  sessions: FollowedSessions,
  call: Call,
  exchange: Exchange,
  answer: Answer | Refusal,
): Promise<Answer | Refusal | undefined> {
  if (isRefusal(answer)) return answer
  const { session, after_sequence } = answer.body as {
    readonly session: { readonly id: string }
    readonly after_sequence: number
  }
  return follow(edge, sessions, call, exchange, session.id, {
    version: 'v1',
    from: { after_sequence },
  })
}
