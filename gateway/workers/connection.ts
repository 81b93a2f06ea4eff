/**
 * One connection of a worker: parses inbound text and sends frames. It accesses the socket only
 * through `Pipe`.
 *
 * Invariants:
 * N1. An unreadable frame is answered with an error, and the connection stays open. Only a flood,
 *     silence before registration, or a refused registration closes it: a client registers once per
 *     socket and would otherwise wait forever.
 * N2. `worker.registered` is the first frame that is not an error: frames that arrive during a
 *     registration wait for it.
 * N3. A socket that accepts no data for 10 s is dropped.
 * N4. A quiet worker is pinged twice per takeover window, so that a live one never appears lost.
 */
import type { Down, FrameError, Up } from '../../protocol/workers/socket.ts'
import { closeCodes } from '../../protocol/workers/socket.ts'
import { type Edge, type Grant, limits } from './edge.ts'
import { readFrame } from './frames.ts'
import type { Session } from './session.ts'
import type { Task } from './timer-wheel.ts'

/** A socket. No method is called after the socket has reported that it closed. */
export interface Pipe {
  /**
   * `buffered`: accepted, but not yet written completely; `lost`: not accepted, and never will be.
   */
  send(text: string): 'sent' | 'buffered' | 'lost'
  ping(): void
  /** Closes with a code and a reason, after the data sent so far. */
  close(code: number, reason: string): void
  /** Closes immediately. */
  drop(): void
}
/** A frame and its size in bytes. */
export interface Incoming {
  readonly frame: Up
  readonly bytes: number
}

export class Connection {
  readonly grant: Grant
  session: Session | undefined
  /** Whether a registration is in progress. */
  registering = false
  /** Frames that wait for the registration. */
  readonly backlog: Incoming[] = []
  /** Whether anything was received from the worker since this flag was last reset. */
  heard = true
  isClosed = false
  readonly #edge: Edge
  readonly #pipe: Pipe
  readonly #dispatch: (connection: Connection, incoming: Incoming) => void
  readonly #gone: () => void
  /** Cancel the timers for a missing registration and for a socket that does not drain. */
  #register: (() => void) | undefined
  #drain: (() => void) | undefined
  readonly #pinging: Task = { due: () => this.#ping() }
  #credit: number = limits.frames_at_once
  #credited: number

  /** @param gone called once, when the connection has ended. */
  constructor(
    edge: Edge,
    grant: Grant,
    pipe: Pipe,
    dispatch: (connection: Connection, incoming: Incoming) => void,
    gone: () => void,
  ) {
    this.grant = grant
    this.#edge = edge
    this.#pipe = pipe
    this.#dispatch = dispatch
    this.#gone = gone
    this.#credited = edge.world.now()
    this.#register = edge.world.later(edge.world.settings.timing.register * 1000, () =>
      this.close(closeCodes.register_timeout, 'no worker.register in time'),
    )
    this.#next()
  }
  /** The worker registered: from now on the connection belongs to this session. */
  enter(session: Session): void {
    this.session = session
    this.#register?.()
    this.#register = undefined
  }

  /** Handles an inbound message. */
  receive(text: string, bytes = Buffer.byteLength(text)): void {
    if (this.isClosed) return
    this.heard = true
    this.#edge.world.count.inc('frames_in')
    if (!this.#paid()) {
      this.#edge.world.count.inc('rate_limited')
      this.fail('rate_limit_exceeded', `more than ${limits.frames_per_second} frames per second`)
      this.close(closeCodes.too_many_frames, 'too many frames')
      return
    }
    const read = readFrame(text)
    if ('frame' in read) this.#dispatch(this, { frame: read.frame, bytes })
    else {
      this.fail(read.fault, read.message, read.message_id)
      if (read.type === 'worker.register' && !this.session && !this.registering)
        this.close(closeCodes.malformed, 'registration refused')
    }
  }
  /** Handles a pong. */
  ponged(): void {
    this.heard = true
  }
  /** Part of the buffer was written. @param left bytes that still wait. */
  drained(left: number): void {
    this.#drain?.()
    this.#drain = undefined
    if (left > 0) this.#watch()
  }

  /** Sends a frame. @returns whether the socket accepted it. */
  send(frame: Down): boolean {
    return this.write(JSON.stringify(frame))
  }
  /** Sends the text of a frame. @returns whether the socket accepted it. */
  write(text: string): boolean {
    if (this.isClosed) return false
    this.#edge.world.count.inc('frames_out')
    const sent = this.#pipe.send(text)
    if (sent === 'buffered' && !this.#drain) this.#watch()
    if (sent === 'lost') this.#drop()
    return sent !== 'lost'
  }
  /** Sends an error frame. */
  fail(code: FrameError, message: string, message_id?: string): void {
    this.send({
      type: 'error',
      ...(message_id !== undefined && { message_id }),
      error: { code, message },
    })
  }
  /** Closes the socket; does nothing if it is closed already. */
  close(code: number, reason: string): void {
    if (this.isClosed) return
    this.ended()
    this.#pipe.close(code, reason)
  }
  /**
   * Marks the connection as ended, because the socket is closed or about to be: nothing is sent or
   * received afterwards.
   */
  ended(): void {
    if (this.isClosed) return
    this.isClosed = true
    this.#register?.()
    this.#drain?.()
    this.#edge.timerWheel.remove(this.#pinging)
    this.onEnd()
    this.#gone()
  }
  /** Called when the connection ends; set at registration to end the session. */
  onEnd: () => void = () => {}

  #drop(): void {
    if (this.isClosed) return
    this.ended()
    this.#pipe.drop()
  }
  #watch(): void {
    this.#drain = this.#edge.world.later(limits.drain, () => this.#drop())
  }
  #ping(): void {
    this.#pipe.ping()
    this.#next()
  }
  #next(): void {
    this.#edge.timerWheel.add(
      Math.min(limits.ping, this.#edge.world.settings.timing.takeover * 500),
      this.#pinging,
    )
  }
  #paid(): boolean {
    const now = this.#edge.world.now()
    this.#credit = Math.min(
      limits.frames_at_once,
      this.#credit + ((now - this.#credited) / 1000) * limits.frames_per_second,
    )
    this.#credited = now
    if (this.#credit < 1) return false
    this.#credit--
    return true
  }
}
