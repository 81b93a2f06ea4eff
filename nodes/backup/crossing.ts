/**
 * Journals of several partitions are copied one after the other. An actor remembers the last effect it took from each shard; in
 * a copy, that effect must be there too, or its shard would use the same place again and be taken for a repeat.
 */
import { decode } from '../host/memory/codec.ts'
import type { Blobs, Journal } from '../host/ports.ts'

interface Copy {
  readonly partition: number
  readonly from: number
  readonly last: number
}

/**
 * Whether one copy may hold the consequence of something that another copy lacks.
 * @param copies of each partition its last sequence before anything was copied, and the last one that its copy surely holds.
 */
export async function crosses(
  journal: Journal,
  blobs: Blobs,
  shards: number,
  copies: readonly Copy[],
): Promise<boolean> {
  for (const { partition, from } of copies) {
    for (let shard = 0; shard < shards; shard++) {
      for await (const { data } of journal.read(partition, shard, from + 1)) {
        for (const { command } of (await decode(data, blobs)).entries) {
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
