/**
 * A connection that is re-established automatically: after each loss, it dials the next address
 * with exponential back-off, until it is closed or permanently refused.
 *
 * Invariants:
 * L1. Events arrive in the order `opened`, frames, `lost`. Events of a socket that has failed are
 *     ignored.
 * L2. A connection is dropped after 65 s without data. A ping every 20 s makes a live server
 *     respond.
 * L3. The back-off is reset only if the worker has been registered on the lost connection for at
 *     least 5 s.
 */
import { WorkerError } from './options.ts'
import type { Cancel, Clock, Dial, Socket, SocketEvents } from './ports.ts'

/**
 * Timing in milliseconds. `first` and `last` are the initial and the maximum back-off, without
 * jitter. `lasting` is the time for which the worker must be registered before the back-off is
 * reset. `ping` is the ping interval, `silence` the maximum time without data, and `open` the
 * timeout of an upgrade.
 */
const lineTiming = {
  first: 100,
  last: 10_000,
  lasting: 5000,
  ping: 20_000,
  silence: 65_000,
  open: 15_000,
} as const

export interface ReconnectingSocketEvents {
  /** Called when a socket is open. The worker must then register. */
  opened(): void
  frame(text: string): void
  /** Called when the open socket is lost. A reconnect is scheduled. */
  lost(reason: string): void
  /**
   * Called when the service rejects this worker permanently, or a socket cannot be created. No
   * reconnect follows.
   */
  refused(error: WorkerError): void
}
interface Call {
  socket?: Socket
  open: boolean
  /** Time at which the worker was registered on this connection, in milliseconds of the clock. */
  registered?: number
}

export class ReconnectingSocket {
  readonly #urls: readonly string[]
  readonly #headers: Readonly<Record<string, string>>
  readonly #dial: Dial
  readonly #clock: Clock
  readonly #events: ReconnectingSocketEvents
  readonly #log: (line: string) => void
  readonly #timers = new Map<'again' | 'open' | 'ping' | 'silence', Cancel>()
  #call: Call | undefined
  #at = 0
  #failures = 0
  #heard = 0
  #closed = false

  /** @param urls the addresses of the socket endpoint, with the scheme `ws:` or `wss:`. */
  constructor(
    urls: readonly string[],
    headers: Readonly<Record<string, string>>,
    dial: Dial,
    clock: Clock,
    events: ReconnectingSocketEvents,
    log: (line: string) => void,
  ) {
    this.#urls = urls
    this.#headers = headers
    this.#dial = dial
    this.#clock = clock
    this.#events = events
    this.#log = log
  }
  get open(): boolean {
    return this.#call?.open ?? false
  }

  dial(): void {
    if (this.#closed) return
    const url = this.#urls[this.#at % this.#urls.length] ?? ''
    const call: Call = { open: false }
    this.#call = call
    this.#after('open', lineTiming.open, () => this.#failed('no response to the upgrade request'))
    try {
      call.socket = this.#dial(url, this.#headers, this.#eventsOf(call, url))
    } catch (error) {
      // The same address and headers would fail again.
      this.close(1000)
      const { message } = error as Error
      this.#events.refused(new WorkerError('refused', `${url} cannot be dialled: ${message}`))
    }
  }
  /** Sends a text frame. Returns false without sending it if no socket is open. */
  send(text: string): boolean {
    if (!this.#call?.open) return false
    this.#call.socket?.send(text)
    return true
  }
  /** Whether everything that was sent on this connection has left the process. */
  get drained(): boolean {
    return this.#call?.socket?.drained() ?? true
  }
  /** Records that the worker is registered on this connection. */
  registered(): void {
    if (this.#call) this.#call.registered = this.#clock.now()
  }
  /** Drops this connection and schedules a reconnect. */
  drop(reason: string): void {
    if (this.#call) this.#failed(reason)
  }
  /** Closes permanently, with a close code. */
  close(code: number): void {
    this.#closed = true
    for (const name of [...this.#timers.keys()]) this.#cancel(name)
    const call = this.#call
    this.#call = undefined
    if (call?.open) call.socket?.close(code)
    else call?.socket?.drop()
  }

  /** Creates the event handlers of the socket of a call. They ignore a call that has failed. */
  #eventsOf(call: Call, url: string): SocketEvents {
    const mine = () => this.#call === call
    return {
      opened: () => {
        if (!mine()) return
        call.open = true
        this.#cancel('open')
        this.#heard = this.#clock.now()
        this.#ping()
        this.#watch(lineTiming.silence)
        this.#events.opened()
      },
      refused: (status, reason) => {
        if (mine()) this.#refused(url, status, reason)
      },
      frame: (text) => {
        if (!mine()) return
        this.#heard = this.#clock.now()
        this.#events.frame(text)
      },
      alive: () => {
        if (mine()) this.#heard = this.#clock.now()
      },
      closed: (code, reason) => {
        if (mine()) this.#failed(`closed with ${code}${reason === '' ? '' : ` (${reason})`}`)
      },
    }
  }
  #refused(url: string, status: number, reason: string): void {
    const verdict = verdicts[status]
    if (!verdict)
      return void this.#failed(
        `${url} ${status === 0 ? 'does not respond' : `returned ${status}`}${reason === '' ? '' : `: ${reason}`}`,
      )
    this.close(1000)
    this.#events.refused(new WorkerError('refused', `${verdict} (${status} from ${url})`, status))
  }
  #failed(reason: string): void {
    for (const name of [...this.#timers.keys()]) this.#cancel(name)
    const call = this.#call
    this.#call = undefined
    call?.socket?.drop()
    this.#at++
    if (call?.registered !== undefined && this.#clock.now() - call.registered >= lineTiming.lasting)
      this.#failures = 0
    const wait =
      Math.min(lineTiming.last, lineTiming.first * 2 ** Math.min(this.#failures++, 20)) *
      (0.75 + this.#clock.random() / 2)
    this.#log(`${reason}; reconnecting in ${Math.round(wait)} ms`)
    this.#after('again', wait, () => this.dial())
    if (call?.open) this.#events.lost(reason)
  }
  #ping(): void {
    this.#after('ping', lineTiming.ping, () => {
      this.#call?.socket?.ping()
      this.#ping()
    })
  }
  #watch(ms: number): void {
    this.#after('silence', ms, () => {
      const left = this.#heard + lineTiming.silence - this.#clock.now()
      if (left > 0) this.#watch(left)
      else this.#failed(`no data received for ${lineTiming.silence / 1000} s`)
    })
  }
  #after(name: 'again' | 'open' | 'ping' | 'silence', ms: number, run: () => void): void {
    this.#cancel(name)
    this.#timers.set(name, this.#clock.after(ms, run))
  }
  #cancel(name: 'again' | 'open' | 'ping' | 'silence'): void {
    this.#timers.get(name)?.()
    this.#timers.delete(name)
  }
}

/** HTTP statuses that reject an upgrade permanently, with the explanation for users. */
const verdicts: Readonly<Record<number, string>> = {
  401: 'The service does not accept the key: it is missing, unknown, revoked or expired',
  403: 'The key may not execute work in this project',
  404: 'The project does not exist',
}
