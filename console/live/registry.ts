/**
 * Manages the tabs of a browser and the hubs that they share: one hub for each credential. A
 * SharedWorker has one registry. A page without a SharedWorker has its own.
 *
 * Invariant: a tab that has not sent anything for `MAX_MISSED` checks is dropped with its
 * subscriptions. Browsers run the timers of hidden pages at least once a minute. A page that was
 * frozen for longer receives `gone` in reply to its next ping, and sends `hello` again.
 */
import type { Listener } from './flow.ts'
import { Hub } from './hub.ts'
import type { KeyedFrame, LivePorts, MessageFromHub, MessageToHub, TabPort } from './messages.ts'

/** Milliseconds between two checks. */
const CHECK_EVERY_MS = 50_000
/** Number of checks without a message after which a tab is dropped. */
const MAX_MISSED = 3

interface Shared {
  readonly key: string
  readonly hub: Hub
  readonly tabs: Set<Tab>
}
interface Tab {
  readonly port: TabPort
  readonly shared: Shared
  readonly listeners: Map<number, Listener>
  missed: number
  /** Frames that are sent together at the end of the task. */
  frames: KeyedFrame[]
}

export class Registry {
  readonly #ports: LivePorts
  readonly #hubs = new Map<string, Shared>()
  readonly #tabs = new Map<TabPort, Tab>()
  #checks: (() => void) | undefined

  constructor(ports: LivePorts) {
    this.#ports = ports
  }
  /** The number of tabs. */
  get tabs(): number {
    return this.#tabs.size
  }

  /** Handles a message from a tab. */
  receive(port: TabPort, message: MessageToHub): void {
    if (message.type === 'hello') {
      this.#drop(port)
      return void this.#add(port, message)
    }
    const tab = this.#tabs.get(port)
    if (!tab) {
      if (message.type !== 'bye') port.send({ type: 'gone' })
      return
    }
    tab.missed = 0
    const { hub } = tab.shared
    switch (message.type) {
      case 'follow':
        this.#unfollow(tab, message.key)
        return void this.#follow(tab, message)
      case 'unfollow':
        return void this.#unfollow(tab, message.key)
      case 'ping':
        return void port.send({ type: 'pong' })
      case 'retry':
        return void hub.retry()
      case 'bye':
        return void this.#drop(port)
    }
  }

  #add(port: TabPort, { credential }: Extract<MessageToHub, { readonly type: 'hello' }>): void {
    const key = JSON.stringify([
      credential.url,
      Object.entries(credential.headers).sort(),
      credential.identity,
    ])
    let shared = this.#hubs.get(key)
    if (!shared) {
      const tabs = new Set<Tab>()
      const hub = new Hub(credential, this.#ports, (connection) => {
        for (const tab of tabs) this.#send(tab, { type: 'connection', connection })
        if (tabs.size === 0) this.#hubs.delete(key)
      })
      shared = { key, hub, tabs }
      this.#hubs.set(key, shared)
    }
    const tab: Tab = { port, shared, listeners: new Map(), missed: 0, frames: [] }
    shared.tabs.add(tab)
    this.#tabs.set(port, tab)
    this.#send(tab, { type: 'connection', connection: shared.hub.state })
    this.#checks ??= this.#ports.later(CHECK_EVERY_MS, () => this.#check())
  }
  #drop(port: TabPort): void {
    const tab = this.#tabs.get(port)
    if (!tab) return
    this.#tabs.delete(port)
    tab.shared.tabs.delete(tab)
    for (const listener of tab.listeners.values()) tab.shared.hub.unfollow(listener)
    tab.listeners.clear()
    const { hub, tabs, key } = tab.shared
    if (tabs.size === 0 && hub.state.state === 'idle') this.#hubs.delete(key)
    if (this.#tabs.size > 0) return
    this.#checks?.()
    this.#checks = undefined
  }
  #check(): void {
    this.#checks = undefined
    for (const [port, tab] of [...this.#tabs]) if (++tab.missed >= MAX_MISSED) this.#drop(port)
    if (this.#tabs.size > 0) this.#checks = this.#ports.later(CHECK_EVERY_MS, () => this.#check())
  }
  #follow(
    tab: Tab,
    { key, subscription }: Extract<MessageToHub, { readonly type: 'follow' }>,
  ): void {
    const listener: Listener = {
      frame: (frame) => {
        if (tab.frames.push({ key, frame }) === 1) queueMicrotask(() => this.#flush(tab))
      },
      status: (status, cursor) =>
        this.#send(tab, { type: 'status', key, status, ...(cursor !== undefined && { cursor }) }),
    }
    tab.listeners.set(key, listener)
    tab.shared.hub.follow(subscription, listener)
  }
  #unfollow(tab: Tab, key: number): void {
    const listener = tab.listeners.get(key)
    tab.listeners.delete(key)
    if (listener) tab.shared.hub.unfollow(listener)
  }
  /** Sends a message after the pending frames. */
  #send(tab: Tab, message: MessageFromHub): void {
    this.#flush(tab)
    tab.port.send(message)
  }
  #flush(tab: Tab): void {
    if (tab.frames.length > 0) tab.port.send({ type: 'frames', frames: tab.frames.splice(0) })
  }
}
