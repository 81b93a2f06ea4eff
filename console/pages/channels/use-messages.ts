/**
 * The messages of one channel, loaded newest first and updated live. When the live updates start,
 * the first page is reloaded if it was already loaded, so that no message is missed.
 */
import { type ReadonlySignal, useSignal } from '@preact/signals'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import type { ChannelEventRecord, ChannelMessage } from '../../../protocol/channels/schema.ts'
import { ApiError, call } from '../../api/client.ts'
import { live } from '../../api/live.ts'
import { addEvent, addMessage, addPage, emptyFeed, type Feed } from './feed.ts'

const FIRST_PAGE_SIZE = 100
const PAGE_SIZE = 200
/** Maximum number of pages that are loaded to reach a message. */
const MAX_PAGES = 25

interface MessagesState {
  readonly feed: Feed
  readonly loaded: boolean
  readonly loading: boolean
  readonly error?: ApiError
  /** Whether the channel was deleted, or the person has lost access. */
  readonly gone?: boolean
}
/** The messages of a channel, with functions that load more of them. */
export interface Messages {
  readonly state: ReadonlySignal<MessagesState>
  /** Loads the next older page. */
  older(): Promise<void>
  /**
   * Loads older pages until the messages from `seq` on are loaded.
   * @returns whether they are loaded.
   */
  reach(seq: number): Promise<boolean>
  /** Shows a message that this browser has sent or changed. */
  add(message: ChannelMessage): void
  reload(): void
}

/** Loads and follows the messages of a channel. The channel's id must be the component's `key`. */
export function useMessages(project: string, id: string): Messages {
  const state = useSignal<MessagesState>({ feed: emptyFeed, loaded: false, loading: true })
  const request = useRef<AbortController>(undefined)
  const update = (change: Partial<MessagesState>): void => {
    state.value = { ...state.peek(), ...change }
  }
  const load = async (cursor: string | undefined, limit: number): Promise<void> => {
    const { signal } = (request.current = new AbortController())
    const { error: _, ...before } = state.peek()
    state.value = { ...before, loading: true }
    try {
      const page = await call(
        'channel.messages',
        { project, id, limit, ...(cursor !== undefined && { cursor }) },
        { signal },
      )
      update({
        feed: addPage(state.peek().feed, page.items, page.next_cursor),
        loaded: true,
        loading: false,
      })
    } catch (error) {
      if (signal.aborted) return
      if (!(error instanceof ApiError)) throw error
      update({ loading: false, ...(error.status === 404 ? { gone: true } : { error }) })
    }
  }
  useEffect(() => {
    let begun = false
    let followed = false
    const begin = (): void => {
      if (begun) return
      begun = true
      void load(undefined, FIRST_PAGE_SIZE)
    }
    const stop = live().follow(
      { project, topic: 'channel', target: id },
      {
        frame: ({ event, data }) => {
          if (event === 'channel.deleted') return update({ gone: true })
          if (event === 'stream.reset') return void load(undefined, FIRST_PAGE_SIZE)
          update({ feed: addEvent(state.peek().feed, data as ChannelEventRecord) })
        },
        state: ({ state: reached }) => {
          if (reached === 'waiting') begin()
          if (reached === 'live' && !followed) {
            // A page that was loaded before the live updates started may lack messages, so it is
            // loaded again.
            begun = false
            followed = true
            begin()
          }
          if (reached === 'ended') update({ gone: true })
          if (reached === 'refused') {
            // If the messages have already been requested, the refusal means that access was lost.
            // Otherwise, the messages may still be readable, so they are requested.
            if (begun) update({ gone: true })
            else begin()
          }
        },
      },
    )
    return () => {
      stop()
      request.current?.abort()
    }
  }, [project, id])
  return useMemo(() => {
    const older = async (): Promise<void> => {
      const { feed, loading } = state.peek()
      if (feed.older === undefined || loading) return
      await load(feed.older, PAGE_SIZE)
    }
    return {
      state,
      older,
      reach: async (seq) => {
        for (let page = 0; page < MAX_PAGES; page++) {
          const { feed, error } = state.peek()
          if ((feed.items[0]?.seq ?? Number.POSITIVE_INFINITY) <= seq) return true
          if (feed.older === undefined || error) return false
          await older()
        }
        return false
      },
      add: (message) => update({ feed: addMessage(state.peek().feed, message) }),
      reload: () => void load(undefined, FIRST_PAGE_SIZE),
    }
  }, [project, id])
}
