/** The messages between a tab and the hub that owns the connection. They are plain data. */
import type { LiveConnection, LiveCursor, LiveFrame, LiveStatus, LiveSubscription } from './live.ts'

/** The credential of a connection. Tabs with equal credentials share a connection. */
export interface LiveCredential {
  /** Base address of the service, without a trailing slash. */
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly identity: string
}

/** Messages from a tab to the hub. The tab chooses `key`, which is unique within the tab. */
export type MessageToHub =
  /** The first message from a tab. */
  | { readonly type: 'hello'; readonly credential: LiveCredential }
  | {
      readonly type: 'follow'
      readonly key: number
      readonly subscription: LiveSubscription
    }
  | { readonly type: 'unfollow'; readonly key: number }
  | { readonly type: 'ping' }
  /**
   * Asks the hub to connect immediately, because the browser is online again or the person has
   * signed in.
   */
  | { readonly type: 'retry' }
  /** The tab detaches, for example because it is closed. */
  | { readonly type: 'bye' }

export interface KeyedFrame {
  readonly key: number
  readonly frame: LiveFrame
}
export type MessageFromHub =
  | { readonly type: 'frames'; readonly frames: readonly KeyedFrame[] }
  | {
      readonly type: 'status'
      readonly key: number
      readonly status: LiveStatus
      /** For `live`: the cursor after which frames follow. */
      readonly cursor?: LiveCursor
    }
  | { readonly type: 'connection'; readonly connection: LiveConnection }
  | { readonly type: 'pong' }
  /** The hub does not know the tab, so the tab must send `hello` again. */
  | { readonly type: 'gone' }

/** The hub's end of a tab's port. */
export interface TabPort {
  send(message: MessageFromHub): void
}
/** The external dependencies of a hub: clock, network and randomness. Tests replace them. */
export interface LivePorts {
  readonly fetch: typeof fetch
  /** Runs a function after a time in milliseconds, unless the returned function is called. */
  later(ms: number, run: () => void): () => void
  /** Returns a number from 0 up to, but not including, 1. */
  random(): number
}
