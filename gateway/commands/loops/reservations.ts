/**
 * Reservations of the handles of HTTP triggers. A handle belongs to one loop of the installation, so
 * a request that saves a loop reserves its handles first. A reservation expires unless the loop is
 * saved.
 */
import type { Origin } from '../../../protocol/entry.ts'
import { isRefusal, type Refusal, refuseFields } from '../../../protocol/errors.ts'
import { isId } from '../../../protocol/ids.ts'
import type { Saving } from '../../../protocol/loops/events.ts'
import { handleId, refuseTakenHandle } from '../../../protocol/loops/handles.ts'
import { httpHandle, type Trigger } from '../../../protocol/loops/schema.ts'
import type { Edge } from '../../call.ts'
import { sendNew } from '../../http/send.ts'

/** The loop that a request saves, and an id of the request. */
export interface Saver {
  readonly project: string
  readonly loop_id: string
  readonly reservation: string
  readonly origin: Origin
}
/** Ends the reservations that a refused request has made. */
export async function release(
  { world }: Edge,
  { loop_id, reservation, origin }: Saver,
  handles: Iterable<string>,
): Promise<void> {
  for (const handle of handles)
    await sendNew(
      world,
      { project: world.organization(), kind: 'trigger_handle', id: handleId(handle) },
      'handle.free',
      { loop_id, reservation },
      origin,
    )
}
/**
 * Reserves the handles of the given triggers. Returns the expiry time of each reservation, by
 * handle.
 */
export async function reserve(
  edge: Edge,
  saver: Saver,
  triggers: readonly Trigger[] | undefined,
): Promise<Required<Pick<Saving, 'reserved'>> | Refusal> {
  const reserved = new Map<string, number>()
  const refused = await reserveEach(edge, saver, triggers ?? [], reserved)
  if (!refused) return { reserved: Object.fromEntries(reserved) }
  await release(edge, saver, reserved.keys())
  return refused
}
const refuseForeignId = (handle: string, index: number): Refusal =>
  refuseFields({
    field: `triggers[${index}].config.http_handle`,
    message: 'has the form of an id; omit it to use the id of the trigger',
    actual: handle,
  })

/**
 * Returns the refusal for the first handle that `reserve` would refuse, because another loop has it.
 * Reserves nothing.
 * @param loop_id the loop with the triggers; undefined if it does not exist yet.
 * @param releases whether another loop gives up a handle by the same request.
 */
export async function refuseForeignHandles(
  { world }: Edge,
  loop_id: string | undefined,
  triggers: readonly Trigger[],
  releases: (loop_id: string, handle: string) => boolean,
): Promise<Refusal | undefined> {
  for (const [index, trigger] of triggers.entries()) {
    const handle = httpHandle(trigger)
    if (handle === undefined) continue
    const owner = await world.ask(
      { project: world.organization(), kind: 'trigger_handle', id: handleId(handle) },
      'owner',
      { handle },
    )
    if (isRefusal(owner)) return owner
    if (owner !== null && owner.loop_id === loop_id) continue
    if (isId(handle, 'trigger')) return refuseForeignId(handle, index)
    if (owner !== null && !releases(owner.loop_id, handle)) return refuseTakenHandle(handle)
  }
  return undefined
}

/** Adds each reservation to `reserved` until one is refused. Returns this refusal. */
async function reserveEach(
  { world }: Edge,
  { project, loop_id, reservation, origin }: Saver,
  triggers: readonly Trigger[],
  reserved: Map<string, number>,
): Promise<Refusal | undefined> {
  for (const [index, trigger] of triggers.entries()) {
    const handle = httpHandle(trigger)
    if (handle === undefined) continue
    if (isId(handle, 'trigger')) {
      const owner = await world.ask(
        { project: world.organization(), kind: 'trigger_handle', id: handleId(handle) },
        'owner',
        { handle },
      )
      if (isRefusal(owner)) return owner
      if (owner?.loop_id !== loop_id) return refuseForeignId(handle, index)
    }
    const id = handleId(handle)
    const outcome = await world.command({
      project: world.organization(),
      kind: 'trigger_handle',
      id,
      command_id: `handle.reserve:${loop_id}:${world.id('delivery')}`,
      name: 'handle.reserve',
      input: { handle, project, loop_id, reservation },
      origin,
    })
    if (isRefusal(outcome)) return outcome
    reserved.set(handle, outcome.reply.until)
  }
  return undefined
}
