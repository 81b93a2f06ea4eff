/**
 * A WebSocket client (RFC 6455) for load tests: unfragmented text frames, no extensions. The mask
 * is four zero bytes, so masking costs nothing. Frames that are sent in one turn of the event loop
 * are written together.
 */
import { dial, headOf } from './wire.ts'

export interface Socket {
  /** @param text ASCII. */
  send(text: string): void
  close(): void
}
const TEXT = 0x81
const PING = 0x89
const PONG = 0x8a
const CLOSE = 0x88

function masked(opcode: number, text: string): string {
  const { length } = text
  const size =
    length < 126
      ? String.fromCharCode(0x80 | length)
      : length < 65_536
        ? String.fromCharCode(0xfe, length >> 8, length & 255)
        : String.fromCharCode(
            0xff,
            0,
            0,
            0,
            0,
            (length >>> 24) & 255,
            (length >>> 16) & 255,
            (length >>> 8) & 255,
            length & 255,
          )
  return `${String.fromCharCode(opcode)}${size}\0\0\0\0${text}`
}
const big = (text: string, from: number, bytes: number): number => {
  let value = 0
  for (let i = from; i < from + bytes; i++) value = value * 256 + text.charCodeAt(i)
  return value
}

/**
 * Opens a WebSocket. Rejects if the upgrade fails.
 * @param heard receives each text frame.
 * @param ended called when the server closes the connection, or the connection is lost.
 * @param size read buffer in bytes.
 */
export function openSocket(
  port: number,
  key: string,
  path: string,
  heard: (text: string) => void,
  ended: (reason: string) => void = () => {},
  size?: number,
): Promise<Socket> {
  return new Promise((opened, failed) => {
    let rest = ''
    let open = false
    let closed = false
    const socket: Socket = {
      send: (text) => line.send(masked(TEXT, text)),
      close: () => {
        closed = true
        line.close()
      },
    }
    const read = () => {
      let from = 0
      while (rest.length >= from + 2) {
        const opcode = rest.charCodeAt(from)
        const short = rest.charCodeAt(from + 1)
        const extra = short === 126 ? 2 : short === 127 ? 8 : 0
        if (rest.length < from + 2 + extra) break
        const length = extra === 0 ? short : big(rest, from + 2, extra)
        const begin = from + 2 + extra
        if (rest.length < begin + length) break
        const text = rest.slice(begin, begin + length)
        from = begin + length
        if (opcode === TEXT) heard(text)
        else if (opcode === PING) line.send(masked(PONG, text))
        else if (opcode === CLOSE) ended(`closed with ${big(text, 0, 2)} ${text.slice(2)}`)
      }
      rest = from === 0 ? rest : rest.slice(from)
    }
    const line = dial(
      port,
      (bytes) => {
        rest = rest === '' ? bytes : rest + bytes
        if (!open) {
          const head = headOf(rest)
          if (!head) return
          if (head.status !== 101)
            return failed(new Error(`${path} answered ${head.status}: ${rest.slice(head.body)}`))
          open = true
          rest = rest.slice(head.body)
          opened(socket)
        }
        read()
      },
      (error) => {
        if (!open) failed(error ?? new Error(`${path} closed the connection`))
        else if (!closed) ended('the connection is gone')
      },
      size,
    )
    line.send(
      `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: Bearer ${key}\r\n` +
        'Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n' +
        'Sec-WebSocket-Key: YmVuY2htYXJraW5nIGJhdA==\r\n\r\n',
    )
  })
}
