/** The rows for the memory of agents. The schemas, limits and events are in `schema.ts`. */
import { Type } from 'typebox'
import { Closed, pageOf, paging } from '../common.ts'
import { command, query } from '../contract.ts'
import {
  AgentMemory,
  checkSaveMemory,
  MemoryChange,
  MemoryEntry,
  MemoryKind,
  SaveMemory,
} from './schema.ts'

const P = '/projects/:project/agents/:id/memory'
const read = { tag: 'memory', permission: 'project.view' } as const
const write = {
  tag: 'memory',
  permission: 'project.edit',
  to: { kind: 'memory', slot: 'id', prefix: 'agent' },
} as const
const Coverage = Type.Object({
  indexed_entries: Type.Integer(),
  total_entries: Type.Integer(),
  complete: Type.Boolean(),
})

export const memory = {
  'memory.get': query(`GET ${P}`, {
    ...read,
    summary: 'Number of the memory entries of an agent, in total and by kind',
    reply: AgentMemory,
    errors: ['not_found'],
  }),
  'memory.entries': query(`GET ${P}/entries`, {
    ...read,
    summary:
      'Memory entries of an agent: pinned entries first, then by importance; `query` finds ' +
      'entries that contain all of its words',
    query: Closed({
      query: Type.Optional(Type.String({ maxLength: 256 })),
      search_mode: Type.Optional(Type.Enum(['keyword', 'semantic', 'hybrid'])),
      kind: Type.Optional(MemoryKind),
      ...paging,
    }),
    reply: Type.Object({
      ...pageOf(MemoryEntry).properties,
      search_coverage: Type.Optional(Coverage),
    }),
    errors: ['not_found', 'memory_semantic_search_unavailable'],
  }),
  'memory.changes': query(`GET ${P}/changes`, {
    ...read,
    summary:
      'Changes of the memory, oldest first; `next_cursor` continues the list, also after an ' +
      'empty page',
    answeredBy: 'gateway',
    query: Closed({ after: Type.Optional(paging.cursor), limit: paging.limit }),
    reply: Type.Object({
      items: Type.Array(MemoryChange),
      has_more: Type.Boolean(),
      next_cursor: Type.String(),
    }),
    errors: ['not_found', 'memory_cursor_expired'],
  }),
  'memory.save': command(`PUT ${P}/entries/:memory_key`, {
    ...write,
    summary: 'Create or replace the memory entry of a key',
    body: SaveMemory,
    check: checkSaveMemory,
    reply: MemoryEntry,
    alsoStatus: [201],
    errors: ['not_found', 'conflict'],
  }),
  'memory.forget': command(`DELETE ${P}/entries/:memory_key`, {
    ...write,
    summary: 'Delete the memory entry of a key, if it exists',
    status: 204,
    errors: ['not_found'],
  }),
} as const
