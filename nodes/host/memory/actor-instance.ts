/**
 * One actor in memory: its state, the commands that it remembers, and the extent of the changes
 * that no snapshot covers yet. Everything that determines the answer to a repeated command is in
 * the instance, and therefore in its snapshot.
 */
import { type AnyActor, evolve } from '../../../actors/actor.ts'
import {
  type Address,
  type Command,
  lastCursor,
  type PlacedEntry,
} from '../../../protocol/entry.ts'
import { type Refusal, refuse } from '../../../protocol/errors.ts'

/**
 * Maximum number of remembered commands without an idempotency key. A search (`LOOK_EVERY`) forgets
 * the oldest ones beyond this number.
 */
const MAX_UNKEYED = 256
/** Milliseconds for which commands with a client's idempotency key are remembered. */
const KEYED_MS = 24 * 3_600_000
/**
 * Maximum number of remembered commands. Beyond this number, a search forgets the oldest commands
 * with a key even before `KEYED_MS` has passed.
 */
const MAX_REMEMBERED = 10_000
/**
 * Number of commands between two searches for commands to forget. Searches are infrequent, because
 * each search visits all remembered commands.
 */
const LOOK_EVERY = 64

/** Placeholder for a reply that is computed again when its command is repeated. */
export const RECOMPUTED_REPLY = '\u0000anew'

interface Remembered {
  readonly reply: unknown
  readonly fingerprint?: string
  readonly at: number
}

export interface ActorInstance extends Address {
  readonly key: string
  readonly actor: AnyActor
  state: unknown
  /**
   * Cursor of the last event; negative, as in `Entry.prev`, in a batch that is not yet
   * acknowledged.
   */
  prev: number
  seen: Map<string, Remembered> | undefined
  /** Number of remembered commands at which the next search for commands to forget starts. */
  look: number
  /** The last effect applied per source shard: `[cursor, index]`. */
  taken: Map<string, readonly [number, number]> | undefined
  /** The source shards of effects whose commands this release does not know. */
  unknown: Set<string> | undefined
  /**
   * Sequence of the first envelope with entries that no stored snapshot covers; 0 if all are
   * covered.
   */
  dirty: number
  /** Total length in characters of the entries since the last snapshot. */
  grown: number
  /** Size of the last snapshot in bytes; 0 when there is no snapshot. */
  stored: number
  /** Number of entries since the last stored snapshot. */
  entries: number
  /** Last known revision of the stored snapshot; 0 if no snapshot is stored. */
  revision: number
  /** Time at which the actor entered memory, in monotonic milliseconds (`Clock.elapsed`). */
  readonly born: number
  /** Time at which the actor was last used, in monotonic milliseconds. */
  used: number
  /** Whether a snapshot of the actor is being written. */
  saving: boolean
}

export const actorKey = ({ project, kind, id }: Address): string => `${kind}/${project}/${id}`
/** Parses the key of an actor instance into its address. */
export function addressOf(key: string): { kind: string; project: string; id: string } {
  const [kind = '', project = '', ...id] = key.split('/')
  return { kind, project, id: id.join('/') }
}

export const newInstance = (address: Address, actor: AnyActor, now: number): ActorInstance => ({
  project: address.project,
  kind: address.kind,
  id: address.id,
  key: actorKey(address),
  actor,
  state: actor.initial(),
  prev: 0,
  seen: undefined,
  look: 0,
  taken: undefined,
  unknown: undefined,
  dirty: 0,
  grown: 0,
  stored: 0,
  entries: 0,
  revision: 0,
  born: now,
  used: now,
  saving: false,
})

/**
 * Returns the form in which a reply is remembered.
 * @param computed whether the reply was computed from the state.
 */
export const rememberedReply = (
  { actor }: ActorInstance,
  reply: unknown,
  computed: boolean,
): unknown =>
  actor.naturallyIdempotent ? undefined : computed && actor.replayReply ? RECOMPUTED_REPLY : reply
/** Returns the reply to a repeat of a remembered command. */
const replyToRepeat = ({ actor, state }: ActorInstance, { reply }: Remembered): unknown =>
  reply === RECOMPUTED_REPLY ? actor.replayReply?.(state as never) : (reply ?? undefined)

/**
 * Returns the answer to a repeat of a remembered command; undefined if the command is not
 * remembered. A different request under the same idempotency key is refused.
 */
export function answerToRepeat(
  instance: ActorInstance,
  { command_id, fingerprint }: Pick<Command, 'command_id' | 'fingerprint'>,
): { readonly reply: unknown } | Refusal | undefined {
  const known = instance.seen?.get(command_id)
  if (!known) return undefined
  return known.fingerprint !== undefined &&
    fingerprint !== undefined &&
    known.fingerprint !== fingerprint
    ? refuse(
        'idempotency_key_conflict',
        undefined,
        'This idempotency key was already used with a different request.',
      )
    : { reply: replyToRepeat(instance, known) }
}

/** Remembers a command's reply, and forgets the oldest commands beyond the limits. */
function remember(
  instance: ActorInstance,
  id: string,
  reply: unknown,
  at: number,
  fingerprint?: string,
): void {
  if (instance.actor.naturallyIdempotent) return
  const seen = (instance.seen ??= new Map())
  seen.set(id, {
    reply: reply === undefined ? null : reply,
    at,
    ...(fingerprint !== undefined && { fingerprint }),
  })
  if (seen.size <= MAX_UNKEYED || seen.size < instance.look) return
  let unkeyed = 0
  for (const known of seen.values()) if (known.fingerprint === undefined) unkeyed++
  for (const [old, known] of seen) {
    const keyed = known.fingerprint !== undefined
    if (keyed ? known.at + KEYED_MS < at || seen.size > MAX_REMEMBERED : unkeyed > MAX_UNKEYED) {
      seen.delete(old)
      if (!keyed) unkeyed--
    }
  }
  instance.look = seen.size + LOOK_EVERY
}

const EFFECT = /^e:(\d+\.\d+):(\d+)\.(\d+)$/
/**
 * Returns the id of an effect's command. The id consists of the shard and cursor of the event that
 * caused the effect, and the index of the effect within the effects of the event.
 */
export const effectId = (partition: number, shard: number, cursor: number, index: number): string =>
  `e:${partition}.${shard}:${cursor}.${index}`
/** Whether a command id is that of an effect (`effectId`). */
export const isEffectId = (commandId: string): boolean => EFFECT.test(commandId)
/** Whether an effect's command was applied before. Effects of one source arrive in order. */
export function alreadyTaken(instance: ActorInstance, commandId: string): boolean {
  const match = EFFECT.exec(commandId)
  const last = match && instance.taken?.get(match[1] ?? '')
  if (!match || !last) return false
  const [cursor, index] = [Number(match[2]), Number(match[3])]
  return cursor < last[0] || (cursor === last[0] && index <= last[1])
}
/**
 * Remembers that an actor does not know the command of an effect. The later effects of the same
 * source must wait until the shard has an owner that knows the command. If they were applied, that
 * owner would drop the unknown command as outdated (`alreadyTaken`).
 */
export function noteUnknown(instance: ActorInstance, commandId: string): void {
  const match = EFFECT.exec(commandId)
  if (match) (instance.unknown ??= new Set()).add(match[1] ?? '')
}
/**
 * Whether a command is an effect that must wait for an earlier effect from the same source
 * (`noteUnknown`).
 */
export function mustWait({ unknown }: ActorInstance, commandId: string): boolean {
  return unknown?.has(EFFECT.exec(commandId)?.[1] ?? '') ?? false
}
function take(instance: ActorInstance, commandId: string): void {
  const match = EFFECT.exec(commandId)
  if (match)
    (instance.taken ??= new Map()).set(match[1] ?? '', [Number(match[2]), Number(match[3])])
}

/** Thrown when some events of an actor are neither in its snapshot nor in the replay. */
export class LostSnapshot extends Error {}
/** Thrown when a snapshot has a format that this release cannot read. */
export class ForeignSnapshot extends LostSnapshot {}

/**
 * Applies a stored entry during replay. Returns false for an entry that the snapshot already
 * covers.
 * @throws LostSnapshot when events before the entry are missing.
 */
export function replayEntry(instance: ActorInstance, { cursor, entry }: PlacedEntry): boolean {
  if (entry.prev < instance.prev) return false
  if (entry.prev !== instance.prev)
    throw new LostSnapshot(
      `${instance.key} continues at ${entry.prev}, but its last event is ${instance.prev}`,
    )
  for (const event of entry.events)
    instance.state = evolve(instance.actor, instance.state, event, entry.origin.at)
  instance.prev = lastCursor({ cursor, entry })
  noteCommand(instance, entry.command.id, entry.reply, entry.origin.at, entry.command.fingerprint)
  return true
}
/**
 * Applies stored entries to an actor that is being loaded: those after its snapshot, or all of them
 * if it has none.
 * @param now Unix milliseconds at which the full duration of leases begins.
 * @throws LostSnapshot when entries are missing.
 */
export function replayPast(
  instance: ActorInstance,
  past: readonly PlacedEntry[],
  now: number,
): void {
  for (const place of past) replayEntry(instance, place)
  instance.entries += past.length
  const { actor } = instance
  if (actor.recover) instance.state = actor.recover(instance.state as never, now)
}
/** Records a command, so that repeating it is harmless. */
export function noteCommand(
  instance: ActorInstance,
  id: string,
  reply: unknown,
  at: number,
  fingerprint?: string,
): void {
  if (id.startsWith('e:')) take(instance, id)
  else remember(instance, id, reply, at, fingerprint)
}

interface Snapshot {
  readonly v: 1
  readonly state: unknown
  readonly prev: number
  readonly seen: readonly (readonly [string, Remembered])[]
  readonly taken: readonly (readonly [string, readonly [number, number]])[]
}
/**
 * Returns the stored form of an actor instance. Must be called only between commits, because a
 * state that is ahead of the journal must never be stored.
 */
export function snapshotOf(instance: ActorInstance): Uint8Array {
  const record: Snapshot = {
    v: 1,
    state: instance.state,
    prev: instance.prev,
    seen: [...(instance.seen ?? [])],
    taken: [...(instance.taken ?? [])],
  }
  return Buffer.from(JSON.stringify(record))
}
/** Parses a stored snapshot. Returns undefined when its format is unknown to this release. */
function stored(data: Uint8Array): Snapshot | undefined {
  const record = JSON.parse(new TextDecoder().decode(data)) as Snapshot
  return record.v === 1 ? record : undefined
}
/** Returns the cursor of the last event that a snapshot covers; −1 when its format is unknown. */
export const coveredCursor = (data: Uint8Array): number => stored(data)?.prev ?? -1
/**
 * Fills a fresh actor instance from its snapshot.
 * @param now Unix milliseconds at which the full duration of leases begins.
 * @throws ForeignSnapshot when the format is unknown, because the actor must not be mistaken for an
 *   actor without events.
 */
export function restoreInstance(instance: ActorInstance, data: Uint8Array, now: number): void {
  const record = stored(data)
  if (!record)
    throw new ForeignSnapshot(`the snapshot of ${instance.key} was written by another release`)
  instance.state = instance.actor.recover
    ? instance.actor.recover(record.state as never, now)
    : record.state
  instance.prev = record.prev
  if (record.seen.length > 0) instance.seen = new Map(record.seen)
  if (record.taken.length > 0) instance.taken = new Map(record.taken)
  instance.stored = data.byteLength
}
