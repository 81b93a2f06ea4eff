/**
 * The commit of a batch: one append to the shard's subject. After the append is acknowledged, the
 * position of the shard and the changed actors in memory refer to the new envelope.
 */
import { cursorOf, type PlacedEntry, placeEntries } from '../../../protocol/entry.ts'
import type { ActorInstance } from '../memory/actor-instance.ts'
import { encodeEnvelope, envelopeJson } from '../memory/codec.ts'
import type { OwnerContext } from '../shard-context.ts'
import type { Batch } from './batch.ts'
import { settleAppend } from './settle.ts'
import type { WriteGate } from './write-gate.ts'

export class Committer {
  readonly #context: OwnerContext
  readonly #gate: Pick<WriteGate, 'closed'>
  readonly #perform: (entry: PlacedEntry, characters: number) => void
  /** Number of the next envelope of this owner, which is part of its message id. */
  #counter = 0

  /** @param perform performs the effects of a committed entry, given the length of its JSON. */
  constructor(
    context: OwnerContext,
    gate: Pick<WriteGate, 'closed'>,
    perform: (entry: PlacedEntry, characters: number) => void,
  ) {
    this.#context = context
    this.#gate = gate
    this.#perform = perform
  }

  /**
   * Appends a batch and performs its effects. Returns the committed entries, or why the batch was
   * not stored (`settleAppend`).
   */
  async commit(batch: Batch): Promise<readonly PlacedEntry[] | 'conflict' | 'refused'> {
    const { deps, name, position, instances } = this.#context
    const { clock, measure } = deps
    const started = clock.elapsed()
    const id = `${deps.node}-${name}-${position.epoch}-${this.#counter++}`
    const head = { epoch: position.epoch, prev: position.sequence }
    const json = await envelopeJson(head, batch, id, deps.blobs)
    deps.recent?.keep(id, { v: 1, ...head, entries: batch.entries }, json)
    const data = await encodeEnvelope(json, batch.format)
    const sequence = await settleAppend(this.#context, this.#gate, data, id)
    if (typeof sequence === 'string') return sequence
    position.sequence = sequence
    measure.commit((clock.elapsed() - started) / 1000, batch.entries.length)
    for (const instance of batch.touched)
      if (instance.prev < 0) instance.prev = cursorOf(sequence, -1 - instance.prev)
    const now = clock.elapsed()
    const committed = placeEntries(sequence, batch)
    committed.forEach((one, i) => {
      const instance = batch.instances[i] as ActorInstance
      const characters = batch.sizes[i] as number
      instances.changed(instance, sequence, characters)
      instance.used = now
      this.#perform(one, characters)
    })
    return committed
  }
}
