/**
 * One connection of a worker: parses inbound text and sends frames. It accesses the socket only
 * through `Pipe`. Frames are handled in `dispatch.ts`.
 *
 * Invariants:
 * N1. An invalid frame is answered with an error, and the connection stays open. Only these
 *     protocol faults close the connection: too many frames, a message above the size limit, and a
 *     missing or refused registration. A client registers once per socket, and would otherwise wait
 *     forever after a refusal.
 * N2. `worker.registered` is the first frame that is sent, apart from errors. Frames that arrive
 *     during a registration are handled after it.
 * N3. A socket that writes none of its buffered data for 10 s (`limits.drain`) is dropped.
 * N4. A worker is pinged at least twice per takeover time (`timing.takeover`), so that a worker
 *     that is alive but sends no frames is not considered lost.
 */
import type { Down, FrameError, Up } from '../../protocol/workers/socket.ts'
import { closeCodes } from '../../protocol/workers/socket.ts'
import { type Grant, limits, type WorkerEdge } from './edge.ts'
import { readFrame } from './frames.ts'
import type { Session } from './session.ts'
import type { Task } from './timer-wheel.ts'

/** The methods of a socket. None is called after the socket has reported that it was closed. */
export interface Pipe {
  /**
   * Sends a text no later than at the end of this turn of the event loop. Returns whether the
   * socket accepted it. `Connection.buffered` is called when the text could not be written
   * completely.
   */
  send(text: string): boolean
  ping(): void
  /** Closes with a code and a reason, after the data sent so far. */
  close(code: number, reason: string): void
  /** Closes immediately, without a close frame. */
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
  /** Frames that arrived during the registration and are held until it completes. */
  readonly backlog: Incoming[] = []
  /**
   * Whether anything was received from the worker since the flag was last reset (`presence.ts`).
   */
  heard = true
  isClosed = false
  readonly #edge: WorkerEdge
  readonly #pipe: Pipe
  readonly #dispatch: (connection: Connection, incoming: Incoming) => void
  readonly #gone: () => void
  /** Cancels the timer that closes a connection whose worker does not register in time. */
  #register: (() => void) | undefined
  /** Cancels the timer that closes a connection whose buffered data is not being sent. */
  #drain: (() => void) | undefined
  readonly #pinging: Task = { due: () => this.#ping() }
  #credit: number = limits.frames_at_once
  #credited: number

  /** @param gone called once, when the connection has ended. */
  constructor(
    edge: WorkerEdge,
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
    this.#credited = edge.world.monotonic()
    this.#register = edge.world.later(edge.world.settings.timing.register * 1000, () =>
      this.close(closeCodes.register_timeout, 'no worker.register in time'),
    )
    this.#next()
  }
  /** Records the session with which the worker has registered. */
  enter(session: Session): void {
    this.session = session
    this.#register?.()
    this.#register = undefined
  }

  /** Parses and dispatches an inbound message. Too many messages close the connection. */
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
  /** Records a pong, which shows that the worker is reachable. */
  ponged(): void {
    this.heard = true
  }
  /** Called when some of the sent data is buffered, because the socket could not write it. */
  buffered(): void {
    if (!this.isClosed && !this.#drain) this.#watch()
  }
  /**
   * Called when some of the buffered data has been written.
   * @param left number of bytes that are still buffered.
   */
  drained(left: number): void {
    this.#drain?.()
    this.#drain = undefined
    if (left > 0) this.#watch()
  }

  /**
   * Sends a frame.
   * @returns whether the socket accepted it.
   */
  send(frame: Down): boolean {
    return this.write(JSON.stringify(frame))
  }
  /**
   * Sends the text of a frame.
   * @returns whether the socket accepted it.
   */
  write(text: string): boolean {
    if (this.isClosed) return false
    this.#edge.world.count.inc('frames_out')
    const accepted = this.#pipe.send(text)
    if (!accepted) this.#drop()
    return accepted
  }
  /** Sends an error frame. `message_id` identifies the frame that caused the error. */
  fail(code: FrameError, message: string, message_id?: string): void {
    this.send({
      type: 'error',
      ...(message_id !== undefined && { message_id }),
      error: { code, message },
    })
  }
  /** Closes the socket. Does nothing if it is closed already. */
  close(code: number, reason: string): void {
    if (this.isClosed) return
    this.ended()
    this.#pipe.close(code, reason)
  }
  /**
   * Marks the connection as ended, because the socket is closed or about to be closed. Nothing is
   * sent or received afterwards.
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
  /**
   * Called when the connection ends. The registration sets it to the function that ends the
   * session.
   */
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
    const now = this.#edge.world.monotonic()
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
