/**
 * The memory of an agent: schemas, limits, events and internal commands. A memory consists of
 * entries, each under a key. A feed lists the changes to entries without their content. Saving over
 * HTTP and saving by the agent itself are the same operation.
 */
import { type Static, Type } from 'typebox'
import { Closed, JsonObject, Timestamp } from '../common.ts'
import type { Event } from '../entry.ts'

/**
 * Limits of a memory. `entries`: number of unpinned entries. `pinned`: number of pinned entries.
 * `metadata`: length of the metadata as JSON. Lengths are in characters.
 */
export const memoryLimits = {
  key: 256,
  content: 16_384,
  summary: 140,
  metadata: 16_384,
  entries: 1000,
  pinned: 1000,
} as const
/** Time for which the feed retains a change, in milliseconds: 30 days. */
export const MEMORY_RETENTION = 30 * 86_400_000

export const MemoryKind = Type.Enum(['fact', 'preference', 'episode', 'summary'])
export type MemoryKind = Static<typeof MemoryKind>
const KEY = /^[A-Za-z0-9._:-]{1,256}$/
/** Whether a text can be the key of an entry. */
export const isMemoryKey = (text: string): boolean => KEY.test(text)

export const AgentMemory = Type.Object({
  agent_id: Type.String(),
  entry_count: Type.Integer(),
  counts_by_kind: Type.Record(Type.String(), Type.Integer()),
  updated_at: Type.Optional(Timestamp),
})
export type AgentMemory = Static<typeof AgentMemory>
export const MemoryEntry = Type.Object({
  key: Type.String(),
  kind: MemoryKind,
  entry_id: Type.String(),
  importance: Type.Integer({ minimum: 0, maximum: 100 }),
  pinned: Type.Boolean(),
  version: Type.Integer({ minimum: 1 }),
  created_at: Timestamp,
  updated_at: Timestamp,
  summary: Type.Optional(Type.String()),
  content: Type.Optional(Type.String()),
  metadata: Type.Optional(JsonObject),
  source_run_id: Type.Optional(Type.String()),
})
export type MemoryEntry = Static<typeof MemoryEntry>
export const MemoryChange = Type.Object({
  id: Type.String(),
  agent_id: Type.String(),
  memory_entry_id: Type.String(),
  memory_key: Type.String(),
  operation: Type.Enum(['created', 'updated', 'deleted']),
  version: Type.Integer({ minimum: 1 }),
  reason: Type.Enum(['remembered', 'api', 'soft_cap']),
  created_at: Timestamp,
  source_run_id: Type.Optional(Type.String()),
  actor_id: Type.Optional(Type.String()),
})
export type MemoryChange = Static<typeof MemoryChange>
export const SaveMemory = Closed({
  content: Type.String({ minLength: 1, maxLength: memoryLimits.content }),
  summary: Type.Optional(Type.String({ maxLength: memoryLimits.summary })),
  kind: Type.Optional(MemoryKind),
  metadata: Type.Optional(JsonObject),
  importance: Type.Optional(Type.Integer({ minimum: 0, maximum: 100 })),
  pinned: Type.Optional(Type.Boolean()),
})
export type SaveMemory = Static<typeof SaveMemory>
/** Returns the faults that schemas cannot detect in an entry. */
export const checkSaveMemory = ({ metadata }: SaveMemory) =>
  metadata && JSON.stringify(metadata).length > memoryLimits.metadata
    ? [
        {
          field: 'metadata',
          message: `must have at most ${memoryLimits.metadata} characters as JSON`,
        },
      ]
    : []

/** Events of a memory. `change` is the item that the feed lists. */
export type MemoryEvent =
  | (Event & {
      readonly type: 'memory.saved'
      readonly entry: MemoryEntry
      readonly change: MemoryChange
    })
  | (Event & { readonly type: 'memory.forgotten'; readonly change: MemoryChange })
  /** The agent was deleted with all its entries. */
  | (Event & { readonly type: 'memory.cleared' })

/**
 * Internal commands of a memory. `source_run_id`: id of the run in which the agent sends the
 * command.
 */
export type MemoryCommands = {
  /**
   * Saves an entry, with the same effect as saving over HTTP. Sent for a tool call of the agent.
   */
  'memory.remember': {
    input: SaveMemory & { readonly memory_key: string; readonly source_run_id?: string }
    reply: MemoryEntry
  }
  /**
   * Deletes an entry, with the same effect as deleting over HTTP. Sent for a tool call of the
   * agent. `forgotten`: whether the entry existed.
   */
  'memory.discard': {
    input: { readonly memory_key: string; readonly source_run_id?: string }
    reply: { readonly forgotten: boolean }
  }
  /** Deletes all entries. Sent by the project after the agent was deleted. */
  'memory.clear': { input: unknown; reply: undefined }
}
