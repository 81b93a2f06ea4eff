/**
 * The shards that this process serves, for senders in the same process. A call costs less than a
 * request over the bus, and cannot be lost.
 */
import type { ShardAnswer, ShardRequest } from './deps.ts'

export interface LocalShard {
  /**
   * Decides a command or answers a query.
   * @param answer called exactly once with the answer, possibly before `receive` returns. The
   *   answer is delayed while the storage does not respond.
   */
  receive(request: ShardRequest, answer: (answer: ShardAnswer) => void): void
}

export class LocalShards {
  readonly #shards = new Map<number, Map<number, LocalShard>>()

  find(partition: number, shard: number): LocalShard | undefined {
    return this.#shards.get(partition)?.get(shard)
  }
  /** Adds a shard that begins to be served, and returns a function that removes it. */
  add(partition: number, shard: number, local: LocalShard): () => void {
    const shards = this.#shards.get(partition) ?? new Map<number, LocalShard>()
    this.#shards.set(partition, shards.set(shard, local))
    return () => {
      if (shards.get(shard) === local) shards.delete(shard)
    }
  }
}
