/**
 * Reads the entries of one actor from the journal. Each entry contains the cursor of the previous
 * event of its actor (`Entry.prev`), so the entries are read backwards from the last one, one
 * envelope at a time. Concurrent reads share envelopes, because actors that are needed together
 * often ended together.
 */
import {
  type Address,
  lastCursor,
  type PlacedEntry,
  placeEntries,
  sequenceOf,
} from '../../../protocol/entry.ts'
import type { HostDeps } from '../deps.ts'
import { actorKey } from './actor-instance.ts'
import { decodeEnvelope } from './codec.ts'

/** Maximum number of decoded envelopes in memory. */
const MAX_ENVELOPES = 8

/** Thrown when a required entry is missing, because the beginning of the journal was deleted. */
class Deleted extends Error {}

export class ActorHistory {
  readonly #deps: Pick<HostDeps, 'journal' | 'blobs' | 'log'>
  readonly #partition: number
  /** The envelopes that were read last, by sequence. */
  readonly #envelopes = new Map<number, Promise<readonly PlacedEntry[]>>()

  constructor(deps: Pick<HostDeps, 'journal' | 'blobs' | 'log'>, partition: number) {
    this.#deps = deps
    this.#partition = partition
  }
  /**
   * Returns the entries of an actor after its event at the cursor `since`, or all entries if
   * `since` is 0, oldest first. Returns none if one of the entries was deleted on purpose together
   * with the beginning of the journal.
   * @param cursors possible cursors of the actor's last event, highest first. The first of them at
   *   which the actor really has an event is used.
   * @throws Error when the journal does not answer, or an envelope is missing.
   */
  async of(address: Address, cursors: readonly number[], since: number): Promise<PlacedEntry[]> {
    const key = actorKey(address)
    try {
      for (const last of cursors) {
        if (last <= since) break
        // If the actor has no entry at this cursor, the cursor belongs to another actor with the
        // same hash.
        const found = await this.#entries(key, last, since)
        if (found.length > 0) return found.reverse()
      }
    } catch (error) {
      if (!(error instanceof Deleted)) throw error
      this.#deps.log.warn(
        { event: 'actor_entries_deleted', err: error, kind: address.kind, id: address.id },
        'entries of an ended actor were deleted from the journal',
      )
    }
    return []
  }
  /** Removes all envelopes from the cache. Called when no read is in progress. */
  clear(): void {
    this.#envelopes.clear()
  }
  async #entries(key: string, last: number, since: number): Promise<PlacedEntry[]> {
    const found: PlacedEntry[] = []
    for (let cursor = last; cursor > since; ) {
      const places = await this.#envelope(sequenceOf(cursor))
      const place = places.find((one) => lastCursor(one) === cursor && actorKey(one.entry) === key)
      if (!place) break
      found.push(place)
      cursor = place.entry.prev
    }
    return found
  }
  #envelope(sequence: number): Promise<readonly PlacedEntry[]> {
    const known = this.#envelopes.get(sequence)
    if (known) return known
    const reading = this.#read(sequence)
    this.#envelopes.set(sequence, reading)
    reading.catch(() => this.#envelopes.delete(sequence))
    for (const oldest of this.#envelopes.keys()) {
      if (this.#envelopes.size <= MAX_ENVELOPES) break
      this.#envelopes.delete(oldest)
    }
    return reading
  }
  async #read(sequence: number): Promise<readonly PlacedEntry[]> {
    const { journal, blobs } = this.#deps
    const stored = await journal.at(this.#partition, sequence)
    if (stored) return placeEntries(sequence, await decodeEnvelope(stored.data, blobs))
    const message = `entry ${sequence} of journal ${this.#partition} is missing`
    const { first } = await journal.position(this.#partition)
    throw sequence < first ? new Deleted(message) : new Error(message)
  }
}
