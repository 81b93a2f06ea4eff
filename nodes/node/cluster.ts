/**
 * Opens what connects a node with the other nodes: the bus, the membership, and the interest in
 * entries. Also claims the id of the node. `shards.ts` joins the cluster.
 */
import { names } from '../../protocol/subjects.ts'
import { type Interest, openInterest } from '../host/cluster/interest.ts'
import { Membership } from '../host/cluster/membership.ts'
import { createNeighbours, listenAs, type Neighbours } from '../host/cluster/neighbours.ts'
import { type Claimed, claimOverBus, createInstance } from '../host/cluster/node-id.ts'
import type { Bus, Registry } from '../host/ports.ts'
import { createBus } from '../nats/bus.ts'
import { createRegistry } from '../nats/journal/registry.ts'
import { ensureCluster } from '../nats/server/provision.ts'
import { retryOperation } from '../nats/server/retry-operation.ts'
import { StartFault } from '../process/fault.ts'
import { systemClock } from '../system.ts'
import { version } from '../version.ts'
import type { NodeContext } from './context.ts'

export interface ClusterPorts {
  /** The records of nodes and of the owners of shards. */
  readonly registry: Registry
  readonly bus: Bus
  readonly membership: Membership
  readonly interest: Interest
}

/**
 * Opens the ports of the cluster.
 * @throws StartFault when another node is running with the id.
 */
export async function openCluster(node: NodeContext): Promise<ClusterPorts> {
  const { config, id, nats, onStop } = node
  const registry = createRegistry(nats, names.cluster, () => ensureCluster(nats, config.replicas))
  const bus: Bus = createBus(
    nats,
    () => membership.alone(),
    (subject) => interest.others.wants(subject),
  )
  const neighbours = createNeighbours(bus)
  const self = { id, roles: config.roles }
  const membership = new Membership(registry, systemClock, self, neighbours)
  const claimed = await claimId(node, registry, bus, neighbours)
  membership.useClaim(claimed)
  const parts = { membership, neighbours }
  const interest = openInterest(id, claimed.self.instance, systemClock, parts)
  const mayHaveMissed = () => {
    membership.noteJoin()
    interest.others.joined()
  }
  listenAs(bus, id, mayHaveMissed, (report) => interest.others.note(report))
  nats.onReconnect(mayHaveMissed)
  onStop(interest.own.start())
  return { registry, bus, membership, interest }
}

/** Claims the id of the node for this process. */
async function claimId(
  { config, id, nats, doomed }: NodeContext,
  registry: Registry,
  bus: Bus,
  neighbours: Neighbours,
): Promise<Claimed> {
  // A disconnected node does not answer, so its replacement may use its id.
  if (await neighbours.answers(id))
    throw new StartFault(
      `another node is running with the id ${id}: set a different BATON_NODE_ID for each node, or none`,
    )
  // Two nodes that start at the same time do not answer under the id yet, so the id is also claimed
  // in the registry.
  const self = createInstance({ version, started_at: systemClock.now() })
  const revision = await retryOperation(nats, 'the id of this node', () =>
    claimOverBus(bus, { id, roles: config.roles, self, registry, clock: systemClock }),
  )
  return { self, revision, superseded: doomed }
}
