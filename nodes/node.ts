/**
 * One node: a process with any of the roles, on one connection to NATS. Threads of views may have
 * further connections. A node starts from the inside out (shards, views, gateway) and stops from
 * the outside in, so that no part calls a part that has already stopped.
 */
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { actorKinds } from '../actors/kinds.ts'
import type { Log } from '../gateway/ports.ts'
import { names } from '../protocol/subjects.ts'
import { gatewaySettings } from './config/gateway.ts'
import { roles } from './config/settings.ts'
import type { Config } from './config.ts'
import { openInterest } from './host/cluster/interest.ts'
import { Membership } from './host/cluster/membership.ts'
import { createNeighbours, listenAs } from './host/cluster/neighbours.ts'
import { claimOverBus, createInstance } from './host/cluster/node-id.ts'
import type { HostDeps } from './host/deps.ts'
import { Host } from './host/host.ts'
import { LocalShards } from './host/local-shards.ts'
import { formatOf } from './host/memory/codec.ts'
import { Recent } from './host/memory/recent.ts'
import type { Bus } from './host/ports.ts'
import { createBlobs } from './nats/blobs.ts'
import { createBus } from './nats/bus.ts'
import { createJournal } from './nats/journal/journal.ts'
import { createRegistry } from './nats/journal/registry.ts'
import { createSnapshots } from './nats/journal/snapshots.ts'
import { openLogs } from './nats/logs/store.ts'
import type { Access } from './nats/server/access.ts'
import { accountUse } from './nats/server/account.ts'
import { connectNats } from './nats/server/connect.ts'
import { ensureCluster, ensureConfig, provision, retryOperation } from './nats/server/provision.ts'
import { openNotifications } from './notify/open.ts'
import { clusterReader } from './observe/cluster.ts'
import { createMetrics } from './observe/metrics.ts'
import { readiness } from './observe/ready.ts'
import { createGuard } from './outbound/guard.ts'
import { openOutbound } from './outbound/open.ts'
import { createClientAddress } from './process/client-address.ts'
import { StartFault } from './process/fault.ts'
import { createEmbedder } from './roles/embed.ts'
import { type ServedRoles, startRoles } from './roles/start.ts'
import { startSweeping } from './roles/sweep.ts'
import { verifyJournals } from './roles/verify.ts'
import { settleLocation } from './s3/location.ts'
import { openFiles } from './s3/open-files.ts'
import {
  type Installed,
  initialise,
  install,
  requireOwnInstallation,
} from './storage/installation.ts'
import { privateFile, privateFolder } from './storage/private.ts'
import type { Verification } from './storage/verify.ts'
import { type EmbeddedStore, type StorageWatch, watchStorage } from './storage/watch.ts'
import { systemClock, systemRandom } from './system.ts'
import { version } from './version.ts'
import { createWorld } from './world.ts'

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
  let doom: (error: Error) => void = () => {}
  const doomed = new Promise<never>((_, reject) => {
    doom = (error) => reject(new StartFault(error.message))
  })
  doomed.catch(fail)
  const stop = async () => {
    for (const end of stops.splice(0).reverse()) await end()
  }
  const begin = async (): Promise<RunningNode> => {
    const { partitions, shards, replicas } = config
    const registry = createRegistry(nats, names.config)
    const owner = { rootKey: config.root_key, keyPrefix: config.key_prefix, data: config.data }
    const retry = <T>(run: () => Promise<T>) => retryOperation(nats, 'the installation', run)
    // A start with another prefix creates no streams.
    await ensureConfig(nats, replicas)
    await retry(() => requireOwnInstallation(registry, owner))
    await provision(nats, { partitions, shards, replicas })
    const installed = await retry(() => install(registry, owner))
    const metrics = createMetrics(version)
    const journal = createJournal(nats, {
      appended: (seconds, bytes) => {
        metrics.append(seconds, bytes)
        storage.stored(bytes)
      },
      doubted: metrics.doubted,
      refused: (reason) => storage.refused(reason),
    })
    const storage: StorageWatch = await watchStorage({
      partitions: config.partitions,
      journal,
      clock: systemClock,
      log,
      metrics,
      account: () => accountUse(nats),
      ...(embedded && { embedded }),
    })
    stops.push(async () => storage.stop())
    const snapshots = createSnapshots(nats)
    const blobs = createBlobs(nats)
    const files = await openFiles(config.bucket, blobs, stops)
    // Nodes with other roles may not store files.
    if (config.roles.includes('shards') || config.roles.includes('gateway'))
      await retryOperation(nats, 'the place of the files', () =>
        settleLocation(config.bucket, blobs, files, installed.organization),
      )
    const cluster = createRegistry(nats, names.cluster, () => ensureCluster(nats, config.replicas))
    const bus: Bus = createBus(
      nats,
      () => membership.alone(),
      (subject) => interest.others.wants(subject),
    )
    const logs = await openLogs(nats, bus, config.logs.stored, config.replicas)
    const neighbours = createNeighbours(bus)
    const membership = new Membership(cluster, systemClock, { id, roles: config.roles }, neighbours)
    // A disconnected node does not answer, so its replacement may use its id.
    if (await neighbours.there(id))
      throw new StartFault(
        `another node is running with the id ${id}: set a different BATON_NODE_ID for each node, or none`,
      )
    // Two nodes that start at the same time do not answer under the id yet, so the id is also
    // claimed in the registry.
    const self = createInstance({ version, started_at: systemClock.now() })
    const revision = await retryOperation(nats, 'the id of this node', () =>
      claimOverBus(bus, { id, roles: config.roles, self, registry: cluster, clock: systemClock }),
    )
    membership.hold({ self, revision, superseded: doom })
    const parts = { membership, neighbours }
    const interest = openInterest(id, self.instance, systemClock, parts)
    const mayHaveMissed = () => {
      membership.unsure()
      interest.others.joined()
    }
    listenAs(bus, id, mayHaveMissed, (report) => interest.others.note(report))
    nats.onReconnect(mayHaveMissed)
    stops.push(interest.own.start())
    const local = new LocalShards()
    const shared = { bus, local, clock: systemClock, random: systemRandom(), log }
    const hasViews = config.roles.includes('views')
    const recent = config.view_threads ? undefined : new Recent((envelope) => envelope)
    const texts = new Recent((_, json) => json)
    const deps: HostDeps = {
      node: id,
      kinds: actorKinds(config),
      partitions: config.partitions,
      shards: config.shards,
      timing: config.timing,
      journal,
      snapshots,
      blobs,
      format: () =>
        formatOf(
          config.journal_format,
          !membership.alone() && interest.others.wantsMuch(),
          (format) => membership.allRead(format),
        ),
      files,
      ...shared,
      measure: metrics,
      turnEnd: nats.turnEnd,
      fresh: () => membership.fresh(),
      stopped: (partition) => storage.stopped(partition),
      damaged: (partition, reason) => storage.damaged(partition, reason),
      doomed: doom,
      ...(hasViews && { recent: recent ?? texts }),
    }
    const settings = gatewaySettings(config)
    const installation = { nats, membership, cluster, journal, bus, partitions, shards }
    const unready = readiness(installation)
    let verification: Verification | undefined
    const report = () => ({
      stops: membership.stops(),
      warnings: [...storage.warnings(), ...(verification?.warnings() ?? [])],
    })
    const { embedding } = config.models
    const embedder = embedding && createEmbedder(bus, embedding)
    const guard = createGuard(config.outbound_allow)
    const world = createWorld({
      node: id,
      settings,
      partitions: config.partitions,
      shards: config.shards,
      secret: Buffer.from(installed.secret, 'hex'),
      organization: installed.organization,
      ...shared,
      files,
      logs,
      ...(embedder && { embedder }),
      membership,
      interest: interest.own,
      count: metrics,
      unready,
      storage: report,
      cluster: clusterReader({
        ...installation,
        ...{ node: id, version, clock: systemClock, storage: report },
        bucket: config.bucket?.bucket,
      }),
      metrics: metrics.text,
      clientAddress: createClientAddress(config.trusted_proxies),
      ...openOutbound(guard, config, { ...deps, nats, installed, measure: metrics }),
    })
    const hasShards = config.roles.includes('shards')
    const notifications = hasShards ? await openNotifications(config, world) : undefined
    if (notifications) stops.push(async () => notifications.close())
    const host = new Host(
      notifications ? { ...deps, notify: notifications.notify } : deps,
      cluster,
      membership,
    )
    membership.report(() => [...storage.stops(), ...host.failures()])
    nats.onReconnect(metrics.reconnected)
    metrics.onLook(() => {
      metrics.standing(
        Object.fromEntries(roles.map((role) => [role, membership.members(role).length])),
        nats.connected(),
        membership.fresh(),
      )
      metrics.shardGauges(host.gauges())
    })
    const round = async () => {
      if (!hasShards) return
      await host.round()
      for (let p = 0; p < config.partitions; p++)
        metrics.shardsOwned(p, host.owned().filter((name) => name.startsWith(`${p}.`)).length)
    }
    await retryOperation(nats, 'the list of nodes', () => membership.start(round))
    stops.push(() => membership.stop())
    if (hasShards) {
      stops.push(() => host.stop(), startSweeping({ nats, files, world, clock: systemClock, host }))
      await retryOperation(nats, 'the ownership of shards', round)
      const verifying = verifyJournals(nats, host, journal, systemClock, { ...config, metrics })
      verification = verifying
      stops.push(() => verifying.stop())
    }
    if (hasShards || config.roles.includes('gateway'))
      await Promise.race([
        retryOperation(nats, 'the organization', () => initialise(world, installed)),
        doomed,
      ])
    const served = await startRoles({
      config,
      id,
      connection: { access, name: `baton ${id} view`, role },
      installed,
      world,
      host,
      journal,
      blobs,
      bus,
      log,
      metrics,
      guard,
      embedder,
      recent,
      texts,
      readiness: { unready, storage: report },
      doomed: doom,
      onStop: (end) => stops.push(end),
    })
    return { id, installed, owned: () => host.owned(), ...served, stop }
  }
  const begun = begin()
  try {
    return await nats.permitted(begun)
  } catch (error) {
    await stop().catch(() => {})
    // `begin` may still be starting parts. It soon fails, because the connection is closed. The
    // parts that it has started by then are stopped, too.
    const over = sleep(3000, undefined, { ref: false })
    await Promise.race([begun.then(stop, stop), over]).catch(() => {})
    throw error
  }
}
