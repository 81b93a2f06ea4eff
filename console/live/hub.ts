/**
 * The hub of one credential. It owns the connection that all tabs share, and decides which
 * subscriptions the connection has and when it is reopened.
 *
 * Invariants:
 * H1. A change to the set of subscriptions results in a new connection, which resumes from the
 *     current cursors. Model output is not interrupted, because the earlier connection stays open
 *     until `OVERLAP_MS` after the new connection has settled. A connection has settled when a
 *     frame of each of its subscriptions has arrived, or `MAX_OVERLAP_MS` after the service
 *     accepted it.
 * H2. A lost connection is reopened after an exponential back-off or after the pause that the
 *     service requested, both with jitter, or immediately on `retry`. Every flow resumes from its
 *     cursor, so no frame with a cursor is missed or repeated (`flow.ts`).
 * H3. Without a listener there is no connection.
 */
import type { StreamMessage } from '../../client/streams/read.ts'
import { SUBSCRIPTIONS_PER_STREAM } from '../../protocol/streams/limits.ts'
import { Connection, type ConnectionEnd } from './connection.ts'
import { Flow, type Listener, sequenceOf } from './flow.ts'
import type { LiveConnection, LiveFault, LiveSubscription } from './live.ts'
import type { LiveCredential, LivePorts } from './messages.ts'

/** Milliseconds for which changes to the set of subscriptions are collected. */
const DEBOUNCE_MS = 50
/** Milliseconds for which an earlier connection stays open after a new one has settled. */
const OVERLAP_MS = 300
/**
 * Milliseconds after which a new connection counts as settled even if not every subscription has
 * received a frame.
 */
const MAX_OVERLAP_MS = 5000
/** Initial and maximum back-off before a new attempt, in milliseconds, without jitter. */
const PAUSE = { first: 250, last: 15_000 } as const

export class Hub {
  readonly #credential: LiveCredential
  readonly #ports: LivePorts
  readonly #changed: (connection: LiveConnection) => void
  readonly #flows = new Map<string, Flow>()
  readonly #flowOfListener = new Map<Listener, Flow>()
  /** The newest connection. */
  #newest: Connection | undefined
  /** Earlier connections that are still open. */
  readonly #earlier = new Set<Connection>()
  #state: LiveConnection = { state: 'idle' }
  #cancel: (() => void) | undefined
  #waiting = false
  #failures = 0
  #count = 0

  /** @param changed called with each new state of the connection. */
  constructor(
    credential: LiveCredential,
    ports: LivePorts,
    changed: (connection: LiveConnection) => void,
  ) {
    this.#credential = credential
    this.#ports = ports
    this.#changed = changed
  }
  get state(): LiveConnection {
    return this.#state
  }

  /** Adds a listener to a subscription. An equal subscription is shared if possible. */
  follow(subscription: LiveSubscription, listener: Listener): void {
    const { after } = subscription
    const sequence = sequenceOf(subscription)
    const joined = [...this.#flows.values()].find(
      (flow) => flow.sequence === sequence && flow.joinable(after),
    )
    const flow = joined ?? new Flow(String(++this.#count), subscription)
    this.#flows.set(flow.id, flow)
    this.#flowOfListener.set(listener, flow)
    flow.join(listener, after)
    if (!joined) this.#schedule()
  }
  unfollow(listener: Listener): void {
    const flow = this.#flowOfListener.get(listener)
    this.#flowOfListener.delete(listener)
    flow?.leave(listener)
    if (!flow?.empty) return
    this.#flows.delete(flow.id)
    this.#schedule()
  }
  /** Reconnects immediately if the connection is lost. */
  retry(): void {
    if (!this.#waiting || this.#flows.size === 0) return
    this.#failures = 0
    this.#after(0)
  }
  /** Removes all subscriptions and closes all connections. */
  close(): void {
    this.#flowOfListener.clear()
    this.#flows.clear()
    this.#open()
  }

  /** Opens a connection after `DEBOUNCE_MS`, unless an attempt is already scheduled. */
  #schedule(): void {
    if (!this.#cancel) this.#after(DEBOUNCE_MS)
  }
  #after(ms: number): void {
    this.#cancel?.()
    this.#cancel = this.#ports.later(ms, () => this.#open())
  }
  #set(state: LiveConnection): void {
    if (state.state === this.#state.state) return
    this.#state = state
    this.#changed(state)
  }

  /**
   * Opens a connection, unless the newest one has exactly the wanted subscriptions. If there are no
   * subscriptions, closes all connections.
   */
  #open(): void {
    this.#cancel?.()
    this.#cancel = undefined
    this.#waiting = false
    if (this.#flows.size === 0) {
      for (const one of [this.#newest, ...this.#earlier]) one?.close()
      this.#newest = undefined
      this.#earlier.clear()
      this.#failures = 0
      return void this.#set({ state: 'idle' })
    }
    const flows = [...this.#flows.values()].slice(0, SUBSCRIPTIONS_PER_STREAM)
    const open = this.#newest?.open
    if (open?.size === flows.length && flows.every(({ id }) => open.has(id))) return
    const connection = new Connection(flows.map(({ id }) => id))
    // Browsers limit the number of connections. If the newest connection has not settled while an
    // earlier one is still open, the newest one is therefore closed immediately.
    if (this.#newest && this.#newest.unsettled.size > 0 && this.#earlier.size > 0)
      this.#newest.close()
    else if (this.#newest) this.#earlier.add(this.#newest)
    this.#newest = connection
    if (this.#state.state === 'idle' || this.#state.state === 'refused')
      this.#set({ state: 'connecting' })
    void connection
      .run(
        this.#credential,
        this.#ports,
        flows.map((flow) => ({ ...flow.request(connection), id: flow.id })),
        {
          begun: () => {
            if (connection !== this.#newest) return
            this.#set({ state: 'live' })
            this.#ports.later(MAX_OVERLAP_MS, () => {
              if (connection === this.#newest) this.#settled()
            })
          },
          frames: (frames) => {
            for (const frame of frames) this.#receive(connection, frame)
            if (connection === this.#newest && connection.unsettled.size === 0) this.#settled()
          },
        },
      )
      .then((end) => end && this.#ended(connection, flows, end))
  }
  /** Schedules the end of the earlier connections. Called when the newest one has settled. */
  #settled(): void {
    this.#failures = 0
    for (const one of this.#earlier) {
      this.#earlier.delete(one)
      this.#ports.later(OVERLAP_MS, () => one.close())
    }
  }
  #ended(connection: Connection, flows: readonly Flow[], end: ConnectionEnd): void {
    this.#earlier.delete(connection)
    if (connection !== this.#newest) return
    this.#newest = undefined
    if ('refused' in end) return void this.#refused(flows, end)
    // The service ends a stream when its last subscription has ended, so this is no failure.
    if (this.#flows.size === 0 || connection.open.size === 0) return void this.#open()
    for (const flow of this.#flows.values()) flow.setStatus({ state: 'waiting' })
    this.#set({ state: 'waiting' })
    this.#waiting = true
    const backoff = Math.min(PAUSE.last, PAUSE.first * 2 ** this.#failures++)
    this.#after((end.pause ?? backoff) * (0.5 + this.#ports.random()))
  }
  /**
   * Handles a refused request. If the service refused individual subscriptions, only these end, and
   * the others are requested again. Otherwise all of them end.
   */
  #refused(
    flows: readonly Flow[],
    { refused, faults }: Extract<ConnectionEnd, { readonly refused: LiveFault }>,
  ): void {
    for (const [index, fault] of faults) {
      const flow = flows[index]
      if (flow) this.#finish(flow, fault)
    }
    if (faults.size > 0) return void this.#after(0)
    for (const flow of [...this.#flows.values()]) this.#finish(flow, refused)
    for (const one of this.#earlier) one.close()
    this.#earlier.clear()
    this.#cancel?.()
    this.#cancel = undefined
    this.#set({ state: 'refused', fault: refused })
  }

  #receive(connection: Connection, message: StreamMessage): void {
    const { subscription, event, cursor, data } = message
    connection.unsettled.delete(subscription)
    const ends = event === 'subscription.refused' || event === 'subscription.ended'
    if (ends) connection.open.delete(subscription)
    const flow = this.#flows.get(subscription)
    if (!flow?.accepts(connection)) return
    if (event === 'subscription.started') flow.started(cursor)
    else if (ends) this.#finish(flow, data['error'] as LiveFault | undefined)
    else {
      flow.deliver(message, connection)
      this.#merge(flow)
    }
  }
  /** Ends a flow. With a fault, the service has refused it; without one, it is complete. */
  #finish(flow: Flow, fault: LiveFault | undefined): void {
    this.#flows.delete(flow.id)
    for (const listener of flow.listeners) this.#flowOfListener.delete(listener)
    flow.setStatus(fault ? { state: 'refused', fault } : { state: 'ended' })
    // A subscription beyond the limit may have been waiting for this one to end.
    if (this.#flows.size >= SUBSCRIPTIONS_PER_STREAM) this.#schedule()
  }
  /** Moves the listeners of a flow to an older flow with the same sequence, if they may join it. */
  #merge(flow: Flow): void {
    const { cursor } = flow
    if (typeof cursor !== 'number') return
    for (const older of this.#flows.values()) {
      if (older === flow) return
      if (older.sequence !== flow.sequence || !older.joinable(cursor)) continue
      for (const listener of flow.listeners) {
        flow.leave(listener)
        this.#flowOfListener.set(listener, older)
        older.join(listener, cursor)
      }
      this.#flows.delete(flow.id)
      return void this.#schedule()
    }
  }
}
