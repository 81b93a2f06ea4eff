/** The list of environments, including destroyed environments. */
import { parseTimestamp } from '../../../protocol/common.ts'
import type { PlacedEntry } from '../../../protocol/entry.ts'
import type { EnvironmentEvent } from '../../../protocol/environments/events.ts'
import { recordPatch } from '../../../protocol/environments/record.ts'
import type { Environment } from '../../../protocol/environments/schema.ts'
import { type Patch, patch } from '../../../protocol/patch.ts'
import { type Condition, equalityConditions } from '../../conditions.ts'
import { type Ids, idsAfter, newestRecords, type Position, recordWith } from '../../newest.ts'
import type { Page, Paging } from '../../page.ts'
import type { Store } from '../../store.ts'

/** Applies an entry of an environment. A destroyed environment keeps its row. */
export function applyEnvironment(store: Store, { entry }: PlacedEntry): void {
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
  const known = recordWith<Environment>(store, 'environments', project, id)
  if (known) save(store, project, patch(known, record))
}

interface Listing extends Paging {
  readonly status?: string
  readonly run_id?: string
  readonly include_destroyed?: boolean
  /** A timestamp. Environments that were destroyed before it are excluded. */
  readonly destroyed_since?: string
}
const EXISTING: Condition = ["status != 'destroyed'"]
/**
 * Returns environments of a project, newest first. Destroyed environments are included only on
 * request.
 */
export function environmentList(store: Store, project: number, input: Listing): Page<Environment> {
  const { status, run_id, include_destroyed, destroyed_since } = input
  const conditions: Condition[] = equalityConditions({ status, run: run_id })
  if (status === undefined && include_destroyed !== true) conditions.push(EXISTING)
  if (destroyed_since !== undefined)
    conditions.push([
      '(destroyed_at IS NULL OR destroyed_at >= ?)',
      parseTimestamp(destroyed_since) ?? 0,
    ])
  return newestRecords(store, 'environments', project, conditions, input)
}

/** Returns the ids of a project's environments after an id, without destroyed environments. */
export const environmentIds = (store: Store, project: number, position: Position): Ids =>
  idsAfter(store, 'environments', project, [EXISTING], position)
