/**
 * Detects inconsistent copies of several journals, which can occur because the copies are made one
 * after the other. An actor remembers the last effect that it applied from each shard. The copy of
 * the source shard's journal must contain the entry that caused this effect. Otherwise the restored
 * source shard would assign the same position to another effect, and the actor would drop that
 * effect as a repeat.
 */
import { decodeEnvelope } from '../host/memory/codec.ts'
import type { Blobs, Journal } from '../host/ports.ts'

interface Copy {
  readonly partition: number
  readonly from: number
  readonly last: number
}

/**
 * Returns whether the copy of one partition may contain the effect of an entry that the copy of
 * another partition lacks.
 * @param copies for each partition, its last sequence before any copy began, and the last sequence
 *   that its copy is certain to contain.
 */
export async function hasCrossingEffect(
  journal: Journal,
  blobs: Blobs,
  shards: number,
  copies: readonly Copy[],
): Promise<boolean> {
  for (const { partition, from } of copies) {
    for (let shard = 0; shard < shards; shard++) {
      for await (const { data } of journal.read(partition, shard, from + 1)) {
        for (const { command } of (await decodeEnvelope(data, blobs)).entries) {
          const [, source, cursor] = /^e:(\d+)\.\d+:(\d+)\./.exec(command.id) ?? []
          const held = copies.find(
            (copy) => String(copy.partition) === source && copy.partition !== partition,
          )
          if (held && Math.floor(Number(cursor) / 1000) > held.last) return true
        }
      }
    }
  }
  return false
}
