/**
 * Opens the streams of runs, channels and projects: determines the start position, and checks
 * access while the stream is open. The items are sent by `follow.ts`. Streams of sessions are in
 * `../sessions/transcript/stream.ts`.
 */
import { isRefusal, type Refusal, refuse, refuseFields } from '../../protocol/errors.ts'
import { isId } from '../../protocol/ids.ts'
import type { LogFilters } from '../../protocol/jobs/logs.ts'
import { getOwn } from '../../protocol/lookup.ts'
import { type Call, type Edge, operationOf, scopeId } from '../call.ts'
import { guardOf } from '../guard.ts'
import type { Answer, Exchange, Sink } from '../http/respond.ts'
import { logSource } from '../logs/source.ts'
import { runQuery } from '../query.ts'
import { accessTo, channelSource, endOnRevocation } from './channel-stream.ts'
import { feedSource } from './feed.ts'
import type { Followers, Source } from './followers.ts'
import { beginFrame, cursorOfText, openStream } from './sse.ts'
import { timelineSource, withModelOutput } from './timeline.ts'

/**
 * Wraps a sink. When the access is revoked, calls `revoked` if it is given; otherwise ends the
 * sink.
 */
type Watch = (sink: Sink, revoked?: () => void) => Sink
/**
 * The rules of a stream operation: the sequence that it follows, and the name of its cursor
 * parameter.
 */
interface Followed {
  readonly cursor: string
  source(edge: Edge, call: Call): Source | Refusal
  /**
   * Checks the caller's access in addition to its permission. Returns a function that wraps the
   * stream's sink so that the stream ends when the access is revoked.
   */
  admit?(edge: Edge, call: Call): Promise<Watch | Refusal>
}
const followed: Readonly<Record<string, Followed>> = {
  'run.events': {
    cursor: 'after_sequence',
    // Only the row `run.events` includes previews of model output, because the clients of the other
    // rows with this operation do not support them.
    source: (edge, call) =>
      isId(call.slots['id'] ?? '', 'run')
        ? timelineSource(
            edge.world,
            scopeId(edge, call),
            call.slots['id'] ?? '',
            call.name === 'run.events' ? withModelOutput : undefined,
          )
        : refuse('not_found'),
  },
  'channel.events': {
    cursor: 'since',
    source: (edge, call) =>
      isId(call.slots['id'] ?? '', 'channel')
        ? channelSource(edge.world, scopeId(edge, call), call.slots['id'] ?? '')
        : refuse('not_found'),
    admit: async (edge, call) => {
      const access = await accessTo(edge, call)
      return isRefusal(access)
        ? access
        : (sink, revoked) => endOnRevocation(sink, call.caller.principal.id, access, revoked)
    },
  },
  'run.logs': {
    cursor: 'after',
    source: (edge, call) =>
      isId(call.slots['id'] ?? '', 'run')
        ? logSource(
            edge.world,
            scopeId(edge, call),
            call.slots['id'] ?? '',
            call.query as LogFilters,
          )
        : refuse('not_found'),
  },
  'run.feed': {
    cursor: 'since',
    source: (edge, call) => feedSource(edge.world, scopeId(edge, call)),
  },
}

/**
 * Returns the start position: the larger of the query's cursor and `Last-Event-ID`, or undefined
 * when neither is given. An invalid header is refused.
 */
function startOf({ query, incoming }: Call, parameter: string): number | undefined | Refusal {
  const text = incoming.header('last-event-id')
  const header = text === undefined ? undefined : cursorOfText(text)
  if (text !== undefined && header === undefined)
    return refuseFields({
      field: 'Last-Event-ID',
      message: 'must be the id of a frame of this stream',
      expected: 'integer',
      actual: text.slice(0, 100),
    })
  const given = [query[parameter] as number | undefined, header].filter((one) => one !== undefined)
  return given.length === 0 ? undefined : Math.max(...given)
}

/** Returns whether the caller of a stream operation requests a page of JSON instead of a stream. */
export const wantsPage = ({ row, incoming }: Call): boolean =>
  row.shape.stream === 'accept' && !/\btext\/event-stream\b/i.test(incoming.header('accept') ?? '')

/**
 * Handles a stream operation. Returns a page of JSON if the operation permits it and the client did
 * not request events. Otherwise opens the stream and returns undefined.
 */
export async function runStream(
  edge: Edge,
  followers: Followers,
  call: Call,
  exchange: Exchange,
): Promise<Answer | Refusal | undefined> {
  if (wantsPage(call)) return runQuery(edge, call)
  const rule = ruleOf(call)
  const start = startOf(call, rule.cursor)
  if (isRefusal(start)) return start
  const opened = await openSequence(edge, followers, call, start)
  if (isRefusal(opened)) return opened
  if (!exchange.open) {
    opened.release()
    return undefined
  }
  const guard = guardOf(edge, call, () => sink.end())
  const sink: Sink = openStream(edge.world, exchange, opened.comment, () => void guard.look())
  sink.onClose(() => {
    guard.stop()
    opened.release()
  })
  if (opened.begins && opened.after !== undefined) sink.write(beginFrame(opened.after))
  opened.join(sink)
  return undefined
}
const ruleOf = (call: Call): Followed => {
  const rule = getOwn(followed, operationOf(call))
  if (!rule) throw new Error(`nothing to follow for ${call.name}`)
  return rule
}

/** A sequence whose first page has been read. One client may join it. */
export interface OpenedSequence<Cursor = number> {
  /** The comment that is sent as a keepalive. */
  readonly comment: string
  /** The cursor after which the client receives items. Absent for a sequence without cursors. */
  readonly after?: Cursor
  /** Whether the client sent no cursor, and therefore starts at the newest position. */
  readonly begins: boolean
  /**
   * Sends the items to a client, until its sink closes. The sink ends when the sequence ends.
   * @param revoked called instead of ending the sink after the event that revokes access.
   */
  join(sink: Sink, revoked?: () => void): void
  /** Releases the follower. Must be called once the client has left. */
  release(): void
}
/**
 * Opens the sequence of a stream operation for a client that was admitted.
 * @param start the cursor of the client, if it has one.
 */
export async function openSequence(
  edge: Edge,
  followers: Followers,
  call: Call,
  start: number | undefined,
): Promise<OpenedSequence | Refusal> {
  const rule = ruleOf(call)
  const source = rule.source(edge, call)
  if (isRefusal(source)) return source
  const watch = await rule.admit?.(edge, call)
  if (isRefusal(watch)) return watch
  const { member, release } = followers.acquire(source)
  const { follower } = member
  const opening = await (start === undefined
    ? follower.open(0, source.newest)
    : follower.open(start)
  ).catch(() => refuse('service_unavailable'))
  if (isRefusal(opening)) {
    release()
    return opening
  }
  const begins = start === undefined && source.newest !== undefined
  const after = start ?? (begins ? opening.page.last : 0)
  return {
    comment: source.comment,
    after,
    begins,
    join: (sink, revoked) => follower.join(watch ? watch(sink, revoked) : sink, after, opening),
    release,
  }
}
