/**
 * Computes which node should own each shard, as a pure function of the live nodes. `membership.ts`
 * decides which nodes are live.
 */
import { hashOf } from '../../../protocol/subjects.ts'

export type RoleName = 'gateway' | 'shards' | 'views' | 'executor' | 'hosts'

export interface Member {
  readonly id: string
  readonly roles: readonly RoleName[]
}

/**
 * Returns the node that should own each shard, by rendezvous hashing (Thaler and Ravishankar 1996)
 * with a bound on the load (Mirrokni, Thorup and Zadimoghaddam 2018). The owner is the node with
 * the highest hash of (node, shard) among the nodes with capacity left. Every node computes the
 * same result. No node has more than its share, rounded up.
 */
export function assignShards(
  nodes: readonly Member[],
  shards: readonly string[],
): ReadonlyMap<string, string> {
  const room = new Map(nodes.map(({ id }) => [id, Math.ceil(shards.length / nodes.length)]))
  const owners = new Map<string, string>()
  for (const shard of shards) {
    let best: { id: string; weight: number } | undefined
    for (const [id, left] of room) {
      const weight = mixed(hashOf(`${shard}@${id}`))
      if (left > 0 && (!best || weight > best.weight || (weight === best.weight && id > best.id)))
        best = { id, weight }
    }
    if (!best) break
    owners.set(shard, best.id)
    room.set(best.id, (room.get(best.id) ?? 1) - 1)
  }
  return owners
}

/**
 * The finalizer of MurmurHash3. Node names often differ in only one character, so every input bit
 * must affect the whole hash.
 */
function mixed(hash: number): number {
  const once = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  const twice = Math.imul(once ^ (once >>> 13), 0xc2b2ae35)
  return (twice ^ (twice >>> 16)) >>> 0
}
