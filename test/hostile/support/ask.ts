/**
 * Requests of a hostile client: any method, path, header and body that HTTP allows, over keep-alive
 * connections.
 */
import { Agent, request } from 'node:http'
import type { TAP } from 'tap'
import type { Row } from '../../../protocol/contract.ts'
import { until } from '../../scenarios/support/given.ts'
import { type Service, service } from '../../support/service.ts'

export interface Asked {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
}
export interface Answered {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  /** Empty for a stream, which is aborted as soon as it starts. */
  readonly text: string
}

/**
 * Returns the content type and the text of a body: a form for rows whose uploads are streamed,
 * otherwise JSON.
 */
export function encodedBody(
  { shape }: Row,
  body: object | undefined,
): { readonly headers: Readonly<Record<string, string>>; readonly body?: string } {
  if (!body) return { headers: {} }
  if (shape.upload !== 'streamed')
    return { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
  const parts = Object.entries(body).map(
    ([name, value]) =>
      `--x\r\ncontent-disposition: form-data; name=${JSON.stringify(name)}` +
      `${name === 'file' ? '; filename="f"' : ''}\r\n\r\n` +
      `${typeof value === 'string' ? value : JSON.stringify(value)}\r\n`,
  )
  return {
    headers: { 'content-type': 'multipart/form-data; boundary=x' },
    body: `${parts.join('')}--x--\r\n`,
  }
}

/**
 * The maximum number of repeats of a request that is answered with 503, with 500 ms between them. A
 * node that had no processor time for seconds answers 503 until its lease is fresh. A node that
 * still answers 503 after these repeats is broken.
 */
const MAX_REPEATS = 10

let calls = 0
/**
 * Returns a variant of the service's `ok` that repeats a call answered with 503. Like a client, it
 * uses the same idempotency key, because it is unknown whether the command was performed.
 */
export const patient =
  (s: Service): Service['ok'] =>
  async (name, input) => {
    const options = { headers: { 'idempotency-key': `patient ${++calls}` } }
    const { status, body } = await until(
      () => s.call(name, input, options),
      (answer) => answer.status !== 503,
      name,
      500,
    )
    if (status >= 300) throw new Error(`${name} was refused: ${JSON.stringify(body)}`)
    return body as Record<string, never>
  }

/** Opens a client with its own pool of up to 32 connections. */
export function openClient(url: string): { ask(asked: Asked): Promise<Answered>; close(): void } {
  const agent = new Agent({ keepAlive: true, maxSockets: 32 })
  const { hostname, port } = new URL(url)
  const once = ({ method, path, headers, body }: Asked): Promise<Answered> =>
    new Promise((done, failed) => {
      const length: Record<string, string> =
        body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }
      const asked = request(
        {
          host: hostname,
          port,
          agent,
          method,
          path,
          headers: { ...length, ...headers },
          timeout: 10_000,
        },
        (response) => {
          const parts: Buffer[] = []
          const over = () =>
            done({
              status: response.statusCode ?? 0,
              headers: response.headers,
              text: Buffer.concat(parts).toString(),
            })
          if (/event-stream/.test(response.headers['content-type'] ?? '')) {
            over()
            asked.destroy()
            return
          }
          response.on('data', (part: Buffer) => parts.push(part))
          response.on('end', over)
        },
      )
      asked.on('timeout', () => asked.destroy(new Error('no answer within 10 s')))
      asked.on('error', failed)
      asked.end(body)
    })
  return {
    ask: async (asked) => {
      for (let tries = 0; ; tries++) {
        const answer = await once(asked)
        if (answer.status !== 503 || tries === MAX_REPEATS || asked.path === '/readyz')
          return answer
        await new Promise((again) => setTimeout(again, 500))
      }
    },
    close: () => agent.destroy(),
  }
}

/**
 * Makes requests that do not affect each other, 16 at a time. The service then reads and writes
 * several of them together, which takes less processor time.
 */
export async function together<T>(
  all: readonly T[],
  run: (one: T) => Promise<void>,
): Promise<void> {
  const next = all.values()
  await Promise.all(
    Array.from({ length: 16 }, async () => {
      for (const one of next) await run(one)
    }),
  )
}

/** Starts a service and opens a client for it. Both end with the test. */
export async function serviceWithClient(
  t: TAP,
): Promise<{ readonly s: Service; readonly client: ReturnType<typeof openClient> }> {
  const s = await service()
  const client = openClient(s.url)
  t.teardown(async () => {
    client.close()
    await s.stop()
  })
  return { s, client }
}
