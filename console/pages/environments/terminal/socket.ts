/**
 * The browser's end of a terminal. Output is acknowledged after it has been shown, and input waits
 * while its window is full, as `protocol/workers/terminals.ts` describes.
 */
import {
  ByteWindow,
  type FromPerson,
  type ToPerson,
  terminalLimits,
} from '../../../../protocol/workers/terminals.ts'

/** Callbacks for the events of a terminal. */
export interface TerminalEvents {
  opened(): void
  /** Shows output. The promise resolves when the output has been shown. */
  output(bytes: Uint8Array): Promise<void>
  /**
   * Called once when the terminal has ended, but not after a call of `close`. `code` is the exit
   * code of the program. If there is no `code`, `message` is the reason, if it is known.
   */
  ended(how: { readonly code: number } | { readonly message?: string }): void
}
/** Controls an open terminal. */
export interface Terminal {
  write(bytes: Uint8Array): void
  resize(columns: number, rows: number): void
  close(): void
}

const bytesOf = (base64: string): Uint8Array =>
  Uint8Array.from(atob(base64), (sign) => sign.charCodeAt(0))
/**
 * Encodes at most `terminalLimits.chunk` bytes as base64. Each byte becomes an argument of
 * `fromCharCode`, which accepts that many.
 */
const base64Of = (bytes: Uint8Array): string => btoa(String.fromCharCode(...bytes))

/** Opens a terminal. The browser sends the cookie of the console session with the upgrade. */
export function openTerminal(
  path: string,
  size: { readonly columns: number; readonly rows: number },
  events: TerminalEvents,
): Terminal {
  const socket = new WebSocket(new URL(path, location.href.replace(/^http/, 'ws')))
  const window = new ByteWindow(terminalLimits.input_window)
  let waiting: Uint8Array[] = []
  let shown = 0
  let showing = Promise.resolve()
  let over = false
  const send = (message: FromPerson): void => {
    if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message))
  }
  const end = (how: Parameters<TerminalEvents['ended']>[0]): void => {
    if (over) return
    over = true
    events.ended(how)
    socket.close()
  }
  const flush = (): void => {
    while (waiting.length > 0) {
      const [first = new Uint8Array()] = waiting
      const free = Math.min(window.free, terminalLimits.chunk)
      if (free <= 0) return
      const part = first.subarray(0, free)
      waiting =
        part.length < first.length ? [first.subarray(free), ...waiting.slice(1)] : waiting.slice(1)
      window.take(part.length)
      send({ type: 'terminal.input', data: base64Of(part) })
    }
  }
  const show = async (bytes: Uint8Array): Promise<void> => {
    await events.output(bytes)
    shown += bytes.length
    send({ type: 'terminal.ack', bytes: shown })
  }
  socket.onopen = () => send({ type: 'terminal.open', ...size })
  socket.onmessage = ({ data }) => {
    const message = JSON.parse(String(data)) as ToPerson
    if (message.type === 'terminal.opened') events.opened()
    else if (message.type === 'terminal.output')
      showing = showing.then(() => show(bytesOf(message.data)))
    else if (message.type === 'terminal.ack') {
      window.acknowledge(message.bytes)
      flush()
    } else if (message.type === 'error') end({ message: message.error.message })
    else if (message.type === 'terminal.exit') {
      const { exit_code: code, error } = message
      void showing.then(() =>
        end(code === undefined ? { ...(error !== undefined && { message: error }) } : { code }),
      )
    }
  }
  // The end is reported only after all earlier output has been shown.
  socket.onclose = () => void showing.then(() => end({}))
  return {
    write(bytes) {
      waiting.push(bytes)
      flush()
    },
    resize: (columns, rows) => send({ type: 'terminal.resize', columns, rows }),
    close() {
      over = true
      send({ type: 'terminal.close' })
      socket.close()
    },
  }
}
