/**
 * The stream that notifies a client when the tools that it may call have changed. The id of a frame
 * contains a hash of the client's tools, so a client that reconnects is also notified of a change
 * that it has missed. Streams of calls are in `follow.ts`.
 */
import { isRefusal, type Refusal } from '../../protocol/errors.ts'
import { notice } from '../../protocol/mcp/messages.ts'
import type { Caller } from '../auth/authenticate.ts'
import { type Call, type Edge, scopeId } from '../call.ts'
import { guardOf } from '../guard.ts'
import { openCursor, sealCursor } from '../http/cursor.ts'
import type { Exchange, Sink } from '../http/respond.ts'
import { openStream } from '../streams/sse.ts'
import { acceptsEmptyData, bindingOf, frameOf, positionFrame } from './follow.ts'
import { allTools, refuseTool } from './tools.ts'

/** Returns a hash of the tools that a caller may call. */
async function digestOf(
  { world }: Edge,
  project: string,
  caller: Caller,
): Promise<string | Refusal> {
  const offered = await allTools(world, project)
  return isRefusal(offered)
    ? offered
    : world
        .hash(
          JSON.stringify(
            offered.filter((one) => !refuseTool(world, caller, one)).map(({ tool }) => tool),
          ),
        )
        .slice(0, 32)
}

/**
 * Extracts the hash of tools from the id of a frame of this stream. Returns undefined for any other
 * id.
 */
export function knownTools(edge: Edge, call: Call, frame_id: string): string | undefined {
  const opened = openCursor(edge.world, bindingOf(edge, call, 'tools'), frame_id)
  return isRefusal(opened) ? undefined : String(opened.position)
}

/**
 * Opens the stream.
 * @param before the hash of the tools in the last frame that the client received, if any.
 * @param open the set of open streams of tool changes. The new stream is added to it, and removed
 * when it closes.
 */
export async function listen(
  edge: Edge,
  call: Call,
  exchange: Exchange,
  before: string | undefined,
  open: Set<Sink>,
): Promise<Refusal | undefined> {
  const { world, directory, authentication } = edge
  const project = scopeId(edge, call)
  const first = await digestOf(edge, project, call.caller)
  if (isRefusal(first) || !exchange.open) return isRefusal(first) ? first : undefined
  let known: string = first
  const guard = guardOf(edge, call, () => out.end())
  const out: Sink = openStream(world, exchange, ': keepalive', () => void guard.look())
  const tell = (): void =>
    out.write(
      frameOf(
        notice('tools/list_changed'),
        sealCursor(world, bindingOf(edge, call, 'tools'), known),
      ),
    )
  let looking = false
  let again = false
  const look = async (): Promise<void> => {
    again = looking
    if (looking) return
    looking = true
    do {
      again = false
      const caller = await authentication.again(call.caller)
      const now = isRefusal(caller) ? caller : await digestOf(edge, project, caller)
      if (isRefusal(now) || now === known) continue
      known = now
      tell()
    } while (again && !out.closed)
    looking = false
  }
  const stop = directory.onChange((id) => {
    if (id === undefined || id === project || id === world.organization())
      void look().catch(() => {
        looking = false
      })
  })
  open.add(out)
  out.onClose(() => {
    open.delete(out)
    stop()
    guard.stop()
  })
  if (before !== undefined && before !== known) tell()
  else if (acceptsEmptyData(call))
    out.write(positionFrame(sealCursor(world, bindingOf(edge, call, 'tools'), known)))
  return undefined
}
