/**
 * One connection of a worker: text in, frames out. It knows the socket only as a `Pipe`.
 *
 * Invariants:
 * N1. A frame that cannot be read is answered and the connection stays; only a flood, silence before registration, or a
 *     registration that is refused closes it: clients register once on a socket, and would wait for ever.
 * N2. `worker.registered` is the first frame that is not an error: frames that come while a registration is decided wait for it.
 * N3. A socket that takes nothing for 10 s is dropped.
 * N4. A quiet worker is pinged twice in a takeover window, so that one that lives never looks lost.
 */
import type { Down, FrameError, Up } from '../../protocol/workers/socket.ts'
import { closeCodes } from '../../protocol/workers/socket.ts'
import { limits, type Edge, type Grant } from './edge.ts'
import { readFrame } from './frames.ts'
import type { Task } from './timer-wheel.ts'
import type { Session } from './session.ts'

/** A socket. None of the functions is called after the socket said that it closed. */
export interface Pipe {
  /** `buffered`: accepted, but not all of it is on its way yet; `lost`: not accepted, and never will be. */
  send(text: string): 'sent' | 'buffered' | 'lost'
  ping(): void
  /** Close with a code and a reason, after what was sent. */
  close(code: number, reason: string): void
  /** End at once. */
  drop(): void
}
/** A frame with its size in bytes. */
export interface Incoming {
  readonly frame: Up
  readonly bytes: number
}

export class Connection {
  readonly grant: Grant
  session: Session | undefined
  /** Whether a registration is being decided. */
  registering = false
  /** Frames that wait for the registration. */
  readonly backlog: Incoming[] = []
  /** Whether the worker was heard since this was last reset. */
  heard = true
  isClosed = false
  readonly #edge: Edge
  readonly #pipe: Pipe
  readonly #dispatch: (connection: Connection, incoming: Incoming) => void
  readonly #gone: () => void
  /** Stop the timers that wait for a registration, and for the socket to take what was sent. */
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
  /** The worker registered: from here on the connection is this session's. */
  enter(session: Session): void {
    this.session = session
    this.#register?.()
    this.#register = undefined
  }

  /** A message arrived. */
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
  /** A pong arrived. */
  ponged(): void {
    this.heard = true
  }
  /** Some of the buffer was written. @param left bytes that still wait. */
  drained(left: number): void {
    this.#drain?.()
    this.#drain = undefined
    if (left > 0) this.#watch()
  }

  /** Send a frame; whether the socket took it. */
  send(frame: Down): boolean {
    return this.write(JSON.stringify(frame))
  }
  /** Send the text of a frame; whether the socket took it. */
  write(text: string): boolean {
    if (this.isClosed) return false
    this.#edge.world.count.inc('frames_out')
    const sent = this.#pipe.send(text)
    if (sent === 'buffered' && !this.#drain) this.#watch()
    if (sent === 'lost') this.#drop()
    return sent !== 'lost'
  }
  /** Send an error frame. */
  fail(code: FrameError, message: string, message_id?: string): void {
    this.send({
      type: 'error',
      ...(message_id !== undefined && { message_id }),
      error: { code, message },
    })
  }
  /** Close the socket. Closing what is closed does nothing. */
  close(code: number, reason: string): void {
    if (this.isClosed) return
    this.ended()
    this.#pipe.close(code, reason)
  }
  /** The socket is, or is about to be, closed: nothing is sent or received from here on. */
  ended(): void {
    if (this.isClosed) return
    this.isClosed = true
    this.#register?.()
    this.#drain?.()
    this.#edge.rounds.remove(this.#pinging)
    this.onEnd()
    this.#gone()
  }
  /** What to do when the session of this connection ends with it; set at registration. */
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
    this.#edge.rounds.add(
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
