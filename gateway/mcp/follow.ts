/**
 * A call that waits for its run, as a stream: progress while it goes on, the result at its end.
 *
 * Invariants:
 * M1. Nothing about a call is kept: whatever is needed to go on is sealed into the ids of its frames, so a client whose stream
 *     broke comes back to any gateway with the last one and gets the rest.
 * M2. A stream ends with the result, or without one when the gateway stops or the caller may not see it any more. A client
 *     that goes away ends its waiting, never the run.
 * M3. The number that progress carries grows with every event of the run, also over streams.
 */
import { isRefusal, refuse, type Refusal } from '../../protocol/errors.ts'
import { answered, faulty, notice, PRIMED, type RpcId } from '../../protocol/mcp/messages.ts'
import { scopeId, type Call, type Edge } from '../call.ts'
import { openCursor, sealCursor, type Binding } from '../http/cursor.ts'
import { guardOf } from '../guard.ts'
import type { Exchange, Sink } from '../http/respond.ts'
import { openStream } from '../streams/sse.ts'
import { timelineSource } from '../streams/timeline.ts'
import { progressSpelling, reader } from './progress.ts'
import { resultOf, type Promised } from './result.ts'

/** A call under way: what was asked under which id, its run, and how far its client has been told of it. */
export interface Waiting {
  /** The tool's name in the catalog, and the row that does it. */
  readonly name: string
  readonly row: string
  readonly run_id: string
  readonly id: RpcId
  readonly token?: RpcId
  /** Events told of, and the cursor of the last one. */
  readonly seen: number
  readonly at: number
}

/** Least milliseconds between two tellings of progress. */
const PAUSE = 200

/** One frame of a stream of this protocol. */
export const frameOf = (message: object, id?: string): string =>
  `${id === undefined ? '' : `id: ${id}\n`}event: message\ndata: ${JSON.stringify(message)}\n\n`
/** A frame that only gives a place to come back to. */
export const placeFrame = (id: string): string => `id: ${id}\ndata: \n\n`
/** Whether the client reads frames without data. */
export const reads = ({ incoming }: Call): boolean =>
  (incoming.header('mcp-protocol-version') ?? '') >= PRIMED
/** What ids of frames belong to: the caller in the project. */
export const bindingOf = (edge: Edge, call: Call, what: 'call' | 'tools'): Binding => ({
  project: scopeId(edge, call),
  route: `mcp.${what}`,
  filters: { principal: call.caller.principal.id },
})

/** The call that the id of a frame stands for; undefined when it stands for none of this caller. */
export function waitingOf(edge: Edge, call: Call, frame_id: string): Waiting | undefined {
  const opened = openCursor(edge.world, bindingOf(edge, call, 'call'), frame_id)
  return isRefusal(opened) ? undefined : (opened.position as Waiting)
}

/** Follow the run of a call. @param call of the row that does the tool, for its permission. @param first the client has nothing yet. */
export async function followCall(
  edge: Edge,
  call: Call,
  exchange: Exchange,
  promised: Promised,
  waiting: Waiting,
  first: boolean,
): Promise<Refusal | undefined> {
  const { world } = edge
  const project = scopeId(edge, call)
  const { follower, release } = edge.followers.hold(
    timelineSource(world, project, waiting.run_id, progressSpelling),
  )
  const opening = await follower.open(waiting.at).catch(() => refuse('service_unavailable'))
  if (isRefusal(opening) || !exchange.open) {
    release()
    return isRefusal(opening) ? opening : undefined
  }
  const guard = guardOf(edge, call, () => out.end())
  const out: Sink = openStream(world, exchange, ': keepalive', () => void guard.look())
  const telling = tell(edge, call, out, waiting)
  const read = reader({ ...telling, over: () => void finish() })
  const finish = async (): Promise<void> => {
    telling.stop()
    if (out.closed) return
    const result = await resultOf(edge, call, promised, waiting.run_id).catch(() =>
      refuse('service_unavailable'),
    )
    if (isRefusal(result) && result.refused !== 'service_unavailable')
      out.write(
        frameOf(
          faulty(waiting.id, 'internal', 'The result cannot be read any more.', {
            run_id: waiting.run_id,
          }),
        ),
      )
    else if (result && !isRefusal(result)) out.write(frameOf(answered(waiting.id, result)))
    out.end()
  }
  out.onClose(() => {
    guard.stop()
    read.end()
    release()
  })
  if (first && reads(call)) out.write(placeFrame(telling.place()))
  follower.join(read, waiting.at, opening)
  return undefined
}

/** Tell a client of the events of its run: not of each one when there are many, but of the last one in the end. */
function tell(edge: Edge, call: Call, out: Sink, { token, ...waiting }: Waiting) {
  const { world } = edge
  let { seen, at } = waiting
  let held: string | undefined
  let cancel: (() => void) | undefined
  const place = (): string =>
    sealCursor(world, bindingOf(edge, call, 'call'), {
      ...waiting,
      ...(token !== undefined && { token }),
      seen,
      at,
    } satisfies Waiting)
  const say = (message: string): void => {
    held = cancel ? message : undefined
    if (cancel || out.closed || out.full) return
    out.write(
      frameOf(notice('progress', { progressToken: token, progress: seen, message }), place()),
    )
    cancel = world.later(PAUSE, () => {
      cancel = undefined
      if (held !== undefined) say(held)
    })
  }
  return {
    place,
    event(cursor: number, message: string | undefined): void {
      seen++
      at = cursor
      if (token !== undefined && message !== undefined) say(message)
    },
    farewell: (frame: string) => out.write(frame),
    stop: () => cancel?.(),
  }
}
