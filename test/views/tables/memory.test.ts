/**
 * The feed of memory changes. Changes older than the retention period are not returned, and cursors
 * that would need them are rejected.
 */

import Database from 'better-sqlite3'
import t from 'tap'
import { defineActor } from '../../../actors/actor.ts'
import { memory } from '../../../actors/memory/memory.ts'
import { isRefusal } from '../../../protocol/errors.ts'
import { MEMORY_RETENTION, type MemoryChange } from '../../../protocol/memory/schema.ts'
import { migrate } from '../../../views/files/migrate.ts'
import { Store } from '../../../views/store.ts'
import { applyAgents } from '../../../views/tables/agents/agents.ts'
import { applyMemory, memoryChanges, memoryEntries } from '../../../views/tables/memory/memory.ts'
import { given, START } from '../../support/given.ts'

const DAY_MS = 86_400_000
function world() {
  const db = new Database(':memory:')
  migrate(db)
  const store = new Store(db)
  const project = store.numberOf('prj_1')
  const origin = (at: number) => ({ at, principal: { type: 'system' as const, id: 'x' } })
  const agent = {
    id: 'agt_1',
    principal_id: 'agt_1',
    name: 'A',
    status: 'active' as const,
    created_at: '2026-01-01T00:00:00.000Z',
    updated_at: '2026-01-01T00:00:00.000Z',
  }
  applyAgents(store, {
    cursor: 1,
    entry: {
      project: 'prj_1',
      kind: 'project',
      id: 'prj_1',
      command: { id: 'c', name: 'n' },
      origin: origin(START),
      events: [{ type: 'agent.created', id: 'agt_1', agent } as never],
      prev: 0,
    },
  })
  let scene = given(defineActor(memory))
  let cursor = 1000
  return {
    save: (day: number, memory_key = 'k', content = 'x') => {
      const at = START + day * DAY_MS
      const outcome = scene.when('memory.save', { memory_key, content }, { at })
      scene = outcome
      applyMemory(store, {
        cursor: (cursor += 1000),
        entry: {
          project: 'prj_1',
          kind: 'memory',
          id: 'agt_1',
          command: { id: 'c', name: 'n' },
          origin: origin(at),
          events: outcome.events,
          prev: 0,
        },
      })
      return cursor
    },
    found: (query: string) => {
      const answer = memoryEntries(store, project, { id: 'agt_1', query })
      return isRefusal(answer) ? answer.refused : answer.items.map(({ key }) => key)
    },
    changes: (day: number, after?: number) => {
      const answer = memoryChanges(
        store,
        project,
        { id: 'agt_1', limit: 100, ...(after !== undefined && { after }) },
        START + day * DAY_MS,
      )
      return isRefusal(answer)
        ? answer.refused
        : { versions: answer.items.map(({ version }: MemoryChange) => version), last: answer.last }
    },
  }
}

t.test('changes are stored for the retention period', async (t) => {
  const { save, changes } = world()
  const days = MEMORY_RETENTION / DAY_MS
  const [first, second] = [save(0), save(20)]
  t.same(changes(days), { versions: [1, 2], last: second }, 'both are kept to the last day')
  t.same(changes(days + 1), { versions: [2], last: second })
  t.same(changes(days + 1, 0), 'memory_cursor_expired', 'the first change was deleted')
  t.same(
    changes(days + 1, first),
    { versions: [2], last: second },
    'a reader that had read it misses nothing',
  )
  const third = save(days + 25)
  t.same(changes(days + 25), { versions: [3], last: third })
  t.same(changes(days + 25, first), 'memory_cursor_expired')
  t.same(changes(days + 25, second), { versions: [3], last: third })
  t.same(
    changes(3 * days),
    { versions: [], last: third },
    'an old memory gives a cursor all the same',
  )
  t.same(changes(3 * days, third), { versions: [], last: third })
  t.same(changes(3 * days, second), 'memory_cursor_expired')
})

t.test('entries are found regardless of letter case and Unicode form', async (t) => {
  const { save, found } = world()
  save(0, 'a', 'Οδός Cafe\u0301 İzmir')
  save(0, 'b', 'ΟΔΌΣ CAFÉ IZMIR')
  for (const query of ['οδόσ', 'ΟΔΌΣ', 'caf\u00e9', 'CAFE\u0301', 'izmir', 'İZMİR'])
    t.same(found(query).toString(), 'b,a', query)
})
