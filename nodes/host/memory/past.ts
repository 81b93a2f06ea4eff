/**
 * Reads the entries of one actor from the journal. Each entry names the previous event of its actor
 * (`Entry.prev`), so the entries are read backwards from the last one, one envelope at a time.
 */
import {
  type Address,
  lastCursor,
  type Placed,
  placed,
  sequenceOf,
} from '../../../protocol/entry.ts'
import type { HostDeps } from '../deps.ts'
import { actorKey } from './actor-instance.ts'
import { decode } from './codec.ts'

/**
 * Returns the entries of an actor after its event at the cursor `since`, or all entries if that is
 * 0, oldest first. Returns none if the beginning of the journal, with one of the entries, was
 * deleted on purpose.
 * @param cursors cursors of which the highest that is one of the actor's is that of its last event,
 *   highest first.
 * @throws Error when the journal does not answer, or an envelope is missing.
 */
export async function pastOf(
  deps: Pick<HostDeps, 'journal' | 'blobs' | 'log'>,
  partition: number,
  address: Address,
  cursors: readonly number[],
  since: number,
): Promise<readonly Placed[]> {
  const { journal, blobs, log } = deps
  const key = actorKey(address)
  let read: { readonly sequence: number; readonly places: readonly Placed[] } | undefined
  const placeAt = async (cursor: number): Promise<Placed | undefined | 'deleted'> => {
    const sequence = sequenceOf(cursor)
    if (read?.sequence !== sequence) {
      const stored = await journal.at(partition, sequence)
      if (!stored) {
        if (sequence < (await journal.position(partition)).first) return 'deleted'
        throw new Error(`entry ${sequence} of journal ${partition} is missing`)
      }
      read = { sequence, places: placed(sequence, await decode(stored.data, blobs)) }
    }
    return read.places.find(
      (place) => lastCursor(place) === cursor && actorKey(place.entry) === key,
    )
  }
  for (const last of cursors) {
    const found: Placed[] = []
    for (let cursor = last; cursor > since; ) {
      const place = await placeAt(cursor)
      if (place === 'deleted') {
        log.warn(
          { event: 'actor_entries_deleted', kind: address.kind, id: address.id, cursor },
          'entries of an ended actor were deleted from the journal',
        )
        return []
      }
      // Another actor has the same hash in the index.
      if (!place) break
      found.push(place)
      cursor = place.entry.prev
    }
    if (found.length > 0 || last <= since) return found.reverse()
  }
  return []
}
