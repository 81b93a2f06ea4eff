/** Creates the `World` of a node from its stores, its cluster and its ports to the outside. */

import type { Readiness } from '../../gateway/http/status.ts'
import type { LogStore } from '../../gateway/logs/ports.ts'
import type { World } from '../../gateway/ports.ts'
import { gatewaySettings } from '../config/gateway.ts'
import type { LocalShards } from '../host/local-shards.ts'
import type { Random } from '../host/ports.ts'
import { clusterReader } from '../observe/cluster.ts'
import { readiness } from '../observe/ready.ts'
import type { Guard } from '../outbound/guard.ts'
import { openOutbound } from '../outbound/open.ts'
import { createClientAddress } from '../process/client-address.ts'
import type { Embedder } from '../roles/embed.ts'
import { systemClock } from '../system.ts'
import { version } from '../version.ts'
import { createWorld } from '../world.ts'
import type { ClusterPorts } from './cluster.ts'
import type { NodeContext } from './context.ts'
import type { Stores } from './stores.ts'

interface NodeWorldParts {
  readonly node: NodeContext
  readonly stores: Stores
  readonly cluster: ClusterPorts
  readonly local: LocalShards
  readonly random: Random
  readonly logs: LogStore
  readonly guard: Guard
  /** Undefined if no embedding model is configured. */
  readonly embedder: Embedder | undefined
  readonly storage: NonNullable<Readiness['storage']>
}

export function createNodeWorld({ node, stores, cluster, ...parts }: NodeWorldParts): {
  readonly world: World
  readonly readiness: Readiness
} {
  const { config, id, nats, log, metrics } = node
  const { installed, journal, files } = stores
  const { registry, bus, membership, interest } = cluster
  const { local, random, logs, guard, embedder, storage } = parts
  const { partitions, shards } = config
  const installation = { nats, membership, cluster: registry, journal, bus, partitions, shards }
  const unready = readiness(installation)
  const clock = systemClock
  const world = createWorld({
    node: id,
    settings: gatewaySettings(config),
    partitions,
    shards,
    secret: Buffer.from(installed.secret, 'hex'),
    organization: installed.organization,
    ...{ bus, local, clock, random, log, files, logs, membership, unready, storage },
    ...(embedder && { embedder }),
    interest: interest.own,
    count: metrics,
    cluster: clusterReader({
      ...installation,
      ...{ node: id, version, clock, storage },
      bucket: config.bucket?.bucket,
    }),
    metrics: metrics.text,
    clientAddress: createClientAddress(config.trusted_proxies),
    ...openOutbound(guard, config, { nats, installed, clock, random, log, measure: metrics }),
  })
  return { world, readiness: { unready, storage } }
}
