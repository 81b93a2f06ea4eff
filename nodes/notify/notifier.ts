/**
 * Telling people outside the service, over every channel that was set up. A notice is done with when each of its messages
 * is; those that went out are not sent again while others are tried again, as far as this node remembers.
 */
import type { Notice } from '../host/deps.ts'

/** One message to one place. `to` tells it from the others of its notice. */
interface Delivery {
  readonly to: string
  /** Whether it is done with: sent, or of no use. */
  send(): Promise<boolean>
}
/** The messages of a notice over one channel; undefined when that cannot be said now. */
export type Channel = (notice: Notice) => Promise<readonly Delivery[] | undefined>

/** Notices whose messages went out in part, remembered at most. */
const REMEMBERED = 10_000

/** Join channels. What it gives answers whether a notice is done with. */
export function createNotifier(channels: readonly Channel[]): (notice: Notice) => Promise<boolean> {
  const sent = new Map<string, Set<string>>()
  const over = async (
    channel: Channel,
    index: number,
    notice: Notice,
    before: Set<string>,
  ): Promise<boolean> => {
    const deliveries = await channel(notice)
    if (!deliveries) return false
    const done = await Promise.all(
      deliveries.map(async ({ to, send }) => {
        const name = `${index} ${to}`
        if (before.has(name)) return true
        const well = await send()
        if (well) before.add(name)
        return well
      }),
    )
    return done.every(Boolean)
  }
  return async (notice) => {
    const before = sent.get(notice.id) ?? new Set<string>()
    const done = await Promise.all(
      channels.map((channel, index) => over(channel, index, notice, before)),
    )
    sent.delete(notice.id)
    if (done.every(Boolean)) return true
    sent.set(notice.id, before)
    for (const oldest of sent.size > REMEMBERED ? [...sent.keys()].slice(0, 1) : [])
      sent.delete(oldest)
    return false
  }
}
