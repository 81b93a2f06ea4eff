/** Streams of sessions: where a client begins, in either version, and the answer of a command that is a stream. */
import { isRefusal, refuse, refuseFields, type Refusal } from '../../../protocol/errors.ts'
import { isId } from '../../../protocol/ids.ts'
import { scopeId, operationOf, type Call, type Edge } from '../../call.ts'
import { guardOf } from '../../guard.ts'
import type { Answer, Exchange, Sink } from '../../http/respond.ts'
import { cursorOfText, openStream } from '../../streams/sse.ts'
import { openTranscriptCursor } from './transcript-cursor.ts'
import { spell, type Dialect } from './change.ts'
import type { FollowedSessions } from './followed.ts'
import { knownResults } from '../results.ts'
import { sessionReferenceOf } from '../visibility.ts'

interface Start {
  readonly version: Dialect['name']
  readonly from: { readonly after?: number; readonly after_sequence?: number }
}

/** The place to begin: of the transcript the query wins over the header; of the older stream the larger number. */
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
/** Whether a row is a stream of a session. */
export const isSessionStream = (name: string): boolean => Object.hasOwn(starts, name)

/** Open the stream that a row asks for. */
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
  const { follower, dialects, release } = sessions.hold(scopeId(edge, call), session_id)
  const first = await follower.first(from).catch(() => refuse('service_unavailable'))
  if (isRefusal(first) || !exchange.open) {
    release()
    return isRefusal(first) ? first : undefined
  }
  const guard = guardOf(edge, call, () => sink.end())
  const sink: Sink = openStream(edge.world, exchange, ': keepalive', () => void guard.look())
  // A session that was found by its key is of no channel: such keys are refused.
  const sight =
    sessionReferenceOf(call.slots, operationOf(call)) &&
    edge.sight.onChange(scopeId(edge, call), session_id, call.caller, () => void guard.look())
  sink.onClose(() => {
    guard.stop()
    release()
    void sight?.then((stop) => stop())
  })
  void follower
    .join(sink, dialects[version], first)
    .then(() => (version === 'v1' ? catchUp() : undefined))
  return undefined

  /** Results that were known before the stream was opened; one that comes meanwhile may come twice. */
  async function catchUp(): Promise<void> {
    const results = await knownResults(edge.world, scopeId(edge, call), session_id, () =>
      sink.closed ? [] : follower.rows,
    )
    if (results.length > 0)
      sink.write(results.map((result) => spell('tool.result', { session_id, ...result })).join(''))
  }
}

/** Whether a command that starts a turn is to be answered with the turn itself. */
export const wantsStream = ({ row, incoming }: Call): boolean =>
  row.verb === 'command' &&
  row.shape.stream === 'accept' &&
  (incoming.header('accept') ?? '')
    .split(',')
    .some((part) => part.split(';')[0]?.trim().toLowerCase() === 'text/event-stream')
/** The answer of such a command as the older stream, from its input on. A refusal stays what it is. */
export async function streamed(
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
