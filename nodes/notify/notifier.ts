/**
 * Notifies people outside the service over every configured channel. A notice is complete when each
 * of its messages is complete: sent, or permanently refused. When a notice is retried, this node
 * does not send the completed messages again, unless it has restarted or forgotten the notice.
 */
import type { Notice } from '../host/deps.ts'

/** One message to one destination. `to` is unique among the messages of a notice. */
interface Delivery {
  readonly to: string
  /** Sends the message. Returns whether it is complete: sent, or permanently refused. */
  send(): Promise<boolean>
}
/**
 * Returns the messages of a notice over one channel; undefined when they cannot be determined now.
 */
export type Channel = (notice: Notice) => Promise<readonly Delivery[] | undefined>

/** Maximum number of incomplete notices that are remembered. */
const MAX_INCOMPLETE = 10_000

/**
 * Combines channels. The returned function sends a notice over all of them, and returns whether the
 * notice is complete.
 */
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
    for (const oldest of sent.size > MAX_INCOMPLETE ? [...sent.keys()].slice(0, 1) : [])
      sent.delete(oldest)
    return false
  }
}
