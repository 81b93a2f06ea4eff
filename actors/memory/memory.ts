/**
 * The memory of one agent: the single writer of its entries. The id of the actor is the agent's id.
 *
 * Invariants:
 * M1. A key identifies at most one entry. Every change to an entry, including its deletion,
 *     increments its version.
 * M2. The state contains the fields that decisions need (keys, versions, importance), but never
 *     content. Content is in the journal and in views.
 * M3. There are at most `memoryLimits.entries` entries that are not pinned. The least important
 *     entries are evicted first, and among equals the least recently changed.
 */

import type { Api } from '../../protocol/api.ts'
import { timestamp } from '../../protocol/common.ts'
import type { Input } from '../../protocol/contract.ts'
import { refuse, refuseFields } from '../../protocol/errors.ts'
import { getOwn } from '../../protocol/lookup.ts'
import type { memory as rows } from '../../protocol/memory/rows.ts'
import {
  isMemoryKey,
  type MemoryChange,
  type MemoryCommands,
  type MemoryEntry,
  type MemoryEvent,
  memoryLimits,
  type SaveMemory,
} from '../../protocol/memory/schema.ts'
import type { Actor, Cause, Decision } from '../actor.ts'

type Rows = typeof rows
/** The fields of an entry that decisions need. */
interface Kept
  extends Pick<
    MemoryEntry,
    'entry_id' | 'version' | 'importance' | 'pinned' | 'created_at' | 'updated_at'
  > {}
export interface MemoryState {
  /** Entries, by `entryKey(key)`. */
  entries: Record<string, Kept>
  deleted?: true
}
type Decided<R> = Decision<MemoryEvent, R>
/** Why an entry changes: the reason, and the run that changes it, if any. */
interface Occasion {
  readonly reason: MemoryChange['reason']
  readonly source_run_id?: string | undefined
}

/** Prefixes a key, because clients choose keys and may choose `__proto__`. */
const entryKey = (key: string): string => `/${key}`
const keyOf = (place: string): string => place.slice(1)
const empty = (): MemoryState => ({ entries: {} })

function changeOf(
  cause: Cause,
  memory_key: string,
  { entry_id, version }: Pick<Kept, 'entry_id' | 'version'>,
  operation: MemoryChange['operation'],
  { reason, source_run_id }: Occasion,
): MemoryChange {
  return {
    id: cause.mint('memory_change'),
    agent_id: cause.self.id,
    memory_entry_id: entry_id,
    memory_key,
    operation,
    version,
    reason,
    created_at: timestamp(cause.at),
    ...(source_run_id !== undefined && { source_run_id }),
    ...(reason !== 'soft_cap' && { actor_id: cause.principal.id }),
  }
}

/**
 * Returns the events that evict other entries to make room for an entry that is saved without a
 * pin.
 */
function evicted({ entries }: MemoryState, key: string, cause: Cause): MemoryEvent[] {
  const loose = Object.entries(entries).filter(
    ([other, { pinned }]) => !pinned && other !== entryKey(key),
  )
  const over = loose.length + 1 - memoryLimits.entries
  if (over <= 0) return []
  return loose
    .sort(
      ([, a], [, b]) =>
        a.importance - b.importance ||
        (a.updated_at < b.updated_at ? -1 : a.updated_at > b.updated_at ? 1 : 0),
    )
    .slice(0, over)
    .map(([other, { entry_id, version }]) => ({
      type: 'memory.forgotten',
      change: changeOf(cause, keyOf(other), { entry_id, version: version + 1 }, 'deleted', {
        reason: 'soft_cap',
      }),
    }))
}

/** Saves an entry as a whole: omitted fields get their defaults. */
function save(
  state: MemoryState,
  memory_key: string,
  wish: SaveMemory,
  occasion: Occasion,
  cause: Cause,
): Decided<MemoryEntry> {
  if (state.deleted) return refuse('not_found')
  if (!isMemoryKey(memory_key))
    return refuseFields({
      field: 'memory_key',
      message: 'must be 1 to 256 letters, digits, dots, colons, hyphens or underscores',
      actual: memory_key.slice(0, 300),
    })
  const before = getOwn(state.entries, entryKey(memory_key))
  const { content, summary, kind = 'fact', metadata, importance = 50, pinned = false } = wish
  if (
    pinned &&
    !before?.pinned &&
    Object.values(state.entries).filter((entry) => entry.pinned).length >= memoryLimits.pinned
  )
    return refuse(
      'conflict',
      { limit: memoryLimits.pinned },
      `At most ${memoryLimits.pinned} entries of a memory can be pinned.`,
    )
  const now = timestamp(cause.at)
  const entry: MemoryEntry = {
    key: memory_key,
    kind,
    entry_id: before?.entry_id ?? cause.mint('memory_entry'),
    importance,
    pinned,
    version: (before?.version ?? 0) + 1,
    created_at: before?.created_at ?? now,
    updated_at: now,
    ...(summary && { summary }),
    content,
    ...(metadata && { metadata }),
    ...(occasion.source_run_id !== undefined && { source_run_id: occasion.source_run_id }),
  }
  const change = changeOf(cause, memory_key, entry, before ? 'updated' : 'created', occasion)
  // Replies are stored to answer repeated requests. This reply therefore omits the content, which
  // the gateway has just sent.
  const { content: _, summary: __, metadata: ___, ...reply } = entry
  const created = before ? reply : { ...reply, status_code: 201 }
  return {
    events: [
      { type: 'memory.saved', entry, change },
      ...(pinned ? [] : evicted(state, memory_key, cause)),
    ],
    reply: created,
  }
}

function forget(
  state: MemoryState,
  memory_key: string,
  occasion: Occasion,
  cause: Cause,
): readonly MemoryEvent[] {
  const before = getOwn(state.entries, entryKey(memory_key))
  return before
    ? [
        {
          type: 'memory.forgotten',
          change: changeOf(
            cause,
            memory_key,
            { entry_id: before.entry_id, version: before.version + 1 },
            'deleted',
            occasion,
          ),
        },
      ]
    : []
}

/** The actor of an agent's memory. */
export const memory: Actor<MemoryState, MemoryEvent, Api, 'memory', MemoryCommands> = {
  kind: 'memory',
  initial: empty,
  decide: {
    'memory.save': (state, { memory_key, ...wish }: Input<Rows['memory.save']>, cause) =>
      save(state, memory_key, wish, { reason: 'api' }, cause),
    'memory.forget': (state, { memory_key }, cause) => ({
      events: forget(state, memory_key, { reason: 'api' }, cause),
      reply: undefined,
    }),
    'memory.remember': (state, { memory_key, source_run_id, ...wish }, cause) =>
      save(state, memory_key, wish, { reason: 'remembered', source_run_id }, cause),
    'memory.discard': (state, { memory_key, source_run_id }, cause) => {
      const events = forget(state, memory_key, { reason: 'remembered', source_run_id }, cause)
      return { events, reply: { forgotten: events.length > 0 } }
    },
    'memory.clear': (state) => ({
      events: state.deleted ? [] : [{ type: 'memory.cleared' }],
      reply: undefined,
    }),
  },
  evolve: {
    'memory.saved': (
      state,
      { entry: { key, entry_id, version, importance, pinned, created_at, updated_at } },
    ) => {
      state.entries[entryKey(key)] = {
        entry_id,
        version,
        importance,
        pinned,
        created_at,
        updated_at,
      }
      return state
    },
    'memory.forgotten': (state, { change }) => {
      delete state.entries[entryKey(change.memory_key)]
      return state
    },
    'memory.cleared': () => ({ ...empty(), deleted: true }),
  },
  ended: ({ deleted }) => deleted === true,
}
