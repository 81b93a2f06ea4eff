/** The list of environments, including destroyed environments. */
import { parseTimestamp } from '../../../protocol/common.ts'
import type { Placed } from '../../../protocol/entry.ts'
import type { EnvironmentEvent } from '../../../protocol/environments/events.ts'
import { recordPatch } from '../../../protocol/environments/record.ts'
import type { Environment } from '../../../protocol/environments/schema.ts'
import { type Patch, patch } from '../../../protocol/patch.ts'
import { beyond, limitOf, type Page, type Paging, page } from '../../page.ts'
import type { Store, Value } from '../../store.ts'

/** Applies an entry of an environment. A destroyed environment keeps its row. */
export function applyEnvironment(store: Store, { entry }: Placed): void {
  const project = store.numberOf(entry.project)
  for (const event of entry.events as readonly EnvironmentEvent[]) {
    if (event.type === 'environment.created') save(store, project, event.environment)
    else {
      const record = recordPatch(event)
      if (record) change(store, project, entry.id, record)
    }
  }
}

function save(store: Store, project: number, environment: Environment): void {
  const { id, name, status, run_id, created_at, updated_at } = environment
  store.run(
    `INSERT OR REPLACE INTO environments
       (id, project, created_at, name, status, run, destroyed_at, record)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
    id,
    project,
    parseTimestamp(created_at) ?? 0,
    name,
    status,
    run_id ?? null,
    status === 'destroyed' ? (parseTimestamp(updated_at) ?? 0) : null,
    JSON.stringify(environment),
  )
}
function change(store: Store, project: number, id: string, record: Patch<Environment>): void {
  const known = store.one<{ record: string }>(
    'SELECT record FROM environments WHERE id = ? AND project = ?',
    id,
    project,
  )
  if (known) save(store, project, patch(JSON.parse(known.record) as Environment, record))
}

interface Listing extends Paging {
  readonly status?: string
  readonly run_id?: string
  readonly include_destroyed?: boolean
  /** A timestamp; environments that were destroyed before it are excluded. */
  readonly destroyed_since?: string
}
/**
 * Returns environments of a project, newest first. Destroyed environments are included only on
 * request.
 */
export function environmentList(store: Store, project: number, input: Listing): Page<Environment> {
  const { status, run_id, include_destroyed, destroyed_since, ...paging } = input
  const after = beyond(['created_at', 'id'], 'DESC', paging.after)
  const filters: (readonly [sql: string, ...values: Value[]])[] = []
  if (status !== undefined) filters.push(['status = ?', status])
  else if (include_destroyed !== true) filters.push(["status != 'destroyed'"])
  if (run_id !== undefined) filters.push(['run = ?', run_id])
  if (destroyed_since !== undefined)
    filters.push([
      '(destroyed_at IS NULL OR destroyed_at >= ?)',
      parseTimestamp(destroyed_since) ?? 0,
    ])
  return page(
    store.upToPage<{ id: string; created_at: number; record: string }>(
      `SELECT id, created_at, record FROM environments
       WHERE project = ?${filters.map(([sql]) => ` AND ${sql}`).join('')}${after.sql}
       ORDER BY created_at DESC, id DESC LIMIT ?`,
      project,
      ...filters.flatMap(([, ...values]) => values),
      ...after.values,
      limitOf(paging) + 1,
    ),
    input,
    (row) => JSON.parse(row.record) as Environment,
    (row) => [row.created_at, row.id],
  )
}

/** Returns the ids of a project's environments after an id, without destroyed environments. */
export const environmentIds = (
  store: Store,
  project: number,
  { after, limit }: { readonly after: string; readonly limit: number },
): { readonly items: readonly string[] } => ({
  items: store
    .upToPage<{ id: string }>(
      `SELECT id FROM environments
       WHERE project = ? AND id > ? AND status != 'destroyed' ORDER BY id LIMIT ?`,
      project,
      after,
      limit,
    )
    .map(({ id }) => id),
})
