/**
 * Opens TCP connections with as little overhead as Node.js allows, because the load shares the
 * machine with the measured server. Bytes are represented by Latin-1 strings with one character per
 * byte. Each connection reads into one buffer, and the writes of one turn of the event loop are
 * sent together.
 */
import { connect } from 'node:net'

export interface Line {
  /** Sends the bytes, together with all other bytes sent in this turn of the event loop. */
  send(bytes: string): void
  close(): void
}
const BUFFER_BYTES = 16 * 1024

/**
 * Connects to a port of this machine.
 * @param heard receives the bytes in parts of any size.
 * @param ended called once, when the connection is closed or fails.
 */
export function dial(
  port: number,
  heard: (bytes: string) => void,
  ended: (error?: Error) => void,
  size = BUFFER_BYTES,
): Line {
  let waiting = ''
  const flush = () => {
    const bytes = waiting
    waiting = ''
    if (!socket.destroyed) socket.write(bytes, 'latin1')
  }
  const socket = connect({
    host: '127.0.0.1',
    port,
    noDelay: true,
    onread: {
      buffer: Buffer.allocUnsafeSlow(size),
      callback: (length, buffer) => {
        heard((buffer as Buffer).toString('latin1', 0, length))
        return true
      },
    },
  })
  let failure: Error | undefined
  socket.on('error', (error) => {
    failure = error
  })
  socket.once('close', () => ended(failure))
  return {
    send: (bytes) => {
      if (waiting === '') process.nextTick(flush)
      waiting += bytes
    },
    close: () => void socket.destroy(),
  }
}

/**
 * Parses the head of an HTTP response. Returns the position of the body, the status, and the
 * content length (NaN if the head does not state it). Returns undefined while the head is
 * incomplete.
 */
export function headOf(
  text: string,
): { readonly body: number; readonly status: number; readonly length: number } | undefined {
  const end = text.indexOf('\r\n\r\n')
  if (end < 0) return undefined
  const field = /\r\ncontent-length: ?(\d+)/i.exec(text.slice(0, end))
  return {
    body: end + 4,
    status: Number(text.slice(9, 12)),
    length: field ? Number(field[1]) : Number.NaN,
  }
}
