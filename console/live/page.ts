/**
 * The page's side of the live data: the subscriptions of the page and their cursors. It can attach
 * to another hub at any time, for example after the worker has ended or has dropped the page, and
 * each subscription resumes from its cursor.
 */
import type {
  Live,
  LiveConnection,
  LiveCursor,
  LiveListener,
  LiveStatus,
  LiveSubscription,
} from './live.ts'
import type { LiveCredential, LivePorts, MessageFromHub, MessageToHub } from './messages.ts'

/** The page's end of a port to a hub. */
export interface HubPort {
  send(message: MessageToHub): void
  close(): void
}
/** Opens a port to a hub. `receive` is called with its messages until `close`. */
export type Attach = (receive: (message: MessageFromHub) => void) => HubPort

/** Milliseconds between two pings. */
const PING_EVERY_MS = 20_000
/** Number of unanswered pings after which the page attaches again. */
const MAX_UNANSWERED = 2

interface Follow {
  readonly subscription: LiveSubscription
  readonly listener: LiveListener
  cursor: LiveCursor | undefined
  status: LiveStatus | undefined
}

export class PageLive implements Live {
  readonly #attach: Attach
  readonly #credential: LiveCredential
  readonly #later: LivePorts['later']
  readonly #failed: (error: unknown) => void
  readonly #follows = new Map<number, Follow>()
  readonly #watchers = new Set<(connection: LiveConnection) => void>()
  #port: HubPort | undefined
  #connection: LiveConnection = { state: 'idle' }
  #keys = 0
  #unanswered = 0
  #stopPings = () => {}
  #closed = false

  /**
   * @param attach opens a port to a hub; called again when the hub does not answer or has dropped
   * the page.
   * @param failed called with the exceptions of listeners.
   */
  constructor(
    attach: Attach,
    credential: LiveCredential,
    later: LivePorts['later'],
    failed: (error: unknown) => void,
  ) {
    this.#attach = attach
    this.#credential = credential
    this.#later = later
    this.#failed = failed
    this.attach()
  }
  get connection(): LiveConnection {
    return this.#connection
  }

  /** Attaches to a hub, after detaching from the previous one. */
  attach(): void {
    if (this.#closed) return
    this.detach()
    const port: HubPort = this.#attach((message) => {
      if (this.#port === port) this.#receive(message)
    })
    this.#port = port
    port.send({ type: 'hello', credential: this.#credential })
    for (const [key, follow] of this.#follows) if (!isOver(follow)) this.#send(key, follow)
    this.#ping()
  }
  /** Detaches from the hub. No messages are received until `attach`. */
  detach(): void {
    this.#stopPings()
    const port = this.#port
    this.#port = undefined
    this.#unanswered = 0
    port?.send({ type: 'bye' })
    port?.close()
  }

  follow(subscription: LiveSubscription, listener: LiveListener): () => void {
    const key = ++this.#keys
    const follow: Follow = { subscription, listener, cursor: subscription.after, status: undefined }
    this.#follows.set(key, follow)
    this.#send(key, follow)
    return () => {
      if (this.#follows.delete(key)) this.#port?.send({ type: 'unfollow', key })
    }
  }
  onConnection(on: (connection: LiveConnection) => void): () => void {
    this.#watchers.add(on)
    return () => void this.#watchers.delete(on)
  }
  /**
   * Connects immediately, and requests refused subscriptions again, because the credential may have
   * changed.
   */
  retry(): void {
    for (const [key, follow] of this.#follows)
      if (follow.status?.state === 'refused') this.#send(key, follow)
    this.wake()
  }
  /** Ends the pause after a lost connection, for example when the browser is online again. */
  wake(): void {
    this.#port?.send({ type: 'retry' })
  }
  close(): void {
    this.#closed = true
    this.#follows.clear()
    this.detach()
  }

  #send(key: number, { subscription: { after: _, ...rest }, cursor }: Follow): void {
    const subscription = cursor === undefined ? rest : { ...rest, after: cursor }
    this.#port?.send({ type: 'follow', key, subscription })
  }
  #ping(): void {
    this.#stopPings = this.#later(PING_EVERY_MS, () => {
      if (this.#unanswered++ >= MAX_UNANSWERED) return this.attach()
      this.#port?.send({ type: 'ping' })
      this.#ping()
    })
  }
  #receive(message: MessageFromHub): void {
    this.#unanswered = 0
    switch (message.type) {
      case 'frames':
        for (const { key, frame } of message.frames) {
          const follow = this.#follows.get(key)
          if (!follow) continue
          follow.cursor = frame.cursor ?? follow.cursor
          this.#call(() => follow.listener.frame(frame))
        }
        return
      case 'status': {
        const follow = this.#follows.get(message.key)
        if (!follow) return
        follow.cursor ??= message.cursor
        const before = follow.status
        follow.status = message.status
        if (before?.state !== message.status.state)
          this.#call(() => follow.listener.state?.(message.status))
        return
      }
      case 'connection':
        this.#connection = message.connection
        for (const on of [...this.#watchers]) this.#call(() => on(message.connection))
        return
      case 'gone':
        return void this.attach()
    }
  }
  #call(run: () => void): void {
    try {
      run()
    } catch (error) {
      this.#failed(error)
    }
  }
}
const isOver = ({ status }: Follow): boolean =>
  status?.state === 'refused' || status?.state === 'ended'
