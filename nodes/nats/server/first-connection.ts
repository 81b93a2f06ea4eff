/**
 * The first connection of a process to NATS. Each attempt dials only the configured servers. A
 * server of a cluster reports the addresses of the others before it checks the credentials, and the
 * client library dials reported servers without a wait. Until the first success, it would therefore
 * dial a cluster that refuses the credentials again and again, and report no failure.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import {
  type ConnectionOptions,
  connect,
  type NatsConnection,
  TimeoutError,
} from '@nats-io/transport-node'
import type { Log } from '../../../gateway/ports.ts'
import { StartFault } from '../../process/fault.ts'
import {
  type Access,
  authenticatorOf,
  lastingFailure,
  tlsOf,
  unreachableMessage,
} from './access.ts'
import { tlsRefusal } from './tls-refusal.ts'

/**
 * Milliseconds between pings, and the maximum number of unanswered pings. The client disconnects
 * from a stalled server after 3 s, before the other servers can elect a new leader (4 s at the
 * earliest). It therefore does not stay connected to a server that resumes without knowing of the
 * election.
 */
const PINGS = { pingInterval: 1000, maxPingOut: 2 } as const

/**
 * Default number of milliseconds that a process waits for the servers at startup, because they may
 * be starting at the same time.
 */
const STARTUP_TIMEOUT_MS = 4000
/** Minimum and maximum timeout of the connection to one server, in milliseconds. */
const MIN_ATTEMPT_MS = 500
const MAX_ATTEMPT_MS = 2000

/** Thrown when no configured server accepts the connection, and a server is part of a cluster. */
class Exhausted extends Error {}

/**
 * Connects to one of the configured servers. Servers that the cluster reports are dialed only after
 * the first success.
 * @throws Exhausted in place of the failure, if a server reported other servers.
 */
async function connectToConfigured(options: ConnectionOptions): Promise<NatsConnection> {
  let connected = false
  let exhausted: Exhausted | undefined
  try {
    const connection = await connect({
      ...options,
      reconnectToServer: (pool) => {
        if (connected) return null
        const configured = pool.find(({ gossiped }) => !gossiped)
        if (configured) return configured
        exhausted = new Exhausted('no server accepts the connection')
        throw exhausted
      },
    })
    connected = true
    return connection
  } catch (error) {
    throw exhausted ?? error
  }
}

/** Returns the failures of separate connections to the servers; none if one of them succeeds. */
async function failuresOf(
  servers: readonly string[],
  options: ConnectionOptions,
): Promise<readonly unknown[]> {
  const failures = await Promise.all(
    servers.map(async (server) => {
      try {
        const one = await connect({ ...options, servers: server, ignoreClusterUpdates: true })
        await one.close()
        return undefined
      } catch (error) {
        return error
      }
    }),
  )
  return failures.includes(undefined) ? [] : failures
}

/**
 * Connects to one of the servers. Waits for servers that are not running yet.
 * @param within milliseconds within which the connection must succeed; 4 s by default.
 * @throws StartFault when no server answers in time, or a server rejects the connection lastingly.
 */
export async function firstConnection(
  access: Access,
  { name, inboxPrefix }: { readonly name: string; readonly inboxPrefix: string },
  log: Log,
  within = STARTUP_TIMEOUT_MS,
): Promise<NatsConnection> {
  const started = performance.now()
  const left = () => within - (performance.now() - started)
  const { servers, credentials } = access
  const tls = tlsOf(access)
  for (let attempt = 0; ; attempt++) {
    const options: ConnectionOptions = {
      servers: [...servers],
      name,
      noEcho: true,
      inboxPrefix,
      maxReconnectAttempts: -1,
      reconnectTimeWait: 200,
      reconnectJitter: 200,
      ignoreAuthErrorAbort: true,
      ...(credentials && { authenticator: authenticatorOf(credentials) }),
      ...(tls && { tls }),
      ...PINGS,
      // An attempt dials the servers one after the other.
      timeout: Math.max(MIN_ATTEMPT_MS, Math.min(MAX_ATTEMPT_MS, left() / servers.length)),
      noAsyncTraces: true,
    }
    try {
      return await connectToConfigured(options)
    } catch (error) {
      const exhausted = error instanceof Exhausted
      const refusal =
        exhausted || error instanceof TimeoutError ? await tlsRefusal(access) : undefined
      const failures = refusal
        ? [refusal]
        : exhausted
          ? await failuresOf(servers, options)
          : [error]
      const lasting = failures.map((failure) => lastingFailure(access, failure)).find(Boolean)
      if (lasting !== undefined) throw new StartFault(lasting)
      if (left() <= 0) throw new StartFault(unreachableMessage(access, failures[0] ?? error))
      if (attempt % 10 === 0) log.info({ event: 'nats_waiting', servers }, 'waiting for NATS')
      await sleep(Math.max(0, Math.min(100 * 2 ** attempt, 1000, left())))
    }
  }
}
