/** Creates the shard host of a node, joins the cluster, and takes over the node's shards. */
import { actorKinds } from '../../actors/kinds.ts'
import type { World } from '../../gateway/ports.ts'
import { roles } from '../config/settings.ts'
import type { HostDeps } from '../host/deps.ts'
import { Host } from '../host/host.ts'
import { formatOf } from '../host/memory/codec.ts'
import { retryOperation } from '../nats/server/retry-operation.ts'
import { startSweeping } from '../roles/sweep.ts'
import { verifyJournals } from '../roles/verify.ts'
import type { Verification } from '../storage/verify.ts'
import { systemClock } from '../system.ts'
import type { ClusterPorts } from './cluster.ts'
import type { NodeContext } from './context.ts'
import type { Stores } from './stores.ts'

interface HostParts extends Pick<HostDeps, 'local' | 'random'> {
  readonly node: NodeContext
  readonly stores: Stores
  readonly cluster: ClusterPorts
  /** The newest envelopes, for the views of this process; undefined if it has no views. */
  readonly recent: HostDeps['recent'] | undefined
  /** Undefined when no notifications are sent. */
  readonly notify: HostDeps['notify'] | undefined
}

/** Creates the shard host. It owns no shards before `joinCluster`. */
export function createHost({ node, stores, cluster, local, random, ...parts }: HostParts): Host {
  const { config, id, nats, log, metrics } = node
  const { journal, watch, snapshots, blobs, files } = stores
  const { registry, bus, membership, interest } = cluster
  const { recent, notify } = parts
  const deps: HostDeps = {
    node: id,
    kinds: actorKinds(config),
    partitions: config.partitions,
    shards: config.shards,
    timing: config.timing,
    journal,
    snapshots,
    blobs,
    files,
    bus,
    local,
    clock: systemClock,
    random,
    log,
    measure: metrics,
    turnEnd: nats.turnEnd,
    format: () =>
      formatOf(
        config.journal_format,
        !membership.alone() && interest.others.wantsMuch(),
        (format) => membership.allRead(format),
      ),
    fresh: () => membership.fresh(),
    stopped: (partition) => watch.stopped(partition),
    damaged: (partition, reason) => watch.damaged(partition, reason),
    doomed: node.doomed,
    ...(recent && { recent }),
    ...(notify && { notify }),
  }
  const host = new Host(deps, registry, membership)
  membership.reportStops(() => [...watch.stops(), ...host.failures()])
  return host
}

/**
 * Joins the cluster. A node with the role `shards` also takes over the shards that are assigned to
 * it, and starts the work on their storage.
 * @returns the verification of the journals; undefined without the role `shards`.
 */
export async function joinCluster(
  node: NodeContext,
  { journal, files }: Stores,
  { membership }: ClusterPorts,
  host: Host,
  world: World,
): Promise<Verification | undefined> {
  const { config, nats, metrics, onStop } = node
  const hasShards = config.roles.includes('shards')
  reportStanding(node, membership, host)
  const round = async () => {
    if (!hasShards) return
    await host.round()
    for (let p = 0; p < config.partitions; p++)
      metrics.shardsOwned(p, host.owned().filter((name) => name.startsWith(`${p}.`)).length)
  }
  await retryOperation(nats, 'the list of nodes', () => membership.start(round))
  onStop(() => membership.stop())
  if (!hasShards) return undefined
  onStop(() => host.stop())
  onStop(startSweeping({ nats, files, world, clock: systemClock, host }))
  await retryOperation(nats, 'the ownership of shards', round)
  const { partitions } = config
  const verification = verifyJournals(nats, host, journal, systemClock, { partitions, metrics })
  onStop(() => verification.stop())
  return verification
}

/** Reports to the metrics how this node sees the cluster and its shards. */
function reportStanding(
  { nats, metrics }: NodeContext,
  membership: ClusterPorts['membership'],
  host: Host,
): void {
  nats.onReconnect(metrics.reconnected)
  metrics.onLook(() => {
    metrics.standing(
      Object.fromEntries(roles.map((role) => [role, membership.members(role).length])),
      nats.connected(),
      membership.fresh(),
    )
    metrics.shardGauges(host.gauges())
  })
}
