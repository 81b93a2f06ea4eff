/** Stores and lists the current loops, and finds loops by name. */
import { parseTimestamp } from '../../../protocol/common.ts'
import type { PlacedEntry } from '../../../protocol/entry.ts'
import { type Refusal, refuse } from '../../../protocol/errors.ts'
import type { LoopEvent } from '../../../protocol/loops/events.ts'
import { type Loop, pausedLoop } from '../../../protocol/loops/schema.ts'
import { patch } from '../../../protocol/patch.ts'
import { equalityConditions } from '../../conditions.ts'
import { newestRecords, recordWith } from '../../newest.ts'
import type { Page, Paging } from '../../page.ts'
import { changeRecord, recordCache } from '../../records.ts'
import type { Store } from '../../store.ts'

const loopCache = (store: Store) =>
  recordCache<Loop>(store, 'loops', () => ({
    insert: (id, { project, created_at }, loop) =>
      store.run(
        'INSERT INTO loops (id, project, name, status, agent, created_at, record) VALUES (?, ?, ?, ?, ?, ?, ?)',
        id,
        project,
        loop.name,
        loop.status,
        loop.agent_id ?? null,
        created_at,
        JSON.stringify(loop),
      ),
    update: (id, loop) =>
      store.run(
        'UPDATE loops SET name = ?, status = ?, agent = ?, record = ? WHERE id = ?',
        loop.name,
        loop.status,
        loop.agent_id ?? null,
        JSON.stringify(loop),
        id,
      ),
    remove: (id) => store.run('DELETE FROM loops WHERE id = ?', id),
  }))

/**
 * Applies an entry of a loop. Later entries of a loop whose first entry was trimmed from the
 * journal are ignored.
 */
export function applyLoop(store: Store, { entry }: PlacedEntry): void {
  const rows = loopCache(store)
  const project = store.numberOf(entry.project)
  const { id } = entry
  const change = (next: (loop: Loop) => Loop | undefined): void =>
    changeRecord(rows, project, id, next)
  for (const event of entry.events as readonly LoopEvent[]) {
    if (event.type === 'loop.created') {
      const { loop } = event
      rows.set(id, {
        project,
        created_at: parseTimestamp(loop.created_at) ?? entry.origin.at,
        record: loop,
        stored: false,
      })
    } else if (event.type === 'loop.updated') change((loop) => patch(loop, event.loop))
    else if (event.type === 'loop.auto_paused') change((loop) => pausedLoop(loop, event.updated_at))
    else if (event.type === 'run.admitted' || event.type === 'run.lined_up')
      change((loop) => ({ ...loop, last_run_at: event.last_run_at }))
    else if (event.type === 'loop.deleted') change(() => undefined)
  }
}
const find = (store: Store, project: number, id: string): Loop | undefined =>
  recordWith(store, 'loops', project, id)

const missing: Refusal = refuse(
  'not_found',
  { resource: 'loop' },
  'There is no such loop in this project.',
)
/**
 * Returns an object with the id of a loop: the loop whose id is `name`, or else the only loop whose
 * name is `name`. The object is empty if no loop or more than one loop matches.
 */
export function loopNamed(store: Store, project: number, name: string): { readonly id?: string } {
  const known = find(store, project, name)
  const rows = known
    ? [{ id: known.id }]
    : store.all<{ id: string }>(
        'SELECT id FROM loops WHERE project = ? AND name = ? LIMIT 2',
        project,
        name,
      )
  const only = rows.length === 1 ? rows[0] : undefined
  return only ? { id: only.id } : {}
}

/** Returns a loop by id or by unique name, or `not_found` if there is no such loop. */
export function loopGet(
  store: Store,
  project: number,
  { id: name }: { readonly id: string },
): Loop | Refusal {
  const { id } = loopNamed(store, project, name)
  return (id === undefined ? undefined : find(store, project, id)) ?? missing
}

interface LoopFilters extends Paging {
  readonly status?: string
  readonly agent_id?: string
}
/** Returns loops of a project, newest first. */
export const loopList = (store: Store, project: number, input: LoopFilters): Page<Loop> =>
  newestRecords(
    store,
    'loops INDEXED BY loops_new',
    project,
    equalityConditions({ status: input.status, agent: input.agent_id }),
    input,
  )
