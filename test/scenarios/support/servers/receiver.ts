/**
 * A receiver of signed deliveries: it records them and returns configured responses.
 * `verified` checks a signature as a user's receiver would.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Delivery {
  readonly headers: IncomingHttpHeaders
  readonly path: string
  readonly text: string
  readonly body: Record<string, never>
  readonly at: number
}
export interface Receiver {
  readonly url: string
  readonly deliveries: Delivery[]
  /** Responds to each delivery, with `{"ok":true}` by default. Tests replace it. */
  answer: (delivery: Delivery, res: ServerResponse) => void
  /**
   * Returns the delivery with this index once it arrives.
   * @throws {Error} when it does not arrive within 60 s.
   */
  delivery(index: number): Promise<Delivery>
  close(): Promise<void>
}

/**
 * Whether a delivery is signed with a base64 secret as documented, with a timestamp within 300 s of
 * its arrival.
 */
export function verified({ headers, text, at }: Delivery, secret: string): boolean {
  const header = (name: string) => String(headers[`x-service-${name}`] ?? '')
  const time = Number(header('timestamp'))
  if (
    header('signature-version') !== 'v1' ||
    !Number.isInteger(time) ||
    Math.abs(at / 1000 - time) > 300 ||
    !(Number(header('secret-version')) > 0) ||
    header('secret-ref') === ''
  )
    return false
  const expected = createHmac('sha256', Buffer.from(secret, 'base64'))
    .update(`v1.${header('delivery-id')}.${time}.${text}`)
    .digest('hex')
  const given = header('signature').replace(/^sha256=/, '')
  return (
    given.length === expected.length && timingSafeEqual(Buffer.from(given), Buffer.from(expected))
  )
}

export const json =
  (value: unknown, status = 200, headers: Record<string, string> = {}): Receiver['answer'] =>
  (_, res) => {
    res.writeHead(status, { 'content-type': 'application/json', ...headers })
    res.end(JSON.stringify(value))
  }

/**
 * Starts a receiver on loopback.
 * @param serve creates the server, for example one with TLS.
 */
export async function receiver(
  serve: (listener: RequestListener) => Server = createServer,
  scheme = 'http',
): Promise<Receiver> {
  const deliveries: Delivery[] = []
  const waiting = new Set<() => void>()
  const server = serve((req: IncomingMessage, res: ServerResponse) => {
    let text = ''
    req.on('data', (part) => {
      text += part
    })
    req.on('end', () => {
      const delivery: Delivery = {
        headers: req.headers,
        path: req.url ?? '',
        text,
        body: text === '' ? {} : JSON.parse(text),
        at: Date.now(),
      }
      deliveries.push(delivery)
      for (const look of [...waiting]) look()
      it.answer(delivery, res)
    })
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  const it: Receiver = {
    url: `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}`,
    deliveries,
    answer: json({ ok: true }),
    delivery: (index) =>
      new Promise((found, failed) => {
        const timer = setTimeout(() => {
          waiting.delete(look)
          failed(new Error(`delivery ${index} did not come within 60 s; ${deliveries.length} came`))
        }, 60_000)
        const look = () => {
          const delivery = deliveries[index]
          if (!delivery) return
          clearTimeout(timer)
          waiting.delete(look)
          found(delivery)
        }
        waiting.add(look)
        look()
      }),
    close: () =>
      new Promise((closed) => {
        server.closeAllConnections()
        server.close(() => closed())
      }),
  }
  return it
}
