/**
 * `baton start` and `baton node`: each runs one process, with an embedded NATS server unless other
 * NATS servers are configured.
 */

import { setPriority } from 'node:os'
import { join } from 'node:path'
import type { Log } from '../../gateway/ports.ts'
import type { Config } from '../config.ts'
import type { Access } from '../nats/server/access.ts'
import { createIdentity } from '../nats/server/identity.ts'
import { findServer } from '../nats/server/install.ts'
import { type Server, startServer } from '../nats/server/server.ts'
import { type RunningNode, startNode } from '../node.ts'
import { createLog } from '../observe/log.ts'
import { StartFault } from '../process/fault.ts'
import { loadGateway } from '../roles/edge.ts'
import { ensureDataFolder } from '../storage/data-folder.ts'
import { createDiskGauge, keepCushion, releaseCushion } from '../storage/disk.ts'
import { ignoredOwnerKey, ownerKeyFile } from '../storage/owner-key.ts'
import type { EmbeddedStore } from '../storage/watch.ts'

/**
 * Matches the lines that nats-server logs when a write fails. The affected stream then stores
 * nothing until the server restarts.
 */
const FULL_DISK = /no space left on device|critical write error/i

/** Runs a NATS server and restarts it with the same port and store when it ends unexpectedly. */
async function keepServer(
  config: Config,
  log: Log,
): Promise<{ access: Access; store: EmbeddedStore; stop(): Promise<void> }> {
  const { path } = await findServer(
    {
      ...process.env,
      ...(config.nats_server !== undefined && { BATON_NATS_SERVER: config.nats_server }),
    },
    (line) => process.stderr.write(`${line}\n`),
  )
  // Every restart uses the same identity, so that the node can reconnect.
  const identity = createIdentity()
  let stopped = false
  let frozen = false
  let server: Server
  const data = join(config.data, 'nats')
  releaseCushion(data)
  const start = async (port: number): Promise<Server> => {
    server = await startServer({
      binary: path,
      data,
      port,
      sync: config.sync,
      identity,
      warn: (line) => {
        log.warn({ event: 'nats_server_warning', nats: line }, 'NATS server warning')
        if (FULL_DISK.test(line)) frozen = true
      },
      unexpected: (reason) => void again(reason),
    })
    // The supervisor needs the process id to stop the NATS server if this process dies.
    process.send?.({ server: server.pid })
    return server
  }
  const again = async (reason: string): Promise<void> => {
    log.error({ event: 'nats_server_restarting', reason }, 'NATS server restarting')
    for (let wait = 100; !stopped; wait = Math.min(wait * 2, 5000)) {
      try {
        await start(server.port)
        return
      } catch (error) {
        log.error({ event: 'nats_server_start_failed', err: error }, 'NATS server start failed')
        await new Promise((done) => setTimeout(done, wait))
      }
    }
  }
  const { access } = await start(config.nats_port)
  const gauge = createDiskGauge(join(data, 'store'), config.nats_max_store)
  return {
    store: {
      use: async () => {
        releaseCushion(data)
        keepCushion(data)
        return gauge()
      },
      frozen: () => frozen,
      restart: async () => {
        frozen = false
        // `unexpected` is not called after a requested stop, so the server is started again here.
        await server.stop()
        if (!stopped) await start(server.port).catch((error: Error) => again(error.message))
      },
    },
    access: {
      ...access,
      ...(config.nats_access.prefix !== undefined && { prefix: config.nats_access.prefix }),
    },
    stop: async () => {
      stopped = true
      await server.stop()
    },
  }
}

/**
 * Returns an error handler that throws a StartFault if the disk is full, and otherwise the error.
 */
const diskFull =
  ({ data }: Config) =>
  (error: NodeJS.ErrnoException): never => {
    if (error.code !== 'ENOSPC') throw error
    throw new StartFault(
      `The disk of ${data} is full, so nothing can be started. Free at least 10 MiB there, ` +
        'or move the folder to a larger disk and set BATON_DATA to its path.',
    )
  }

/**
 * Niceness of a process that has only the role `views`. Other nodes on the same machine take
 * precedence, because a fast answer to a command matters more than a view without lag.
 */
const BEHIND = 5
function standBack(config: Config, log: Log): void {
  if (config.roles.some((role) => role !== 'views')) return
  try {
    setPriority(BEHIND)
  } catch (error) {
    log.debug({ event: 'process_priority_unchanged', err: error }, 'process priority not changed')
  }
}

/**
 * Runs a node until a stop signal or a fatal error.
 * @param greet whether to print the node's address, the owner key or its location, and next steps.
 */
export async function runNode(config: Config, greet: boolean): Promise<void> {
  const log = createLog({
    level: config.log_level,
    ...(config.node_id !== undefined && { node: config.node_id }),
  })
  const started = performance.now()
  standBack(config, log)
  ensureDataFolder(config.data)
  if (config.roles.includes('gateway')) await loadGateway()
  const server =
    config.nats.length === 0 ? await keepServer(config, log).catch(diskFull(config)) : undefined
  let node: RunningNode | undefined
  let hurry: (() => void) | undefined
  const stop = async (signal: string) => {
    // While the node is stopping, another signal only ends the wait for load balancers.
    if (hurry) return hurry()
    const drain = signal === 'SIGTERM' && node?.url !== undefined ? config.drain : 0
    log.info({ event: 'node_stopping', signal, drain }, 'node stopping')
    node?.leave()
    await new Promise<void>((over) => {
      hurry = over
      setTimeout(over, drain)
    })
    const hard = setTimeout(() => process.exit(1), 30_000)
    await node?.stop()
    await server?.stop()
    clearTimeout(hard)
    process.exit()
  }
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => void stop(signal))
  try {
    const access = server?.access ?? { servers: config.nats, ...config.nats_access }
    const fail = (fault: StartFault) => {
      log.error({ event: 'node_failed', err: fault }, 'node failed; stopping')
      process.exitCode = 1
      void stop('fault')
    }
    node = await startNode(config, access, log, fail, server?.store)
  } catch (error) {
    await server?.stop()
    throw error
  }
  log.info(
    {
      event: 'node_started',
      node: node.id,
      url: node.url ?? node.status,
      ...(node.console !== undefined && { console: node.console }),
      roles: config.roles,
      ms: Math.round(performance.now() - started),
    },
    'node started',
  )
  const ignored = ignoredOwnerKey(config.root_key, node.installed)
  if (ignored !== undefined)
    log.warn({ event: 'owner_key_ignored', reason: ignored }, 'BATON_ROOT_KEY is ignored')
  if (greet) {
    // The link is printed only on a terminal, because redirected output may be stored and the link
    // grants access. Without a link, the greeting names the command that creates one.
    const link = process.stdout.isTTY ? await node.signInLink?.() : undefined
    process.stdout.write(greeting(node, config, { link, ignored }))
  }
  process.send?.('ready')
}

/** Returns a sentence about the location of the owner key of this installation. */
function whereOwnerKey({ data }: Config, installed: RunningNode['installed']): string {
  const { file, holds } = ownerKeyFile(data, installed)
  if (holds === 'the key') return `The owner key is in ${file}`
  return holds === 'another key'
    ? `The owner key in ${file} belongs to another installation: use the owner key of the system that was backed up`
    : 'The owner key is not stored on this machine: use the key that the first start printed'
}

/**
 * Returns the text that is printed when the node is ready.
 * @param more `link`: sign-in link of the first start; `ignored`: why BATON_ROOT_KEY is ignored.
 */
function greeting(
  node: RunningNode,
  config: Config,
  { link, ignored }: { readonly link: string | undefined; readonly ignored: string | undefined },
): string {
  const { url, console, installed } = node
  const key = installed.generated
  const lines = [
    url === undefined ? 'Baton is ready (this node has no gateway)' : `Baton is ready at ${url}`,
    ...(key
      ? [
          '',
          `  Owner key (shown once):  ${key.key}`,
          `  It is stored in:         ${key.file} (mode 0600)`,
        ]
      : config.root_key === undefined
        ? [`  ${whereOwnerKey(config, installed)}`]
        : []),
    ...(ignored === undefined ? [] : ['', `  Warning: ${ignored}`]),
    '',
    ...(link === undefined ? [] : [`  Sign in (valid once, for an hour):  ${link}`, '']),
    ...(url === undefined
      ? []
      : [
          `  Console:        ${console}`,
          ...(link === undefined ? ['  Sign in:        npm run baton -- sign-in-link'] : []),
          `  API reference:  ${url}/docs`,
          '  Try next:       npm run tour',
          '',
        ]),
  ]
  return `${lines.join('\n')}\n`
}
