/**
 * A connection to NATS. It reconnects indefinitely. The modules that use it handle the loss of
 * messages in the meantime. The server does not echo, because messages that are published over a
 * connection reach the listeners of its bus directly (`bus.ts`).
 */

import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import {
  type JetStreamClient,
  type JetStreamManager,
  jetstream,
  jetstreamManager,
} from '@nats-io/jetstream'
import { Empty, type NatsConnection, PermissionViolationError } from '@nats-io/transport-node'
import type { Log } from '../../../gateway/ports.ts'
import { StartFault } from '../../process/fault.ts'
import { Forbidden, isNoResponders } from '../failures.ts'
import { createPublisher, type Publish } from '../journal/publish.ts'
import { createRequestMux, type RequestMux } from '../request-mux.ts'
import { createTurnEnd, type SendingTurnEnd } from '../turn-end.ts'
import type { Access } from './access.ts'
import { firstConnection } from './first-connection.ts'
import { createNamespace, type Namespace } from './namespace.ts'
import { isAccepted, MINIMUM } from './version.ts'

export interface Nats {
  readonly connection: NatsConnection
  readonly streams: JetStreamClient
  readonly manager: JetStreamManager
  /** Maps the program's subjects, streams and buckets to their names on the servers. */
  readonly space: Namespace
  /**
   * Sends a request through the request mux. Frequent traffic must not use `connection.request`.
   */
  readonly ask: RequestMux['ask']
  /** Sends a request like `ask`, without a promise. */
  readonly request: RequestMux['request']
  readonly send: RequestMux['send']
  readonly flush: RequestMux['flush']
  /** Orders work at the end of each turn of the event loop, with respect to messages. */
  readonly turnEnd: SendingTurnEnd
  /** Stores a message in a stream. */
  readonly publish: Publish
  /** Version of the first server that the process connected to. */
  readonly version: string
  readonly log: Log
  /**
   * Returns the result of `work`. Rejects with `Forbidden` when the servers report a missing
   * permission before `work` is done. Startup and commands use this function, because a missing
   * permission would otherwise only cause timeouts.
   */
  permitted<T>(work: Promise<T>): Promise<T>
  connected(): boolean
  /** Registers a function that runs after every reconnection. The returned function removes it. */
  onReconnect(run: () => void): () => void
  /** Sends buffered messages and closes the connection, which cannot be used afterwards. */
  close(): Promise<void>
}
export interface ConnectOptions {
  readonly access: Access
  /** The connection's name in the server's list of connections. */
  readonly name: string
  readonly log: Log
  /**
   * The client's roles joined by `-`, as in `baton nats-permissions`; part of its reply subjects.
   */
  readonly role: string
  /** Milliseconds within which the first connection must succeed; 4 s by default. */
  readonly within?: number
  /**
   * Timeout in milliseconds of the requests of `manager`; `REQUEST_TIMEOUT_MS` by default. Callers
   * that do not repeat requests need a longer one.
   */
  readonly requestTimeout?: number
}

/**
 * Timeout of a JetStream request in milliseconds. It is short because requests stay unanswered
 * during a leader election and are repeated.
 */
export const REQUEST_TIMEOUT_MS = 2000
/** Timeout of a write to a stream or bucket, in milliseconds. */
export const WRITE_TIMEOUT_MS = 4000

/**
 * Milliseconds for which a JetStream domain may be unknown at startup, because a leaf node may
 * still be connecting to it.
 */
const DOMAIN_TIMEOUT_MS = 3000

/**
 * Connects to NATS and checks that the server can be used.
 * @throws StartFault when no server answers in time, or when the server rejects the credentials, is
 *   too old, or lacks JetStream, the JetStream domain or the TLS that the settings require.
 */
export async function connectNats(options: ConnectOptions): Promise<Nats> {
  const { log, access } = options
  const space = createNamespace(access, options.role)
  const connection = await firstConnection(
    access,
    { name: options.name, inboxPrefix: space.inbox },
    log,
    options.within,
  )
  const refuseServer = async (message: string): Promise<never> => {
    await connection.close()
    throw new StartFault(message)
  }
  const version = connection.info?.version ?? '0.0.0'
  const which = `The NATS server at ${connection.getServer()}`
  if (!isAccepted(version))
    return refuseServer(
      `${which} has version ${version}; ${MINIMUM} or newer is required, ` +
        'because older versions can lose acknowledged data. Upgrade it.',
    )
  if (access.domain === undefined && connection.info?.jetstream !== true)
    return refuseServer(
      `${which} runs without JetStream. Add a jetstream block to its configuration, ` +
        'as in nats.conf, or set BATON_NATS_DOMAIN to a domain that has JetStream.',
    )

  const turnEnd = createTurnEnd()
  const requestMux = createRequestMux(connection, space, log, turnEnd)
  const forbidden = createForbidden(log)
  let up = true
  const waiting = new Set<() => void>()
  const watch = async () => {
    for await (const status of connection.status()) {
      if (status.type === 'disconnect') {
        up = false
        requestMux.handleDisconnect()
        log.warn({ event: 'nats_disconnected', server: status.server }, 'NATS disconnected')
      } else if (status.type === 'reconnect') {
        up = true
        requestMux.handleReconnect()
        log.info({ event: 'nats_reconnected', server: status.server }, 'NATS reconnected')
        for (const run of [...waiting]) run()
      } else if (
        status.type === 'error' &&
        status.error instanceof PermissionViolationError &&
        status.error.operation === 'publish' &&
        space.isInbox(status.error.subject)
      ) {
        // The permission to answer a request (`allow_responses`) ends with the connection over
        // which the request arrived. The reply is then lost, and the requester repeats the request.
        log.debug(
          { event: 'nats_reply_dropped', subject: status.error.subject },
          'NATS reply dropped after a reconnect',
        )
      } else if (status.type === 'error' && status.error instanceof PermissionViolationError) {
        const reason = forbidden.tell(status.error)
        if (status.error.operation === 'publish')
          requestMux.failRequests(status.error.subject, reason)
      } else if (status.type === 'error')
        log.warn({ event: 'nats_error', error: status.error }, 'NATS connection error')
      else if (status.type === 'slowConsumer')
        log.warn({ event: 'nats_slow_consumer', pending: status.pending }, 'NATS slow consumer')
    }
  }
  void watch()
  if (access.domain !== undefined && !(await isDomainKnown(requestMux, space)))
    return refuseServer(
      `JetStream does not answer in the domain "${access.domain}" ` +
        `through the NATS server at ${connection.getServer()}: correct BATON_NATS_DOMAIN, ` +
        'or connect that server to the domain.',
    )
  const domain = access.domain === undefined ? {} : { domain: access.domain }
  return {
    connection,
    streams: jetstream(connection, { timeout: WRITE_TIMEOUT_MS, ...domain }),
    manager: await jetstreamManager(connection, {
      timeout: options.requestTimeout ?? REQUEST_TIMEOUT_MS,
      checkAPI: false,
      ...domain,
    }),
    space,
    permitted: (work) =>
      forbidden.race(
        work.then(async (done) => {
          // The server reports violations by earlier subscriptions and messages before it answers
          // the flush.
          await requestMux.flush()
          await connection.flush().catch(() => {})
          await nextTurn()
          return done
        }),
      ),
    ask: requestMux.ask,
    request: requestMux.request,
    send: requestMux.send,
    flush: requestMux.flush,
    turnEnd,
    publish: createPublisher(requestMux.ask),
    version,
    log,
    connected: () => up && !connection.isClosed(),
    onReconnect: (run) => {
      waiting.add(run)
      return () => void waiting.delete(run)
    },
    close: async () => {
      if (connection.isClosed()) return
      await requestMux.flush()
      // A drain waits for the server's answer, which a disconnected server never sends.
      const drained = up ? connection.drain() : connection.close()
      await Promise.race([
        drained.catch(() => {}),
        sleep(2000, undefined, { ref: false }).then(() => connection.close()),
      ])
    },
  }
}

/**
 * Whether JetStream answers in the domain. Any error except "no responders" counts as an answer.
 * The next request then reports this error.
 */
async function isDomainKnown({ ask }: RequestMux, { api }: Namespace): Promise<boolean> {
  for (const started = performance.now(); ; await sleep(100)) {
    try {
      await ask(`${api}.INFO`, Empty, undefined, REQUEST_TIMEOUT_MS)
      return true
    } catch (error) {
      if (!isNoResponders(error)) return true
      if (performance.now() - started > DOMAIN_TIMEOUT_MS) return false
    }
  }
}

/** Milliseconds within which the same missing permission is logged only once. */
const LOG_EVERY_MS = 60_000

/**
 * Handles permission violations, which the server reports separately from the requests that caused
 * them.
 */
function createForbidden(log: Log) {
  const waiting = new Set<(reason: Forbidden) => void>()
  const logged = new Map<string, number>()
  return {
    /**
     * Logs a reported violation and rejects all waiting work. Returns the error that names the
     * permission.
     */
    tell: (violation: PermissionViolationError): Forbidden => {
      const reason = new Forbidden(violation)
      const now = performance.now()
      for (const [message, at] of logged) if (now - at > LOG_EVERY_MS) logged.delete(message)
      if (!logged.has(reason.message)) {
        logged.set(reason.message, now)
        log.error(
          {
            event: 'nats_permission_missing',
            operation: violation.operation,
            subject: violation.subject,
            reason: reason.message,
          },
          'NATS permission missing',
        )
      }
      for (const refuse of [...waiting]) refuse(reason)
      return reason
    },
    race: async <T>(work: Promise<T>): Promise<T> => {
      let refuse: (reason: Forbidden) => void = () => {}
      const refused = new Promise<never>((_, reject) => {
        refuse = reject
      })
      waiting.add(refuse)
      return Promise.race([work, refused]).finally(() => waiting.delete(refuse))
    },
  }
}
