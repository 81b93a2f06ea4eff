/**
 * A client for load tests that follows an event stream (Server-Sent Events over HTTP/1.1 chunked
 * coding, RFC 9112 section 7.1). It passes on whole frames as unparsed text.
 */
import { dial, headOf } from './wire.ts'

/**
 * Creates a decoder of chunked bodies: a function that converts received bytes to their content. It
 * does not wait for the line end after a chunk, which may arrive only with the next chunk.
 */
function unchunker(): (bytes: string) => string {
  let rest = ''
  return (bytes) => {
    const text = rest + bytes
    let out = ''
    let from = 0
    for (;;) {
      const begin = text.startsWith('\r\n', from) ? from + 2 : from
      const line = text.indexOf('\r\n', begin)
      if (line < 0) break
      const end = line + 2 + Number.parseInt(text.slice(begin, line), 16)
      if (end > text.length) break
      out += text.slice(line + 2, end)
      from = end
    }
    rest = text.slice(from)
    return out
  }
}

/**
 * Follows a stream. Resolves when the stream has started, with a function that closes the stream.
 * Rejects if the connection fails or the status is not 200. In the latter case, the error has a
 * `status`.
 * @param frames receives one or more whole frames, each with the empty line that ends it.
 * @param ended called when the stream ends without a call to the returned function.
 * @param body a command as ASCII JSON, whose response is the stream. By default, the stream is
 * requested with GET.
 */
export function follow(
  port: number,
  key: string,
  path: string,
  frames: (text: string) => void,
  ended: () => void = () => {},
  body?: string,
): Promise<() => void> {
  return new Promise((begun, failed) => {
    let given = ''
    let open = false
    let rest = ''
    let closed = false
    const unchunk = unchunker()
    const hear = (bytes: string) => {
      const text = rest + unchunk(bytes)
      const end = text.lastIndexOf('\n\n') + 2
      rest = end < 2 ? text : text.slice(end)
      if (end >= 2) frames(end === text.length ? text : text.slice(0, end))
    }
    const line = dial(
      port,
      (bytes) => {
        if (open) return hear(bytes)
        given += bytes
        const found = headOf(given)
        if (!found) return
        if (found.status !== 200)
          return failed(
            Object.assign(
              new Error(`${path} answered ${found.status}: ${given.slice(found.body)}`),
              { status: found.status },
            ),
          )
        open = true
        begun(() => {
          closed = true
          line.close()
        })
        hear(given.slice(found.body))
      },
      (error) => {
        if (!open) failed(error ?? new Error(`${path} closed the connection`))
        else if (!closed) ended()
      },
    )
    const head =
      `${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: Bearer ${key}\r\n` +
      'Accept: text/event-stream\r\n'
    line.send(
      body === undefined
        ? `GET ${head}\r\n`
        : `POST ${head}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    )
  })
}
