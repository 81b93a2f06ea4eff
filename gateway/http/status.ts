/**
 * Endpoints for infrastructure: liveness, readiness and metrics. They are not API rows and need no
 * API credential. Whether a node is ready is decided by the implementation of the ports.
 */
import { refuse } from '../../protocol/errors.ts'
import type { GatewaySettings, StorageReport, World } from '../ports.ts'
import type { Handler } from '../serve.ts'

/** The error message for a request without the metrics token. */
export const METRICS_REFUSED =
  'The metrics require a token: send Authorization: Bearer with the value of BATON_METRICS_TOKEN.'
/**
 * Returns whether a request may read the metrics: it has the metrics token, or no token is
 * configured. Hashes are compared, so that the response time reveals nothing about the token.
 */
export const mayReadMetrics = (
  metrics: GatewaySettings['metrics'],
  authorization: string | undefined,
  hash: (text: string) => string,
): boolean =>
  metrics?.token === undefined || hash(authorization ?? '') === hash(`Bearer ${metrics.token}`)

/**
 * The inputs of the readiness check: the reasons why the node is not ready, and the state of the
 * storage.
 */
export interface Readiness {
  unready(): Promise<readonly string[]>
  storage?(): StorageReport
}

/**
 * Returns the response of `/readyz`: 200 with warnings, or 503 with the reasons.
 * @param stopping whether the gateway accepts no new work.
 * @param query the query string. With `for=reads`, storage that accepts no changes is only a
 * warning. All gateways report such storage at the same time, and a load balancer that removed all
 * of them would stop reads as well.
 */
export async function readyAnswer(
  readiness: Readiness,
  stopping: boolean,
  query: string,
): Promise<{ readonly status: 200 | 503; readonly body: Record<string, unknown> }> {
  if (stopping) return { status: 503, body: { status: 'not ready', reasons: ['stopping'] } }
  const { stops, warnings } = readiness.storage?.() ?? { stops: [], warnings: [] }
  const unready = await readiness
    .unready()
    .catch((error: unknown) => [error instanceof Error ? error.message : String(error)])
  const readsOnly = new URLSearchParams(query).get('for') === 'reads'
  const reasons = readsOnly ? unready : [...unready, ...stops]
  if (reasons.length > 0) return { status: 503, body: { status: 'not ready', reasons } }
  const all = readsOnly ? [...stops, ...warnings] : warnings
  return { status: 200, body: { status: 'ready', ...(all.length > 0 && { warnings: all }) } }
}

/**
 * Creates the handlers of the status endpoints, by path.
 * @param stopping returns whether the gateway accepts no new work.
 */
export const openStatus = (
  world: World,
  stopping: () => boolean,
): Readonly<Record<string, Handler>> => ({
  '/healthz': async () => ({ status: 200, body: { status: 'alive' } }),
  '/readyz': async (incoming) => {
    const answer = await readyAnswer(world, stopping(), incoming.query)
    return answer.status === 200 ? answer : { ...answer, headers: { 'Retry-After': '1' } }
  },
  '/metrics': async (incoming) => {
    const { metrics } = world.settings
    if (metrics?.status_only) return refuse('not_found', undefined, 'There is no such path.')
    if (!mayReadMetrics(metrics, incoming.header('authorization'), (text) => world.hash(text)))
      return refuse('unauthorized', undefined, METRICS_REFUSED)
    return {
      status: 200,
      text: await world.metrics(),
      type: 'text/plain; version=0.0.4; charset=utf-8',
    }
  },
})
