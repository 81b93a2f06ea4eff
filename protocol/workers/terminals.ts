/**
 * Terminals in environments. The sockets of the person and of the worker may be connected to
 * different gateways, which relay between them. Nothing is stored.
 *
 *     person     `terminal.open`                  → gateway → worker
 *     person     `terminal.input`, `.resize`, `.close`, `.ack` → worker
 *     worker     `terminal.output`, `.exit`, `.ack`            → person
 *
 * Flow control: a sender may have at most a window of bytes in flight. The receiver acknowledges
 * the total number of bytes that it has processed, and the sender waits while the window is full. A
 * gateway ends a terminal whose sender exceeds the window, which bounds memory per terminal.
 * Messages between gateways may be lost. The terminal ends when sequence numbers reveal a loss.
 */
import { type Static, Type } from 'typebox'

/** Limits of terminals. Sizes are in bytes, and times in milliseconds. */
export const terminalLimits = {
  /** Maximum number of bytes in one message. */
  chunk: 32_768,
  /** Maximum number of bytes of output that the client has not acknowledged. */
  output_window: 262_144,
  /** Maximum number of bytes of input that the worker has not acknowledged. */
  input_window: 65_536,
  /** Maximum number of concurrent terminals of one environment. */
  per_environment: 8,
  /** Time within which a worker must connect when the environment has no worker. */
  start: 120_000,
  /** Time after the upgrade within which `terminal.open` must arrive. */
  open: 10_000,
  /** Time without input or output after which a terminal ends. */
  idle: 3_600_000,
  /** Maximum duration of a terminal. */
  duration: 12 * 3_600_000,
  /** Interval of the `beat` messages with which each gateway shows the other that it is alive. */
  beat: 15_000,
  /** Time without a message from the other gateway after which a terminal ends. */
  silence: 45_000,
} as const

const message_id = Type.Optional(Type.String({ minLength: 1, maxLength: 128 }))
const terminal_id = Type.String({ minLength: 1, maxLength: 64 })
const length = Type.Integer({ minimum: 1, maximum: 1000 })
const data = Type.String({
  maxLength: Math.ceil(terminalLimits.chunk / 3) * 4,
  pattern: '^[A-Za-z0-9+/]*={0,2}$',
  description: 'Bytes as base64',
})
const sequence = Type.Integer({ minimum: 0 })
const bytes = Type.Integer({ minimum: 0, description: 'Total number of bytes processed so far' })
const size = { columns: length, rows: length }
const command = Type.Optional(
  Type.Array(Type.String({ maxLength: 4096 }), {
    minItems: 1,
    maxItems: 64,
    description: 'Program and its arguments; an interactive shell by default',
  }),
)
const output = { sequence, data }
const exit = {
  exit_code: Type.Optional(
    Type.Integer({
      description: 'Exit code of the program; 128 plus the signal number if a signal ended it',
    }),
  ),
  error: Type.Optional(Type.String({ maxLength: 1000 })),
}

/** The messages that a person's client sends, by `type`. The first message is `terminal.open`. */
export const fromPerson = {
  'terminal.open': Type.Object({ type: Type.Literal('terminal.open'), ...size, command }),
  'terminal.input': Type.Object({ type: Type.Literal('terminal.input'), data }),
  'terminal.resize': Type.Object({ type: Type.Literal('terminal.resize'), ...size }),
  'terminal.ack': Type.Object({ type: Type.Literal('terminal.ack'), bytes }),
  'terminal.close': Type.Object({ type: Type.Literal('terminal.close') }),
} as const
export type FromPerson = {
  [K in keyof typeof fromPerson]: Static<(typeof fromPerson)[K]>
}[keyof typeof fromPerson]
/** The messages to a person's client. After `terminal.exit` or `error`, the socket is closed. */
export const toPerson = {
  'terminal.opened': Type.Object({ type: Type.Literal('terminal.opened'), terminal_id }),
  'terminal.output': Type.Object({ type: Type.Literal('terminal.output'), ...output }),
  'terminal.ack': Type.Object({ type: Type.Literal('terminal.ack'), bytes }),
  'terminal.exit': Type.Object({ type: Type.Literal('terminal.exit'), ...exit }),
  error: Type.Object({
    type: Type.Literal('error'),
    error: Type.Object({ code: Type.String(), message: Type.String() }),
  }),
} as const
type Message<N extends keyof typeof toPerson> = Static<(typeof toPerson)[N]>
export type ToPerson = { [N in keyof typeof toPerson]: Message<N> }[keyof typeof toPerson]
export type TerminalExit = Message<'terminal.exit'>

/** The terminal frames that a worker sends over the worker socket, by `type`. */
export const terminalUp = {
  'terminal.output': Type.Object({
    type: Type.Literal('terminal.output'),
    terminal_id,
    message_id,
    ...output,
  }),
  'terminal.ack': Type.Object({
    type: Type.Literal('terminal.ack'),
    terminal_id,
    message_id,
    bytes,
  }),
  'terminal.exit': Type.Object({
    type: Type.Literal('terminal.exit'),
    terminal_id,
    message_id,
    ...exit,
  }),
} as const
/** The terminal frames that a worker receives over the worker socket, by `type`. */
export const terminalDown = {
  'terminal.open': Type.Object({
    type: Type.Literal('terminal.open'),
    terminal_id,
    ...size,
    command,
  }),
  'terminal.input': Type.Object({ type: Type.Literal('terminal.input'), terminal_id, data }),
  'terminal.resize': Type.Object({ type: Type.Literal('terminal.resize'), terminal_id, ...size }),
  'terminal.ack': Type.Object({ type: Type.Literal('terminal.ack'), terminal_id, bytes }),
  'terminal.close': Type.Object({ type: Type.Literal('terminal.close'), terminal_id }),
} as const

/** A message from the person's gateway to the worker's gateway. */
export type TowardsWorker =
  | { readonly type: 'terminal.input'; readonly sequence: number; readonly data: string }
  | { readonly type: 'terminal.resize'; readonly columns: number; readonly rows: number }
  | { readonly type: 'terminal.ack'; readonly bytes: number }
  | { readonly type: 'terminal.close' }
  | { readonly type: 'beat' }
/** A message from the worker's gateway to the person's gateway. */
export type TowardsPerson =
  | Message<'terminal.output' | 'terminal.ack' | 'terminal.exit'>
  | { readonly type: 'beat' }

/** A request to the worker's gateway to open a terminal. The reply is a `TerminalAnswer`. */
export interface TerminalRequest {
  readonly project: string
  readonly environment_id: string
  readonly terminal_id: string
  readonly columns: number
  readonly rows: number
  readonly command?: readonly string[]
}
export type TerminalAnswer =
  | { readonly ok: true }
  | { readonly ok: false; readonly code: string; readonly message: string }

/** Returns the number of bytes that a base64 text encodes. */
export const bytesIn = (base64: string): number =>
  Math.floor((base64.length * 3) / 4) - (base64.endsWith('==') ? 2 : base64.endsWith('=') ? 1 : 0)

/**
 * Counts the bytes in flight to a receiver, which acknowledges the total number of processed bytes.
 */
export class ByteWindow {
  readonly #limit: number
  #sent = 0
  #acknowledged = 0
  /** @param limit maximum number of bytes in flight. */
  constructor(limit: number) {
    this.#limit = limit
  }
  /** Number of bytes that may be sent now. */
  get free(): number {
    return this.#limit - (this.#sent - this.#acknowledged)
  }
  /** Records sent bytes. Returns false when they exceed the window. */
  take(count: number): boolean {
    this.#sent += count
    return this.free >= 0
  }
  /**
   * Records the acknowledged total. Ignores a total that is out of date or exceeds the sent bytes.
   */
  acknowledge(total: number): void {
    if (total > this.#acknowledged && total <= this.#sent) this.#acknowledged = total
  }
}
