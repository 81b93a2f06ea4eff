/**
 * Opens programs in the terminals of a worker at the service's request, and sends their output.
 *
 * Invariants:
 * T1. A program is paused while its output does not fit into the window, so the amount of buffered
 *     output is bounded.
 * T2. Terminals end with the connection on which they were opened.
 */
import type { Down, Up } from '../../protocol/workers/socket.ts'
import { ByteWindow, terminalLimits } from '../../protocol/workers/terminals.ts'

/** A program in a pseudoterminal. */
export interface WorkerTerminal {
  write(data: Uint8Array): void
  resize(columns: number, rows: number): void
  /** Stops reading output until `resume` is called, which applies backpressure to the program. */
  pause(): void
  resume(): void
  close(): void
  onData(listener: (data: Uint8Array) => void): void
  /** @param listener called once, after all output. */
  onExit(listener: (exit: { readonly exit_code: number }) => void): void
}
/** Opens a program in a terminal; by default an interactive shell. Rejects if this fails. */
export type OpenTerminal = (request: {
  readonly columns: number
  readonly rows: number
  readonly command?: readonly string[]
}) => Promise<WorkerTerminal>

type Frame = Extract<Down, { readonly type: `terminal.${string}` }>
type Outgoing = Extract<Up, { readonly type: `terminal.${string}` }>
interface Open {
  readonly window: ByteWindow
  /** Output that waits for space in the window. */
  waiting: Uint8Array[]
  terminal?: WorkerTerminal
  paused: boolean
  /** Sequence number of the next output. */
  sequence: number
  /** Total number of input bytes received. */
  received: number
  exit?: number
}

export class Terminals {
  readonly #open: OpenTerminal | undefined
  readonly #send: (frame: Outgoing) => void
  readonly #changed: (count: number) => void
  readonly #terminals = new Map<string, Open>()

  /** @param changed called with the number of terminals whenever it changes. */
  constructor(
    open: OpenTerminal | undefined,
    send: (frame: Outgoing) => void,
    changed: (count: number) => void,
  ) {
    this.#open = open
    this.#send = send
    this.#changed = changed
  }

  /**
   * Handles a frame from the service. Frames for unknown terminals, except `terminal.open`, are
   * ignored.
   */
  handle(frame: Frame): void {
    const { terminal_id: id } = frame
    if (frame.type === 'terminal.open') return void this.#begin(frame)
    const one = this.#terminals.get(id)
    if (!one) return
    switch (frame.type) {
      case 'terminal.input': {
        const data = Buffer.from(frame.data, 'base64')
        one.received += data.length
        one.terminal?.write(data)
        this.#send({ type: 'terminal.ack', terminal_id: id, bytes: one.received })
        break
      }
      case 'terminal.resize':
        one.terminal?.resize(frame.columns, frame.rows)
        break
      case 'terminal.ack':
        one.window.acknowledge(frame.bytes)
        this.#flush(id, one)
        break
      case 'terminal.close':
        this.#end(id, one)
    }
  }
  /** Ends all terminals, because the connection is lost or the worker ends. */
  closeAll(): void {
    for (const [id, one] of [...this.#terminals]) this.#end(id, one)
  }

  async #begin(frame: Extract<Frame, { readonly type: 'terminal.open' }>): Promise<void> {
    const { terminal_id: id, columns, rows, command } = frame
    if (!this.#open || this.#terminals.size >= terminalLimits.per_environment)
      return this.#send({
        type: 'terminal.exit',
        terminal_id: id,
        error: 'The worker cannot open a terminal.',
      })
    const one: Open = {
      window: new ByteWindow(terminalLimits.output_window),
      waiting: [],
      paused: false,
      sequence: 0,
      received: 0,
    }
    this.#terminals.set(id, one)
    this.#changed(this.#terminals.size)
    try {
      const terminal = await this.#open({ columns, rows, ...(command && { command }) })
      if (this.#terminals.get(id) !== one) return terminal.close()
      one.terminal = terminal
      terminal.onData((data) => {
        one.waiting.push(data)
        this.#flush(id, one)
      })
      terminal.onExit(({ exit_code }) => {
        one.exit = exit_code
        this.#flush(id, one)
      })
    } catch (error) {
      if (!this.#forget(id, one)) return
      const message = (error as Error).message.slice(0, 1000)
      this.#send({ type: 'terminal.exit', terminal_id: id, error: message })
    }
  }
  /** Sends as much output as fits into the window, and the exit when no output is left. */
  #flush(id: string, one: Open): void {
    if (this.#terminals.get(id) !== one) return
    for (;;) {
      const [next] = one.waiting
      const free = Math.min(one.window.free, terminalLimits.chunk)
      if (!next || free <= 0) break
      const part = next.subarray(0, free)
      if (part.length < next.length) one.waiting[0] = next.subarray(part.length)
      else one.waiting.shift()
      one.window.take(part.length)
      this.#send({
        type: 'terminal.output',
        terminal_id: id,
        sequence: one.sequence++,
        data: Buffer.from(part).toString('base64'),
      })
    }
    const isFull = one.waiting.length > 0
    if (isFull !== one.paused) {
      one.paused = isFull
      if (isFull) one.terminal?.pause()
      else one.terminal?.resume()
    }
    if (isFull || one.exit === undefined) return
    this.#forget(id, one)
    this.#send({ type: 'terminal.exit', terminal_id: id, exit_code: one.exit })
  }
  #end(id: string, one: Open): void {
    if (this.#forget(id, one)) one.terminal?.close()
  }
  #forget(id: string, one: Open): boolean {
    if (this.#terminals.get(id) !== one) return false
    this.#terminals.delete(id)
    this.#changed(this.#terminals.size)
    return true
  }
}
