/**
 * A terminal in an environment, over a WebSocket. Output is acknowledged after the caller has
 * consumed it, so a slow caller slows the program down.
 */
import { routeOf } from '../protocol/contract.ts'
import { environments } from '../protocol/environments/rows.ts'
import {
  ByteWindow,
  type FromPerson,
  type ToPerson,
  terminalLimits,
} from '../protocol/workers/terminals.ts'
import { BatonError } from './errors.ts'
import { dial } from './worker/socket.ts'

export interface TerminalOptions {
  /** Base address of the service. If several are given, the first that accepts is used. */
  readonly url: string | readonly string[]
  readonly key: string
  readonly project: string
  readonly environment_id: string
  readonly columns: number
  readonly rows: number
  /** Program with its arguments; an interactive shell if absent. */
  readonly command?: readonly string[]
  /** Consumes output. The next output arrives after the promise has resolved. */
  readonly onOutput: (data: Uint8Array) => Promise<void> | void
}
export interface TerminalSession {
  /** Sends input. Resolves when all of the data has been sent or the terminal has ended. */
  write(data: Uint8Array): Promise<void>
  resize(columns: number, rows: number): void
  close(): void
  /**
   * Resolves with the exit code of the program, which is 128 plus the signal number after a signal.
   * Rejects if the terminal ends in another way or `onOutput` fails.
   */
  readonly ended: Promise<number>
}

/**
 * Opens a terminal. Resolves when the program runs. An environment without a worker is started.
 * @throws BatonError if the service refuses the terminal or does not respond.
 */
export async function openTerminal(options: TerminalOptions): Promise<TerminalSession> {
  const urls = typeof options.url === 'string' ? [options.url] : options.url
  for (const [index, url] of urls.entries())
    try {
      return await openAt(url, options)
    } catch (error) {
      const isTemporary = error instanceof BatonError && [0, 503].includes(error.status)
      if (!isTemporary || index === urls.length - 1) throw error
    }
  throw new RangeError('a terminal needs at least one address')
}

const pathOf = ({ project, environment_id }: TerminalOptions): string =>
  `/v1${routeOf(environments['environment.terminal'])
    .path.replace(':project', encodeURIComponent(project))
    .replace(':environment_id', encodeURIComponent(environment_id))}`

const refusals: Readonly<Record<number, BatonError['code']>> = {
  401: 'unauthorized',
  403: 'permission_denied',
  404: 'not_found',
  429: 'rate_limit_exceeded',
}
const lost = (message: string) => new BatonError(0, 'unreachable', message)

function openAt(url: string, options: TerminalOptions): Promise<TerminalSession> {
  return new Promise((opened, refused) => {
    const session = new Session(options)
    session.socket = dial(
      `${url.replace(/^http/, 'ws').replace(/\/$/, '')}${pathOf(options)}`,
      { authorization: `Bearer ${options.key}` },
      {
        opened: () => session.begin(),
        refused: (status, reason) =>
          refused(
            status === 0
              ? lost(`${url} does not respond${reason === '' ? '' : `: ${reason}`}`)
              : new BatonError(
                  status,
                  refusals[status] ?? 'service_unavailable',
                  reason || `The service answered ${status}.`,
                ),
          ),
        frame: (text) => session.receive(text),
        alive: () => {},
        closed: (_code, reason) => session.fail(lost(reason)),
      },
    )
    session.opened.then(() => opened(session), refused)
  })
}

class Session implements TerminalSession {
  readonly ended: Promise<number>
  readonly opened: Promise<void>
  socket: ReturnType<typeof dial> | undefined
  readonly #options: TerminalOptions
  readonly #input = new ByteWindow(terminalLimits.input_window)
  #consumed = 0
  #reading: Promise<void> = Promise.resolve()
  #begun!: () => void
  #exit!: (code: number) => void
  #failed: ((error: Error) => void)[] = []
  #blocked: (() => void)[] = []
  #writing: Promise<void> = Promise.resolve()
  #isOver = false

  constructor(options: TerminalOptions) {
    this.#options = options
    this.opened = new Promise((done, failed) => {
      this.#begun = done
      this.#failed.push(failed)
    })
    this.ended = new Promise((done, failed) => {
      this.#exit = done
      this.#failed.push(failed)
    })
    // Prevents an unhandled rejection if the caller observes only `opened`.
    this.ended.catch(() => {})
  }
  begin(): void {
    const { columns, rows, command } = this.#options
    this.#send({ type: 'terminal.open', columns, rows, ...(command && { command: [...command] }) })
  }
  receive(text: string): void {
    const message = JSON.parse(text) as ToPerson
    switch (message.type) {
      case 'terminal.opened':
        this.#begun()
        break
      case 'terminal.output':
        this.#reading = this.#reading.then(() => this.#consume(Buffer.from(message.data, 'base64')))
        break
      case 'terminal.ack':
        this.#input.acknowledge(message.bytes)
        for (const next of this.#blocked.splice(0)) next()
        break
      case 'terminal.exit': {
        const { exit_code, error = 'the program was lost' } = message
        // The exit takes effect after all earlier output has been consumed.
        void this.#reading.then(() =>
          exit_code === undefined
            ? this.fail(new BatonError(0, 'environment_worker_unavailable', error))
            : this.#end(exit_code),
        )
        break
      }
      case 'error':
        this.fail(
          new BatonError(0, message.error.code as BatonError['code'], message.error.message),
        )
    }
  }
  async #consume(data: Uint8Array): Promise<void> {
    try {
      await this.#options.onOutput(data)
    } catch (error) {
      return this.fail(error as Error)
    }
    this.#consumed += data.length
    this.#send({ type: 'terminal.ack', bytes: this.#consumed })
  }
  write(data: Uint8Array): Promise<void> {
    this.#writing = this.#writing.then(() => this.#write(data))
    return this.#writing
  }
  async #write(data: Uint8Array): Promise<void> {
    for (let at = 0; at < data.length && !this.#isOver; ) {
      const free = Math.min(this.#input.free, terminalLimits.chunk)
      if (free <= 0) {
        await new Promise<void>((next) => this.#blocked.push(next))
        continue
      }
      const part = data.subarray(at, at + free)
      at += part.length
      this.#input.take(part.length)
      this.#send({ type: 'terminal.input', data: Buffer.from(part).toString('base64') })
    }
  }
  resize(columns: number, rows: number): void {
    this.#send({ type: 'terminal.resize', columns, rows })
  }
  close(): void {
    this.fail(new BatonError(0, 'unreachable', 'The terminal was closed.'))
  }
  /**
   * Ends the terminal with an error as soon as all received output has been consumed. Has no effect
   * if the terminal has already ended.
   */
  fail(error: Error): void {
    void this.#reading.then(() => {
      if (!this.#over()) return
      for (const failed of this.#failed) failed(error)
    })
  }
  #end(code: number): void {
    if (this.#over()) this.#exit(code)
  }
  #over(): boolean {
    if (this.#isOver) return false
    this.#send({ type: 'terminal.close' })
    this.#isOver = true
    this.socket?.close(1000)
    for (const next of this.#blocked.splice(0)) next()
    return true
  }
  #send(message: FromPerson): void {
    if (!this.#isOver) this.socket?.send(JSON.stringify(message))
  }
}
