/**
 * Starts the roles of a node that use its shards and the cluster, from the inside out: views, the
 * executor, hosts of environments, and the parts that accept connections from outside.
 */
import { type Directory, openDirectory } from '../../gateway/directory.ts'
import type { Readiness } from '../../gateway/http/status.ts'
import type { World } from '../../gateway/ports.ts'
import type { Envelope } from '../../protocol/entry.ts'
import { firstSignInLink } from '../commands/sign-in-link.ts'
import type { Host } from '../host/host.ts'
import type { Recent } from '../host/memory/recent.ts'
import type { Blobs, Bus, Journal } from '../host/ports.ts'
import type { NodeContext } from '../node/context.ts'
import { serveStatus } from '../observe/status.ts'
import type { Guard } from '../outbound/guard.ts'
import { portFault, urlOf } from '../process/port-fault.ts'
import type { Installed } from '../storage/installation.ts'
import { systemClock } from '../system.ts'
import { openGateway, receiveMail } from './edge.ts'
import type { Embedder } from './embed.ts'
import type { ViewConnectionTerms } from './view-connection.ts'

/** The parts of a node that its roles use. */
export interface RoleParts extends NodeContext {
  /** The connections of threads of views, in a process without shards. */
  readonly connection: ViewConnectionTerms
  readonly installed: Installed
  readonly world: World
  readonly host: Host
  readonly journal: Journal
  readonly blobs: Blobs
  readonly bus: Bus
  readonly guard: Guard
  /** Requests embeddings; undefined if no embedding model is configured. */
  readonly embedder: Embedder | undefined
  /** As in `startViews`. */
  readonly recent: Recent<Envelope> | undefined
  readonly texts: Recent<string>
  readonly readiness: Readiness
}

/** What the roles of a node serve. */
export interface ServedRoles {
  /** URL of the node's gateway; absent when the node has no gateway. */
  readonly url?: string
  /** Base URL of `/healthz`, `/readyz` and `/metrics` on the status port, if the node uses one. */
  readonly status?: string
  /** Port on which the node accepts e-mail; absent when it accepts none. */
  readonly mail_port?: number
  /** Address of the console; absent when the node has no gateway. */
  readonly console?: string
  /**
   * Returns the sign-in link of the first start (`firstSignInLink`); absent when the node has no
   * gateway.
   */
  signInLink?(): Promise<string | undefined>
  /**
   * Makes the node report that it is not ready, although it still serves requests, so that load
   * balancers send new requests elsewhere.
   */
  leave(): void
}

/**
 * Starts the roles of a node.
 * @throws StartFault with a remedy when a role cannot start.
 */
export async function startRoles(parts: RoleParts): Promise<ServedRoles> {
  const { config, world, onStop } = parts
  // A view that is far behind leaves little time for other work, so views start after shards.
  if (config.roles.includes('views')) await startViewRole(parts)
  const hasGateway = config.roles.includes('gateway')
  const hasExecutor = config.roles.includes('executor')
  const directory = hasGateway || hasExecutor ? openDirectory(world) : undefined
  if (directory) onStop(async () => directory.close())
  if (directory && hasExecutor) await startExecutor(parts, directory)
  const status = await startStatus(parts)
  const ofStatus = status && { status: status.url }
  if (!directory || !hasGateway) {
    await startHosts(parts)
    return { ...ofStatus, leave: () => status?.leave() }
  }
  const gateway = await startGateway(parts, directory)
  return {
    ...gateway,
    ...ofStatus,
    leave: () => {
      status?.leave()
      gateway.leave()
    },
  }
}

async function startViewRole(parts: RoleParts): Promise<void> {
  const { config, host, recent, embedder } = parts
  const { journal, texts, blobs, bus, log, metrics, doomed } = parts
  const hasConnections = config.view_threads && !config.roles.includes('shards')
  const { startViews } = await import('./views.ts')
  const stop = await startViews({
    ...{ journal, texts, blobs, bus, log, metrics, doomed },
    node: parts.world.node,
    data: config.data,
    organization: parts.installed.organization,
    partitions: config.partitions,
    end: (partition) => host.end(partition),
    ...(recent && { recent }),
    ...(hasConnections && { connection: parts.connection }),
    clock: systemClock,
    stale: config.timing.stale * 1000,
    ...(embedder && { embedder }),
  })
  parts.onStop(stop)
}

async function startExecutor(parts: RoleParts, directory: Directory): Promise<void> {
  const { config, world, bus, guard, onStop } = parts
  const { startExecutorRole } = await import('./executor.ts')
  const stop = startExecutorRole({
    ...{ world, bus, directory, guard },
    limit: config.executor_limit,
    models: config.models,
    env: process.env,
  })
  onStop(stop)
}

/**
 * Serves the status paths on the status port: for nodes without a gateway, and for metrics that are
 * served separately. A gateway serves these paths on its own port.
 */
async function startStatus({ config, readiness, metrics, onStop }: RoleParts) {
  const isSeparate = !config.roles.includes('gateway') || config.metrics.status_only
  if (!isSeparate || config.status_port === undefined) return undefined
  const status = await serveStatus(config.host, config.status_port, {
    ...readiness,
    metrics: metrics.text,
    access: config.metrics,
  })
  onStop(status.close)
  return status
}

/** Starts the host of environments. `own_gateway` is the URL of the node's gateway, if any. */
async function startHosts(parts: RoleParts, own_gateway?: string): Promise<void> {
  const { config, world, bus, guard, installed, onStop } = parts
  if (!config.roles.includes('hosts')) return
  const { startHostsRole } = await import('./hosts.ts')
  const installation = installed.organization
  const given = { config, world, bus, guard, installation, ...(own_gateway && { own_gateway }) }
  onStop(await startHostsRole(given))
}

/** Starts the gateway with everything that needs its URL or its world: e-mail, hosts, console. */
async function startGateway(parts: RoleParts, directory: Directory) {
  const { config, world, onStop } = parts
  const mail = config.mail && (await receiveMail(config.mail, world))
  if (mail) onStop(() => mail.stop())
  const gateway = await openGateway(world, directory)
  const port = await gateway
    .listen(config.host, config.port)
    .catch(async () => Promise.reject(await portFault(config.host, config.port)))
  onStop(() => gateway.stop())
  const url = urlOf(config, port)
  await startHosts(parts, url)
  const console = config.console.sessions.origin ?? url
  return {
    url,
    console,
    signInLink: () => firstSignInLink(world, console),
    ...(mail && { mail_port: mail.port }),
    leave: () => gateway.leave(),
  }
}
