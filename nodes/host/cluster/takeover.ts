/**
 * Takes over a shard: first appends a fence, so that the older owner's next append fails, and then
 * replays everything since the checkpoint.
 *
 * Invariants:
 * T0. A shard whose fence cannot be stored, or whose journal has missing or unreadable entries,
 *     refuses writes (`WriteGate`). It still answers reads, unless its state could not be read.
 * T1. The fence has a higher epoch than any envelope before it, also than those that were deleted
 *     with the beginning of the journal. A replay applies only envelopes before the fence.
 * T2. After the replay, every actor that changed since the `state` of the checkpoint is in memory.
 *     Every other actor is fully described by its snapshot, or by its entries up to its last event
 *     in the index of ended actors.
 * T3. The effects after the checkpoint's `sequence` are performed again under their original ids,
 *     except obsolete messages. Entries up to the checkpoint's `state` are read for their effects
 *     only, and are not applied to actors.
 */
import {
  type Address,
  type PlacedEntry,
  placeEntries,
  sequenceOf,
} from '../../../protocol/entry.ts'
import type { WriteStop } from '../deps.ts'
import type { Covered } from '../durability/checkpoint-store.ts'
import type { Checkpointer } from '../durability/checkpointer.ts'
import { fenceEnvelope, type WriteGate } from '../durability/write-gate.ts'
import { type Planned, planEffects } from '../effects/effects.ts'
import { actorKey, ForeignSnapshot, LostSnapshot, replayEntry } from '../memory/actor-instance.ts'
import { decodeEnvelope, envelopeText, parseEnvelope } from '../memory/codec.ts'
import { type JournalPosition, type Stored, UnreadableEntry } from '../ports.ts'
import type { OwnerContext, ShardContext } from '../shard-context.ts'

/**
 * A replay batch is full when it has this many envelopes, or this many bytes. The snapshots that a
 * batch needs are read concurrently.
 */
const REPLAY_BATCH = { most: 256, bytes: 16 * 1_048_576 }
/**
 * Number of attempts to append a fence after which the storage counts as full, even if the leader
 * has refused none of them.
 */
const MAX_FENCE_ATTEMPTS = 2
/**
 * Milliseconds after which a replay yields to other tasks, such as the renewal of the membership.
 * Without renewals, the node would be considered dead.
 */
const MAX_REPLAY_TURN_MS = 20

/**
 * Milliseconds before each further attempt to read a missing snapshot or value. A leader that is
 * still catching up may have neither the newest snapshot of an actor nor the previous one.
 * Replaying everything instead would take much longer (measured: 38 to 50 s for four shards with
 * 60,000 entries each, on a busy machine).
 */
const RETRY_DELAYS_MS = [500, 1500, 3000]

interface TakeoverParts {
  readonly checkpointer: Pick<
    Checkpointer,
    'load' | 'complete' | 'confirm' | 'reset' | 'storedEpoch'
  >
  readonly gate: Pick<WriteGate, 'latch'>
  /** Whether this node is still the recorded owner of the shard. */
  held(): Promise<boolean>
}

/**
 * Fences and replays a shard: sets its position and loads its actors. Returns the effects to
 * perform again, oldest first.
 * @param epoch minimum epoch of the fence. The fence also gets a higher epoch than any envelope in
 *   the journal.
 * @throws Error when another node took over the shard, or when the servers do not answer.
 */
export async function takeOver(
  context: OwnerContext,
  { checkpointer, gate, held }: TakeoverParts,
  epoch: number,
): Promise<Planned[]> {
  const { deps, partition, shard, name, instances, position } = context
  const { journal, random } = deps
  // A node that paused after it wrote the ownership record may have fenced a newer owner. It must
  // not serve, because the newer owner's reads would become stale.
  const assertHeld = async (): Promise<void> => {
    if (!(await held())) throw new Error(`shard ${name} was taken over by another node`)
  }
  const last = await journal.last(partition, shard).catch(async (error: unknown) => {
    if (!(error instanceof UnreadableEntry)) throw error
    gate.latch({ code: 'journal_damaged', reason: error.message }, true)
    return 'unreadable' as const
  })
  if (last === 'unreadable') {
    position.epoch = epoch
    position.sequence = (await journal.position(partition)).last
    await assertHeld()
    return []
  }
  // Without an envelope, the shard is new, or the beginning of the journal was deleted.
  const before = last
    ? parseEnvelope(envelopeText(last.data)).epoch
    : await checkpointer.storedEpoch()
  if (before > 0) instances.noteTakeover()
  position.epoch = Math.max(epoch, before + 1)
  position.sequence = last?.sequence ?? 0
  const stopped = deps.stopped?.(partition)
  if (stopped) gate.latch(stopped)
  const retained = await journal.position(partition)
  const checkpoint = await checkpointer.load(retained.first <= 1)
  const id = `${deps.node}-${name}-${position.epoch}-takeover-${[...random.bytes(6)].join('')}`
  const stop = damageOf(context, checkpoint, retained) ?? stopped
  const prev = last ? last.sequence : checkpoint.state
  const fenced = stop ?? (await appendFence(context, id, prev))
  if ('code' in fenced) gate.latch(fenced)

  let pending: Planned[] = []
  try {
    pending = await replayWithRetries(
      context,
      checkpointer,
      checkpoint,
      retained.first,
      'code' in fenced ? undefined : fenced.sequence,
    )
    await checkpointer.confirm(true)
  } catch (error) {
    if (!(error instanceof JournalHole || error instanceof UnreadableEntry)) throw error
    gate.latch({ code: 'journal_damaged', reason: error.message }, true)
  }
  await assertHeld()
  return pending
}

/**
 * Appends the fence. When the leader refuses it, or answers requests but stores nothing in two
 * attempts, the storage counts as full and the shard serves reads only.
 * @param prev the shard's last envelope before the fence, also if it was deleted with the beginning
 *   of the journal.
 * @throws Error when another owner wrote first, or the outcome is unknown.
 */
async function appendFence(
  context: ShardContext,
  id: string,
  prev: number,
): Promise<{ readonly sequence: number } | WriteStop> {
  const { deps, partition, shard, name } = context
  const { journal } = deps
  const { sequence, epoch } = context.position
  for (let attempt = 1; ; attempt++) {
    const outcome = await journal.append(partition, shard, fenceEnvelope(epoch, prev), sequence, id)
    if (typeof outcome === 'object') return outcome
    if (outcome !== 'conflict') {
      const last = await journal.last(partition, shard)
      if (last?.message_id === id) return { sequence: last.sequence }
      if (
        (last?.sequence ?? 0) === sequence &&
        (outcome === 'refused' || attempt >= MAX_FENCE_ATTEMPTS)
      )
        return { code: 'storage_full', reason: 'the NATS servers reject writes' }
      if ((last?.sequence ?? 0) === sequence) continue
    }
    throw new Error(`the fence of shard ${name} was not stored (${outcome})`)
  }
}

/**
 * Detects missing entries without reading the journal. Returns a `WriteStop` if sequences are
 * missing between the first and last entry of the journal, or if the last entry of the shard
 * precedes entries that the checkpoint covers. A deliberate deletion of the beginning of the
 * journal causes neither.
 */
function damageOf(
  { partition, name, position }: ShardContext,
  { state }: Covered,
  { missing = 0, first, last }: JournalPosition,
): WriteStop | undefined {
  const stop = (reason: string): WriteStop => ({ code: 'journal_damaged', reason })
  if (missing > 0)
    return stop(
      `${missing} entries of journal ${partition} are missing between ${first} and ${last}`,
    )
  if (position.sequence < state && state >= first)
    return stop(
      `shard ${name} ends at ${position.sequence}, but its checkpoint covers entries up to ${state}`,
    )
  return undefined
}

/** Thrown when the journal lacks entries that it must contain. */
class JournalHole extends Error {}

/**
 * Replays what the checkpoint does not cover, or everything when a snapshot remains missing or has
 * an unknown format.
 * @throws UnreadableEntry when an entry remains unreadable.
 */
async function replayWithRetries(
  context: OwnerContext,
  checkpointer: TakeoverParts['checkpointer'],
  checkpoint: Covered,
  first: number,
  fence: number | undefined,
): Promise<Planned[]> {
  const { deps, name, instances } = context
  const { clock, log } = deps
  for (let attempt = 0; ; attempt++) {
    try {
      await checkpointer.complete()
      return await replayFrom(context, checkpoint, first, fence)
    } catch (error) {
      const isUnreadable = error instanceof UnreadableEntry
      const isLost = error instanceof LostSnapshot && (checkpoint.state > 0 || first > 1)
      if (!isUnreadable && !isLost) throw error
      const pause = error instanceof ForeignSnapshot ? undefined : RETRY_DELAYS_MS[attempt]
      if (pause === undefined && isUnreadable) throw error
      if (pause === undefined && first > 1)
        throw new JournalHole(
          `the journal begins at ${first}, and stored state of shard ${name} is missing`,
          { cause: error },
        )
      if (pause === undefined) {
        log.warn(
          { event: 'shard_full_replay_started', err: error, shard: name },
          'snapshot missing; replaying the full journal',
        )
        instances.clear()
        await checkpointer.reset()
        return replayFrom(context, { sequence: 0, state: 0 }, first, fence)
      }
      if (isUnreadable)
        log.warn(
          { event: 'shard_entry_unreadable', err: error, shard: name },
          'journal entry unreadable; retrying',
        )
      else
        log.warn(
          { event: 'shard_snapshot_missing', err: error, shard: name },
          'snapshot missing; retrying',
        )
      await new Promise<void>((again) => clock.later(pause, again))
      instances.clear()
    }
  }
}
/**
 * Replays the envelopes after the checkpoint and before the fence, if there is one.
 * @param first the first sequence that the journal still contains.
 */
async function replayFrom(
  context: OwnerContext,
  { sequence: checkpoint, state }: Covered,
  first: number,
  fence: number | undefined,
): Promise<Planned[]> {
  const { deps, partition, shard, name, instances, position } = context
  const { journal, blobs, log, clock } = deps
  const pending: Planned[] = []
  let prev: number | undefined
  let count = 0
  const started = clock.elapsed()
  let turn = started
  const pause = async (): Promise<void> => {
    if (clock.elapsed() - turn < MAX_REPLAY_TURN_MS) return
    await new Promise<void>((later) => clock.later(0, later))
    turn = clock.elapsed()
  }
  const entries = journal.read(partition, shard, checkpoint + 1)
  for await (const some of inBatches(entries, fence ?? Number.POSITIVE_INFINITY)) {
    const places: PlacedEntry[] = []
    for (const stored of some) {
      const envelope = await decodeEnvelope(stored.data, blobs)
      // Each envelope must follow the one that was read before it. The state must cover the
      // envelopes before the first one, also those that were deleted on purpose.
      const follows =
        prev === undefined
          ? envelope.prev <= checkpoint || (envelope.prev < first && envelope.prev <= state)
          : envelope.prev === prev
      if (!follows)
        throw new JournalHole(
          prev === undefined && envelope.prev < first
            ? `the journal begins at ${first}, and no stored state covers the entries of ` +
                `shard ${name} before it`
            : `entry ${envelope.prev} of shard ${name} is missing before ${stored.sequence}`,
        )
      prev = stored.sequence
      places.push(...placeEntries(stored.sequence, envelope))
      await pause()
    }
    const unstored = places.filter(({ cursor }) => sequenceOf(cursor) > state)
    await instances.load(actorsBegunBefore(unstored))
    for (const place of unstored) {
      const { entry } = place
      const instance =
        instances.loaded(entry) ??
        (entry.prev === 0 ? instances.fresh(entry) : await instances.get(entry))
      if (replayEntry(instance, place)) instances.changed(instance, sequenceOf(place.cursor))
      count++
      await pause()
    }
    for (const place of places) {
      pending.push(...planEffects(context, place))
      await pause()
    }
  }
  // A server that is no longer the leader, but has not noticed this yet, may have reported an
  // earlier end of the journal.
  if (prev === undefined ? position.sequence > checkpoint : prev !== position.sequence) {
    throw new Error(
      `journal: shard ${name} ends at ${prev ?? checkpoint}, but its last envelope is ${position.sequence}`,
    )
  }
  // The actor decides whether a message is obsolete, so it must be in memory.
  for (const { effect, from } of pending)
    if ('push' in effect && !instances.loaded(from)) await instances.get(from)
  const now = clock.now()
  for (const instance of instances.all())
    if (instance.actor.recover)
      instance.state = instance.actor.recover(instance.state as never, now)
  if (fence !== undefined) position.sequence = fence
  log.info(
    {
      event: 'shard_taken_over',
      shard: name,
      epoch: position.epoch,
      checkpoint,
      state,
      replayed: count,
      ms: Math.round(clock.elapsed() - started),
    },
    'shard taken over',
  )
  return pending
}

/** Yields the envelopes before sequence `end`, in batches. */
async function* inBatches(
  stored: AsyncIterable<Stored>,
  end: number,
): AsyncGenerator<readonly Stored[], void> {
  let some: Stored[] = []
  let bytes = 0
  for await (const one of stored) {
    if (one.sequence >= end) break
    some.push(one)
    bytes += one.data.length
    if (some.length < REPLAY_BATCH.most && bytes < REPLAY_BATCH.bytes) continue
    yield some
    some = []
    bytes = 0
  }
  if (some.length > 0) yield some
}
/** Returns the listed actors that already had events before their first entry in the list. */
function actorsBegunBefore(places: readonly PlacedEntry[]): Address[] {
  const found = new Map<string, Address | undefined>()
  for (const { entry } of places) {
    const key = actorKey(entry)
    if (!found.has(key)) found.set(key, entry.prev === 0 ? undefined : entry)
  }
  return [...found.values()].flatMap((address) => address ?? [])
}
