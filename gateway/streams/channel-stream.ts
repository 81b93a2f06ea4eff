/**
 * The events of one channel as a sequence to follow: pages from the view, and live entries from the
 * owner of the channel's shard. A gateway has one subscription for each followed channel, for any
 * number of clients.
 *
 * Invariant: no client receives an event that was committed after the client lost its access to the
 * channel. The events that change access are part of the followed sequence. A stream starts with
 * the access that the view returns for a cursor, and updates it from the frames that the stream
 * sends. It ends at the event that revokes access.
 */
import {
  type ChannelEvent,
  type ChannelEventRecord,
  type ChannelMember,
  channelEventRecord,
} from '../../protocol/channels/schema.ts'
import { timestamp } from '../../protocol/common.ts'
import { lastCursor, type PlacedEntry } from '../../protocol/entry.ts'
import { isRefusal, type Refusal, refuse } from '../../protocol/errors.ts'
import type { ViewQueries } from '../../protocol/queries/views.ts'
import { viewerOf } from '../auth/viewer.ts'
import { type Call, type Edge, scopeId } from '../call.ts'
import type { Sink } from '../http/respond.ts'
import type { World } from '../ports.ts'
import type { Item } from './chunk.ts'
import { type Follower, MAX_WAIT_MS } from './follow.ts'
import type { Source } from './followers.ts'
import { frame } from './sse.ts'

/** Maximum number of events per query. */
const PAGE = 100
/** Types of events that are read from the view, because a live entry contains only the changes. */
const incompleteTypes: ReadonlySet<string> = new Set(['message.updated', 'channel.updated'])

const itemOf = (record: ChannelEventRecord): Item => ({
  cursor: record.sequence,
  frame: frame(record.event_type, record, record.sequence),
})

/** Returns the items of an entry, whose events must contain everything that clients receive. */
function itemsOf({ cursor, entry }: PlacedEntry): Item[] {
  const at = timestamp(entry.origin.at)
  return (entry.events as readonly ChannelEvent[]).flatMap((event, index) => {
    const record = (payload: ChannelEventRecord['payload']) => [
      itemOf(
        channelEventRecord(
          entry.id,
          cursor + index,
          at,
          event.type as ChannelEventRecord['event_type'],
          payload,
        ),
      ),
    ]
    switch (event.type) {
      case 'message.created':
        return record({ message: event.message })
      case 'member.added':
      case 'member.removed':
        return record({ member: event.member })
      case 'channel.deleted':
        return record({ channel: { id: event.id, name: event.name } })
      default:
        return []
    }
  })
}

/**
 * Returns the source of a channel's events. Its queries are refused with `not_found` when the
 * project has no such channel.
 */
export function channelSource(world: World, project: string, id: string): Source {
  const ask = async (after: number, limit: number, fresh?: number, within?: number) => {
    const page = await world.view(
      project,
      'channel_events',
      { channel_id: id, after, limit },
      fresh,
      within,
    )
    if (isRefusal(page)) return page
    if (!page.exists) return refuse(page.late ? 'service_unavailable' : 'not_found')
    return {
      items: page.items.map(itemOf),
      last: page.last,
      ended: false,
      oldest: page.oldest,
      more: page.more,
      late: page.late,
      ...(page.current !== undefined && page.current < after && { restart: page.last }),
    }
  }
  return {
    key: `channel ${project} ${id}`,
    comment: ': keepalive',
    ask: (after, fresh) => ask(after, PAGE, fresh, MAX_WAIT_MS),
    newest: async () => {
      const page = await ask(Number.MAX_SAFE_INTEGER, 1)
      return isRefusal(page) ? page : { ...page, oldest: 0, more: false, restart: undefined }
    },
    subscribe: (follower: Follower) =>
      world.live(project, 'channel', id, (placed) => {
        const { entry } = placed
        if (placed.stripped || entry.events.some(({ type }) => incompleteTypes.has(type)))
          follower.notice(lastCursor(placed))
        else
          follower.hear(
            entry.prev,
            lastCursor(placed),
            () => itemsOf(placed),
            entry.events.at(-1)?.type === 'channel.deleted',
          )
      }),
  }
}

type Access = Exclude<ViewQueries['channel_access']['reply'], Refusal>
/**
 * Reads the caller's current access to the channel in the path. Refused when the caller has no
 * access.
 */
export const accessTo = async (edge: Edge, call: Call): Promise<Access | Refusal> =>
  await edge.world.view(scopeId(edge, call), 'channel_access', {
    id: call.slots['id'] ?? '',
    viewer: viewerOf(call.caller),
  })

const EVENT =
  /^id: (\d+)\nevent: (member\.added|member\.removed|channel\.updated)\ndata: ([^\n]*)\n\n$/

/**
 * Wraps a sink so that it ends at the event that revokes its client's access to the channel. That
 * event is still written.
 * @param me principal id of the client.
 * @param access the client's access when the stream was opened.
 * @param revoked called instead of ending the sink.
 */
export function endOnRevocation(
  sink: Sink,
  me: string,
  access: Access,
  revoked: () => void = () => sink.end(),
): Sink {
  let { private: closed, member } = access
  const learn = (text: string): void => {
    const match = EVENT.exec(text)
    if (!match || Number(match[1]) <= access.at) return
    const { payload } = JSON.parse(match[3] ?? '') as {
      payload: { member?: ChannelMember; channel?: { private?: boolean } }
    }
    if (match[2] === 'channel.updated') closed = payload.channel?.private ?? closed
    else if (payload.member?.member_id === me) member = match[2] === 'member.added'
  }
  return {
    write: (chunk) => {
      if (!mayChangeVisibility(chunk)) return sink.write(chunk)
      for (const text of framesOf(chunk)) {
        sink.write(text)
        learn(text)
        if (closed && !member) return revoked()
      }
    },
    get full() {
      return sink.full
    },
    get closed() {
      return sink.closed
    },
    onDrain: (run) => sink.onDrain(run),
    onClose: (run) => sink.onClose(run),
    end: () => sink.end(),
  }
}

/**
 * Returns whether a chunk may contain an event that changes access. Most chunks contain only
 * messages, and need not be parsed.
 */
const mayChangeVisibility = (chunk: string | Uint8Array): boolean =>
  SIGNS.some((sign) =>
    typeof chunk === 'string'
      ? chunk.includes(sign)
      : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength).includes(sign),
  )
const SIGNS = ['\nevent: member.', '\nevent: channel.'] as const
/**
 * Returns the frames of a chunk, each with the empty line that ends it. A frame contains no other
 * empty line.
 */
const framesOf = (chunk: string | Uint8Array): string[] =>
  (typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString()).split(/(?<=\n\n)/)
