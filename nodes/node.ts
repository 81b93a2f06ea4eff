/**
 * One node: a process with any of the roles, on one connection to NATS. Threads of views may have
 * further connections. A node starts from the inside out (shards, views, gateway) and stops from
 * the outside in, so that no part calls a part that has already stopped. The modules in `node/` and
 * `roles/` open its parts.
 */
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Log, StorageReport } from '../gateway/ports.ts'
import type { Envelope } from '../protocol/entry.ts'
import { roles } from './config/settings.ts'
import type { Config } from './config.ts'
import { LocalShards } from './host/local-shards.ts'
import { Recent } from './host/memory/recent.ts'
import { openLogs } from './nats/logs/store.ts'
import type { Access } from './nats/server/access.ts'
import { connectNats } from './nats/server/connect.ts'
import { retryOperation } from './nats/server/retry-operation.ts'
import { openCluster } from './node/cluster.ts'
import type { NodeContext } from './node/context.ts'
import { createHost, joinCluster } from './node/shards.ts'
import { openStores } from './node/stores.ts'
import { createNodeWorld } from './node/world.ts'
import { openNotifications } from './notify/open.ts'
import { createMetrics } from './observe/metrics.ts'
import { createGuard } from './outbound/guard.ts'
import { StartFault } from './process/fault.ts'
import { createEmbedder } from './roles/embed.ts'
import { type ServedRoles, startRoles } from './roles/start.ts'
import type { ViewConnectionTerms } from './roles/view-connection.ts'
import { type Installed, initialise } from './storage/installation.ts'
import { privateFile, privateFolder } from './storage/private.ts'
import type { EmbeddedStore } from './storage/watch.ts'
import { systemRandom } from './system.ts'
import { version } from './version.ts'

/** A running node. */
export interface RunningNode extends ServedRoles {
  readonly id: string
  readonly installed: Installed
  /** Returns the names (`<partition>.<shard>`) of the shards that the node serves. */
  owned(): readonly string[]
  /** Stops gracefully: finishes pending answers and releases the node's shards. */
  stop(): Promise<void>
}

/**
 * Starts a node.
 * @param access how the node reaches the NATS servers.
 * @param fail called at most once, when the node has to be stopped because its release cannot read
 *   stored data, or because another process has taken its id.
 * @param embedded the NATS server that this process runs; absent when the servers run elsewhere.
 * @throws StartFault with a remedy when the node cannot start.
 */
export async function startNode(
  config: Config,
  access: Access,
  log: Log,
  fail: (fault: StartFault) => void = () => {},
  embedded?: EmbeddedStore,
): Promise<RunningNode> {
  privateFolder(config.data)
  privateFile(join(config.data, 'root.key'))
  const id = config.node_id ?? `n${randomBytes(6).toString('hex')}`
  const role = roles.filter((role) => config.roles.includes(role)).join('-')
  const nats = await connectNats({ access, name: `baton ${id}`, log, role })
  const stops: (() => Promise<void>)[] = [() => nats.close()]
  const stop = async () => {
    for (const end of stops.splice(0).reverse()) await end()
  }
  let doomed: (error: Error) => void = () => {}
  const doom = new Promise<never>((_, reject) => {
    doomed = (error) => reject(new StartFault(error.message))
  })
  doom.catch(fail)
  const context: NodeContext = {
    ...{ config, id, nats, log, doomed },
    metrics: createMetrics(version),
    onStop: (end) => stops.push(end),
  }
  const connection = { node: id, access, name: `baton ${id} view`, role }
  const starting = startParts(context, { embedded, connection, doom })
  try {
    return { ...(await nats.permitted(starting)), stop }
  } catch (error) {
    await stop().catch(() => {})
    // `startParts` may still be starting parts. It soon fails, because the connection is closed.
    // The parts that it has started by then are stopped, too.
    const over = sleep(3000, undefined, { ref: false })
    await Promise.race([starting.then(stop, stop), over]).catch(() => {})
    throw error
  }
}

interface StartTerms {
  readonly embedded: EmbeddedStore | undefined
  /** The connections of threads of views. */
  readonly connection: ViewConnectionTerms
  /** Rejects when the node has to be stopped. */
  readonly doom: Promise<never>
}

/** Starts the parts of a node, from the inside out. */
async function startParts(
  node: NodeContext,
  { embedded, connection, doom }: StartTerms,
): Promise<Omit<RunningNode, 'stop'>> {
  const { config, id, nats, onStop } = node
  const hasRole = (role: Config['roles'][number]) => config.roles.includes(role)
  const stores = await openStores(node, embedded)
  const { installed, journal, watch, blobs } = stores
  const cluster = await openCluster(node)
  const { bus, membership } = cluster
  const logs = await openLogs(nats, bus, config.logs.stored, config.replicas)

  const warnings = [() => watch.warnings()]
  const storage = (): StorageReport => ({
    stops: membership.stops(),
    warnings: warnings.flatMap((read) => read()),
  })
  const { embedding } = config.models
  const embedder = embedding && createEmbedder(bus, embedding)
  const guard = createGuard(config.outbound_allow)
  const shared = { node, stores, cluster, local: new LocalShards(), random: systemRandom() }
  const { world, readiness } = createNodeWorld({ ...shared, logs, guard, embedder, storage })

  const notifications = hasRole('shards') ? await openNotifications(config, world) : undefined
  if (notifications) onStop(async () => notifications.close())
  const recent = config.view_threads ? undefined : new Recent<Envelope>((envelope) => envelope)
  const texts = new Recent<string>((_, json) => json)
  const host = createHost({
    ...shared,
    recent: hasRole('views') ? (recent ?? texts) : undefined,
    notify: notifications?.notify,
  })
  const verification = await joinCluster(node, stores, cluster, host, world)
  if (verification) warnings.push(() => verification.warnings())

  if (hasRole('shards') || hasRole('gateway'))
    await Promise.race([
      retryOperation(nats, 'the organization', () => initialise(world, installed)),
      doom,
    ])
  const served = await startRoles({
    ...node,
    ...{ connection, installed, world, host, journal, blobs, bus },
    ...{ guard, embedder, recent, texts, readiness },
  })
  return { id, installed, owned: () => host.owned(), ...served }
}
