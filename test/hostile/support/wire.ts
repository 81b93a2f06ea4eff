/**
 * HTTP as bytes: requests that no library would send, and their responses. This file handles
 * sockets and the format of responses, and depends on nothing that is specific to the service.
 */
import { connect, type Socket } from 'node:net'

export interface Said {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}
export interface Heard {
  readonly answers: readonly Said[]
  /** Whether the server closed the connection within the waiting time. */
  readonly closed: boolean
  readonly text: string
}

export function dial(url: string): Promise<Socket> {
  const { hostname, port } = new URL(url)
  return new Promise((done, failed) => {
    const socket = connect({ host: hostname, port: Number(port), noDelay: true })
    socket.once('connect', () => done(socket))
    socket.once('error', failed)
  })
}

/** Parses the complete responses in a text. */
export function answersIn(text: string): Said[] {
  const found: Said[] = []
  for (let at = 0; ; ) {
    const end = text.indexOf('\r\n\r\n', at)
    if (end < 0) return found
    const [line = '', ...lines] = text.slice(at, end).split('\r\n')
    const headers = Object.fromEntries(
      lines.map((one) => [
        one.slice(0, one.indexOf(':')).toLowerCase(),
        one.slice(one.indexOf(':') + 1).trim(),
      ]),
    )
    const length = Number(headers['content-length'] ?? 0)
    const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(line)?.[1] ?? 0)
    if (end + 4 + length > text.length) return found
    found.push({ status, headers, body: text.slice(end + 4, end + 4 + length) })
    at = end + 4 + length
  }
}

/**
 * Sends bytes on a new connection, and reads until `answers` responses have arrived, the server has
 * closed the connection, or `ms` milliseconds have passed. Then closes the connection itself.
 */
export async function say(
  url: string,
  bytes: string | Uint8Array,
  { answers = 1, ms = 3000 }: { answers?: number; ms?: number } = {},
): Promise<Heard> {
  const socket = await dial(url)
  try {
    socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes)
    return await listen(socket, (text) => answersIn(text).length >= answers, ms)
  } finally {
    socket.destroy()
  }
}

/**
 * Reads from a connection until `enough` returns true, the server closes it, or `ms` milliseconds
 * have passed. Does not close the connection.
 */
export function listen(
  socket: Socket,
  enough: (text: string) => boolean,
  ms: number,
): Promise<Heard> {
  return new Promise((done) => {
    let text = ''
    const over = (closed: boolean) => {
      clearTimeout(timer)
      socket.off('data', more)
      done({ answers: answersIn(text), closed, text })
    }
    const more = (chunk: Buffer) => {
      text += chunk.toString('latin1')
      if (enough(text)) over(false)
    }
    const timer = setTimeout(() => over(false), ms)
    socket.on('data', more)
    socket.once('close', () => over(true))
    socket.on('error', () => {})
  })
}

/**
 * Returns a request as text.
 * @param lines headers in addition to Host.
 */
export const spoken = (method: string, path: string, lines: readonly string[], body = ''): string =>
  `${method} ${path} HTTP/1.1\r\nHost: test\r\n${lines.map((line) => `${line}\r\n`).join('')}\r\n${body}`
