/**
 * The stream of a call: progress notifications during the run, and the result at its end.
 *
 * Invariants:
 * M1. The gateway stores nothing about a call. Everything that is needed to resume a stream is
 *     sealed into the ids of its frames. A client that has lost its connection can send the last id
 *     to any gateway, and receives the rest.
 * M2. A stream ends with the result or an error. It ends without either when the gateway stops, the
 *     caller loses access, or the result is temporarily unreadable. A client that disconnects ends
 *     its stream, but never the run.
 * M3. The progress number counts the events of the run, and continues after a reconnection.
 */
import { isRefusal, type Refusal, refuse } from '../../protocol/errors.ts'
import {
  EMPTY_EVENTS_SINCE,
  errorAnswer,
  notice,
  type RpcId,
  successAnswer,
} from '../../protocol/mcp/messages.ts'
import { type Call, type Edge, scopeId } from '../call.ts'
import { guardOf } from '../guard.ts'
import { type Binding, openCursor, sealCursor } from '../http/cursor.ts'
import type { Exchange, Sink } from '../http/respond.ts'
import { oneLine, openStream } from '../streams/sse.ts'
import { timelineSource } from '../streams/timeline.ts'
import { createProgressReader, progressSpelling } from './progress.ts'
import { type Promised, resultOf } from './result.ts'

/**
 * The state of a call in progress. Each frame id contains it in sealed form, so a client can
 * resume the stream at any gateway (M1).
 */
export interface Waiting {
  /** The tool's name in the catalog. */
  readonly name: string
  /** The name of the tool's row. */
  readonly row: string
  readonly run_id: string
  readonly id: RpcId
  readonly token?: RpcId
  /** The number of events of the run so far. */
  readonly seen: number
  /** The cursor of the last event of the run. */
  readonly at: number
}

/** Minimum time between two progress notifications, in milliseconds. */
const NOTIFY_EVERY_MS = 200

/** Returns a frame with a JSON-RPC message. */
export const frameOf = (message: object, id?: string): string =>
  `${id === undefined ? '' : `id: ${id}\n`}event: message\ndata: ${oneLine(JSON.stringify(message))}\n\n`
/** Returns a frame without a message. It only provides an id from which the client can resume. */
export const positionFrame = (id: string): string => `id: ${id}\ndata: \n\n`
/** Returns whether the client supports frames with empty data. */
export const acceptsEmptyData = ({ incoming }: Call): boolean =>
  (incoming.header('mcp-protocol-version') ?? '') >= EMPTY_EVENTS_SINCE
/** Returns the binding used to seal frame ids: the caller, the project and the kind of stream. */
export const bindingOf = (edge: Edge, call: Call, what: 'call' | 'tools'): Binding => ({
  project: scopeId(edge, call),
  route: `mcp.${what}`,
  filters: { principal: call.caller.principal.id },
})

/**
 * Returns the state of a call in progress, which is sealed into its frame ids. Returns undefined if
 * the id was not issued for a call by this caller.
 */
export function waitingOf(edge: Edge, call: Call, frame_id: string): Waiting | undefined {
  const opened = openCursor(edge.world, bindingOf(edge, call, 'call'), frame_id)
  return isRefusal(opened) ? undefined : (opened.position as Waiting)
}

interface FollowedCall {
  readonly promised: Promised
  readonly waiting: Waiting
  /** Whether this is the first stream of the call. */
  readonly first: boolean
}
/**
 * Opens the stream of a call.
 * @param call the call to the tool's row. The permission for the row is checked while the stream is
 * open.
 */
export async function followCall(
  edge: Edge,
  call: Call,
  exchange: Exchange,
  { promised, waiting, first }: FollowedCall,
): Promise<Refusal | undefined> {
  const { world } = edge
  const project = scopeId(edge, call)
  const { member, release } = edge.followers.acquire(
    timelineSource(world, project, waiting.run_id, progressSpelling),
  )
  const { follower } = member
  const opening = await follower.open(waiting.at).catch(() => refuse('service_unavailable'))
  if (isRefusal(opening) || !exchange.open) {
    release()
    return isRefusal(opening) ? opening : undefined
  }
  const guard = guardOf(edge, call, () => out.end())
  const out: Sink = openStream(world, exchange, ': keepalive', () => void guard.look())
  const notifier = createNotifier(edge, call, out, waiting)
  const read = createProgressReader({
    event: notifier.event,
    // The stream ends at once, because the gateway closes its connections after this turn of the
    // event loop. The client resumes at another gateway.
    farewell: (frame) => {
      out.write(frame)
      out.end()
    },
    over: () => void finish(),
  })
  const finish = async (): Promise<void> => {
    notifier.stop()
    if (out.closed) return
    const result = await resultOf(edge, call, promised, waiting.run_id).catch(() =>
      refuse('service_unavailable'),
    )
    if (isRefusal(result) && result.refused !== 'service_unavailable')
      out.write(
        frameOf(
          errorAnswer(waiting.id, 'internal', 'The result is no longer available.', {
            run_id: waiting.run_id,
          }),
        ),
      )
    else if (result && !isRefusal(result)) out.write(frameOf(successAnswer(waiting.id, result)))
    out.end()
  }
  out.onClose(() => {
    guard.stop()
    read.end()
    release()
  })
  if (first && acceptsEmptyData(call)) out.write(positionFrame(notifier.resumeId()))
  follower.join(read, waiting.at, opening)
  return undefined
}

/**
 * Creates the sender of progress notifications. Notifications are throttled: of the messages within
 * `NOTIFY_EVERY_MS` after a notification, only the latest is sent.
 */
function createNotifier(edge: Edge, call: Call, out: Sink, { token, ...waiting }: Waiting) {
  const { world } = edge
  let { seen, at } = waiting
  let held: string | undefined
  let cancel: (() => void) | undefined
  const resumeId = (): string =>
    sealCursor(world, bindingOf(edge, call, 'call'), {
      ...waiting,
      ...(token !== undefined && { token }),
      seen,
      at,
    } satisfies Waiting)
  const notify = (message: string): void => {
    held = cancel ? message : undefined
    if (cancel || out.closed || out.full) return
    out.write(
      frameOf(notice('progress', { progressToken: token, progress: seen, message }), resumeId()),
    )
    cancel = world.later(NOTIFY_EVERY_MS, () => {
      cancel = undefined
      if (held !== undefined) notify(held)
    })
  }
  return {
    resumeId,
    event(cursor: number, message: string | undefined): void {
      seen++
      at = cursor
      if (token !== undefined && message !== undefined) notify(message)
    },
    stop: () => cancel?.(),
  }
}
