/**
 * One connection to NATS per process. It reconnects for ever by itself; what was lost meanwhile is the business of those
 * who use it. The server does not echo: what this process publishes reaches its own listeners directly (bus.ts).
 */
import {
  jetstream,
  jetstreamManager,
  type JetStreamClient,
  type JetStreamManager,
} from '@nats-io/jetstream'
import { connect, type NatsConnection } from '@nats-io/transport-node'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Log } from '../../gateway/ports.ts'
import { Fault } from '../fault.ts'
import { createAsking, type Asking } from './asking.ts'
import { createPublisher, type Publish } from './publish.ts'
import { isAccepted, MINIMUM } from './version.ts'

export interface Nats {
  readonly connection: NatsConnection
  readonly streams: JetStreamClient
  readonly manager: JetStreamManager
  /** Asks and tells; for all that is not rare. */
  readonly ask: Asking['ask']
  readonly tell: Asking['tell']
  readonly sent: Asking['sent']
  /** Stores messages. */
  readonly publish: Publish
  /** Version of the server first connected to. */
  readonly version: string
  readonly log: Log
  /** Whether the connection stands now. */
  connected(): boolean
  /** Run after every reconnection; the returned function ends that. */
  onReconnect(run: () => void): () => void
  /** Send what is buffered and close; nothing works afterwards. */
  close(): Promise<void>
}
export interface ConnectOptions {
  readonly servers: readonly string[]
  /** Name that the server lists this connection under. */
  readonly name: string
  readonly log: Log
  /** Milliseconds to try until there is a first connection; 30 s by default. */
  readonly within?: number
}

/** Milliseconds that a question to JetStream may take: short, since during an election it goes unanswered and is asked again. */
export const QUESTION = 2000
/** Milliseconds that storing a value may take. */
export const STORING = 4000

/**
 * Milliseconds between pings, and how many may be unanswered. A server that stands still is left after 3 s, before others can
 * elect another leader in its place (4 s at the earliest): nobody asks it when it goes on and does not know yet.
 */
const PINGS = { pingInterval: 1000, maxPingOut: 2 } as const

async function firstConnection({
  servers,
  name,
  log,
  within = 30_000,
}: ConnectOptions): Promise<NatsConnection> {
  const started = Date.now()
  for (let attempt = 0; ; attempt++) {
    try {
      return await connect({
        servers: [...servers],
        name,
        noEcho: true,
        maxReconnectAttempts: -1,
        reconnectTimeWait: 200,
        reconnectJitter: 200,
        ignoreAuthErrorAbort: true,
        ...PINGS,
        timeout: 5000,
        noAsyncTraces: true,
      })
    } catch (error) {
      if (Date.now() - started > within) {
        throw new Fault(
          `No NATS server answers at ${servers.join(', ')} (${(error as Error).message}). Start it, or correct BATON_NATS.`,
        )
      }
      if (attempt % 10 === 0) log.info({ servers }, 'waiting for NATS')
      await sleep(Math.min(100 * 2 ** attempt, 2000))
    }
  }
}

/**
 * Connect.
 * @throws Fault when no server answers in time, or it is too old, or it has no JetStream.
 */
export async function connectNats(options: ConnectOptions): Promise<Nats> {
  const { log } = options
  const connection = await firstConnection(options)
  const refuseServer = async (message: string): Promise<never> => {
    await connection.close()
    throw new Fault(message)
  }
  const version = connection.info?.version ?? '0.0.0'
  const which = `The NATS server at ${connection.getServer()}`
  if (!isAccepted(version))
    return refuseServer(
      `${which} has version ${version}; ${MINIMUM} or newer is needed, because older ones can lose acknowledged data.`,
    )
  if (connection.info?.jetstream !== true)
    return refuseServer(
      `${which} runs without JetStream. Give its configuration a jetstream block, as in nats.conf.`,
    )

  const asking = createAsking(connection, log)
  let up = true
  const waiting = new Set<() => void>()
  const watch = async () => {
    for await (const status of connection.status()) {
      if (status.type === 'disconnect') {
        up = false
        asking.lost()
        log.warn({ server: status.server }, 'disconnected from NATS')
      } else if (status.type === 'reconnect') {
        up = true
        asking.found()
        log.info({ server: status.server }, 'connected to NATS again')
        for (const run of [...waiting]) run()
      } else if (status.type === 'error')
        log.warn({ error: status.error }, 'NATS reported an error')
      else if (status.type === 'slowConsumer')
        log.warn({ pending: status.pending }, 'a NATS subscription is not read fast enough')
    }
  }
  void watch()
  return {
    connection,
    streams: jetstream(connection, { timeout: STORING }),
    manager: await jetstreamManager(connection, { timeout: QUESTION, checkAPI: false }),
    ask: asking.ask,
    tell: asking.tell,
    sent: asking.sent,
    publish: createPublisher(asking.ask),
    version,
    log,
    connected: () => up && !connection.isClosed(),
    onReconnect: (run) => {
      waiting.add(run)
      return () => void waiting.delete(run)
    },
    close: async () => {
      if (connection.isClosed()) return
      await asking.sent()
      // Draining waits for the server's answer, which a server that is gone never gives.
      const drained = up ? connection.drain() : connection.close()
      await Promise.race([
        drained.catch(() => {}),
        sleep(2000, undefined, { ref: false }).then(() => connection.close()),
      ])
    },
  }
}
