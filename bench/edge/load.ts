/** A load that costs little itself: raw sockets, one request at a time on each, answers only counted. */
import { connect, type Socket } from 'node:net'

const opened = (port: number): Promise<Socket> => new Promise((done, failed) => {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true }, () => done(socket))
  socket.once('error', failed)
})
const END = Buffer.from('\r\n\r\n')
/** Bytes of the first answer in a buffer, or undefined when it is not whole. */
function lengthOf(buffer: Buffer): number | undefined {
  const end = buffer.indexOf(END)
  if (end < 0) return undefined
  const match = /content-length: (\d+)/i.exec(buffer.toString('latin1', 0, end))
  const whole = end + 4 + Number(match?.[1] ?? 0)
  return buffer.length >= whole ? whole : undefined
}

/** Send `count` times the same request over `connections` kept-alive sockets, without pipelining. @param status what every answer must begin with. */
export async function requests(port: number, text: string, count: number, connections: number, status: string): Promise<void> {
  const request = Buffer.from(text)
  let sent = 0
  await Promise.all(Array.from({ length: connections }, async () => {
    const socket = await opened(port)
    await new Promise<void>((done, failed) => {
      let rest = Buffer.alloc(0)
      const next = () => {
        if (sent++ >= count) return socket.end(done)
        socket.write(request)
      }
      socket.on('error', failed)
      socket.on('data', (chunk) => {
        rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
        const whole = lengthOf(rest)
        if (whole === undefined) return
        if (!rest.toString('latin1', 0, 16).startsWith(`HTTP/1.1 ${status}`)) return failed(new Error(rest.toString('utf8', 0, 500)))
        rest = rest.subarray(whole)
        next()
      })
      next()
    })
    socket.destroy()
  }))
}

/** Open event streams; gives the bytes that came over all of them, and how to close them. */
export async function streams(port: number, text: string, count: number): Promise<{ bytes(): number; close(): void }> {
  let bytes = 0
  const sockets = await Promise.all(Array.from({ length: count }, async () => {
    const socket = await opened(port)
    await new Promise<void>((first) => {
      socket.on('data', (chunk) => {
        bytes += chunk.length
        first()
      })
      socket.write(text)
    })
    return socket
  }))
  return { bytes: () => bytes, close: () => { for (const socket of sockets) socket.destroy() } }
}
