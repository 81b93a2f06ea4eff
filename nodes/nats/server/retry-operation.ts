/** Retries operations that NATS servers cannot perform for some time. */
import { setTimeout as sleep } from 'node:timers/promises'
import { ClosedConnectionError } from '@nats-io/transport-node'
import { StartFault } from '../../process/fault.ts'
import { codeOf, codes, errorText, findViolation } from '../failures.ts'
import type { Nats } from './connect.ts'

/** Default number of milliseconds for which a failing operation is retried. */
export const RETRY_TIMEOUT_MS = 60_000
/**
 * Milliseconds for which a backup or a restore retries an operation, because the servers may be
 * electing a leader.
 */
export const ELECTION_TIMEOUT_MS = 30_000
/**
 * Retries a failing operation, because the servers may be electing a leader or lack peers.
 * @param what subject of the error message, such as the name of a stream.
 * @param within milliseconds for which the operation is retried.
 * @throws StartFault with advice on what to check, when the operation still fails after this time
 *   or cannot succeed at all.
 * @throws ClosedConnectionError when the connection is closed.
 */
export async function retryOperation<T>(
  nats: Pick<Nats, 'log'>,
  what: string,
  run: () => Promise<T>,
  within = RETRY_TIMEOUT_MS,
): Promise<T> {
  const started = performance.now()
  let loggedAt = started
  for (let attempt = 0; ; attempt++) {
    try {
      return await run()
    } catch (error) {
      if (error instanceof StartFault || error instanceof ClosedConnectionError) throw error
      const missing = findViolation(error)
      if (missing) throw missing
      if (codeOf(error) === codes.notEnabledForAccount)
        throw new StartFault(
          'JetStream is not enabled for the NATS account of this process: set JetStream limits for that account.',
        )
      const now = performance.now()
      if (now - started > within) {
        const check =
          'Check that all NATS servers of the cluster are running ' +
          'with JetStream and free space, and that there are at least BATON_REPLICAS of them.'
        throw new StartFault(`${what} cannot be set up: ${errorText(error)}. ${check}`)
      }
      if (now - loggedAt > 3000) {
        loggedAt = now
        nats.log.info(
          { event: 'nats_cluster_waiting', what, reason: errorText(error) },
          'waiting for the NATS cluster',
        )
      }
      await sleep(Math.min(100 * 2 ** attempt, 1000))
    }
  }
}
