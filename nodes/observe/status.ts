/** The HTTP server on the status port. It serves the status paths of a gateway and nothing else. */
import { createHash } from 'node:crypto'
import { createServer } from 'node:http'
import {
  METRICS_REFUSED,
  mayReadMetrics,
  type Readiness,
  readyAnswer,
} from '../../gateway/http/status.ts'
import type { Config } from '../config.ts'
import { StartFault } from '../process/fault.ts'

interface Asked extends Readiness {
  readonly access: Config['metrics']
  metrics(): Promise<string>
}

/**
 * Serves `/healthz`, `/readyz` and `/metrics`. After `leave`, the node reports that it is not
 * ready.
 * @throws StartFault when the address cannot be used.
 */
export async function serveStatus(
  host: string,
  port: number,
  asked: Asked,
): Promise<{ readonly url: string; leave(): void; close(): Promise<void> }> {
  let leaving = false
  const answers: Readonly<
    Record<
      string,
      (
        query: string,
        authorization?: string,
      ) => Promise<{ status: number; text: string; type: string }>
    >
  > = {
    '/healthz': async () => json(200, { status: 'alive' }),
    '/readyz': async (query) => {
      const { status, body } = await readyAnswer(asked, leaving, query)
      return json(status, body)
    },
    '/metrics': async (_, authorization) =>
      mayReadMetrics(asked.access, authorization, sha256)
        ? {
            status: 200,
            text: await asked.metrics(),
            type: 'text/plain; version=0.0.4; charset=utf-8',
          }
        : json(401, { error: { code: 'unauthorized', message: METRICS_REFUSED } }),
  }
  const server = createServer((request, response) => {
    const [path = '', query = ''] = request.url?.split('?') ?? []
    const answer = answers[path]
    const given =
      answer && request.method === 'GET'
        ? answer(query, request.headers.authorization)
        : Promise.resolve(
            json(404, {
              error: {
                code: 'not_found',
                message: 'This port serves /healthz, /readyz and /metrics.',
              },
            }),
          )
    given
      .catch((error: Error) => json(503, { status: 'not ready', reasons: [error.message] }))
      .then(({ status, text, type }) => {
        response.writeHead(status, { 'content-type': type }).end(text)
      })
  })
  await new Promise<void>((listening, failed) => {
    server.once('error', (error) =>
      failed(
        new StartFault(
          `The status port ${host}:${port} cannot be used: ${error.message}. Choose another with BATON_STATUS_PORT.`,
        ),
      ),
    )
    server.listen(port, host, listening)
  })
  const address = server.address()
  return {
    url: `http://${host}:${typeof address === 'object' && address ? address.port : port}`,
    leave: () => {
      leaving = true
    },
    close: () =>
      new Promise<void>((closed) => {
        server.close(() => closed())
        server.closeAllConnections()
      }),
  }
}
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')
const json = (status: number, body: unknown) => ({
  status,
  text: JSON.stringify(body),
  type: 'application/json',
})
