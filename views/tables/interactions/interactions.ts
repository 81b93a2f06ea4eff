/**
 * Stores and lists interactions with their targets and reviewers. Each statement of a list scans
 * one index: the index by person, run, session, status or creation time.
 */

import type { Viewer } from '../../../protocol/channels/schema.ts'
import { parseTimestamp } from '../../../protocol/common.ts'
import type { PlacedEntry } from '../../../protocol/entry.ts'
import { type Refusal, refuse } from '../../../protocol/errors.ts'
import { withMaskedCallback } from '../../../protocol/interactions/callback.ts'
import { changed, type InteractionEvent } from '../../../protocol/interactions/events.ts'
import { reviewersOf } from '../../../protocol/interactions/resolve.ts'
import { type Interaction, interactionStatuses } from '../../../protocol/interactions/schema.ts'
import { recordWith } from '../../newest.ts'
import { limitOf, type Page, type Paging, page, positionCondition } from '../../page.ts'
import { changeRecord, keptRecords } from '../../records.ts'
import type { Store, Value } from '../../store.ts'
import { interactionVisibleTo, viewerValues } from '../sessions/visibility.ts'

const keptInteractions = (store: Store) =>
  keptRecords<Interaction>(store, 'interactions', () => ({
    insert: (id, { project, created_at }, record) => {
      store.append(
        'interactions',
        id,
        project,
        created_at,
        record.status,
        record.kind,
        record.run_id ?? null,
        record.consumer.agent_tool?.session_id ?? null,
        JSON.stringify(record),
      )
      const people = (part: string, ids: readonly string[]) => {
        for (const person of new Set(ids))
          store.append('interaction_people', project, person, part, created_at, id)
      }
      people('target', record.target_user_ids)
      people('reviewer', reviewersOf(record))
    },
    update: (id, record) =>
      store.run(
        'UPDATE interactions SET status = ?, record = ? WHERE id = ?',
        record.status,
        JSON.stringify(record),
        id,
      ),
    remove: (id, { project }) => {
      store.run('DELETE FROM interactions WHERE id = ?', id)
      store.run('DELETE FROM interaction_people WHERE id = ? AND project = ?', id, project)
    },
  }))

/**
 * Applies an entry of an interaction. Later entries of an interaction whose first entry was trimmed
 * from the journal are ignored.
 */
export function applyInteraction(store: Store, { entry }: PlacedEntry): void {
  const rows = keptInteractions(store)
  const project = store.numberOf(entry.project)
  const { at } = entry.origin
  for (const event of entry.events as readonly InteractionEvent[]) {
    if (event.type === 'interaction.created') {
      const { interaction } = event
      rows.set(interaction.id, {
        project,
        created_at: parseTimestamp(interaction.created_at) ?? at,
        record: withMaskedCallback(interaction),
        stored: false,
      })
    } else if (
      event.type === 'interaction.responded' ||
      event.type === 'interaction.submitted' ||
      event.type === 'interaction.reviewed' ||
      event.type === 'interaction.resolved' ||
      event.type === 'interaction.deleted'
    ) {
      changeRecord(rows, project, event.id, (record) =>
        event.type === 'interaction.deleted' ? undefined : changed(record, event, at),
      )
    }
  }
}
const find = (store: Store, project: number, id: string): Interaction | undefined =>
  recordWith(store, 'interactions', project, id)

/**
 * Returns an interaction of a project, or `not_found` if the project has no such interaction. The
 * caller must check who may read it.
 */
export const interactionGet = (
  store: Store,
  project: number,
  { id }: { readonly id: string },
): Interaction | Refusal =>
  find(store, project, id) ??
  refuse('not_found', { resource: 'interaction' }, 'There is no such interaction in this project.')

type Many = string | readonly string[]
/**
 * Filters of the list. All must match. `caller`: with `inbox`, the caller's id and the `role:`
 * targets that include the caller.
 */
export interface InteractionFilters extends Paging {
  readonly status?: Many
  readonly kind?: Many
  readonly run_id?: string
  readonly session_id?: string
  readonly target_user_id?: string
  readonly inbox?: boolean
  readonly caller?: readonly string[]
  /**
   * The viewer, and the names under which interactions list it as a target: its id, and
   * `role:<name>` for each of its roles. Absent: the service itself.
   */
  readonly viewer?: Viewer & { readonly names: readonly string[] }
}
interface ListRow {
  readonly id: string
  readonly created_at: number
  readonly record: string
}
const list = (many: Many): readonly string[] =>
  typeof many === 'string' ? [many] : [...new Set(many)]
const marks = (values: readonly unknown[]): string => values.map(() => '?').join(', ')

/**
 * Returns the SQL statements whose merged rows contain a page of a list. Each statement scans one
 * index, in the order of the list.
 */
function planOf(project: number, input: InteractionFilters): { sql: string; values: Value[] }[] {
  const after = positionCondition(['i.created_at', 'i.id'], 'DESC', input.after)
  const conditions: string[] = []
  const values: Value[] = []
  const where = (sql: string, ...more: readonly Value[]) => {
    conditions.push(sql)
    values.push(...more)
  }
  const statuses = input.status === undefined ? undefined : list(input.status)
  if (input.kind !== undefined)
    where(`+i.kind IN (${marks(list(input.kind))})`, ...list(input.kind))
  if (input.viewer)
    where(
      interactionVisibleTo('i', input.viewer.names),
      ...viewerValues(input.viewer),
      ...input.viewer.names,
    )
  if (input.run_id !== undefined) where('i.run = ?', input.run_id)
  if (input.session_id !== undefined) where('i.session = ?', input.session_id)
  const tail = `${after.sql} ORDER BY i.created_at DESC, i.id DESC LIMIT ?`
  const end = [...after.values, limitOf(input) + 1]
  const rest = () => conditions.map((one) => ` AND ${one}`).join('')
  const people: readonly (readonly [person: string, parts: readonly string[]])[] | undefined =
    input.inbox
      ? (input.caller ?? []).map((person) => [person, ['target', 'reviewer']] as const)
      : input.target_user_id === undefined
        ? undefined
        : [[input.target_user_id, ['target']]]
  if (input.inbox && input.target_user_id !== undefined)
    where(
      `EXISTS (
         SELECT 1 FROM interaction_people t
         WHERE t.project = i.project AND t.person = ? AND t.part = 'target'
           AND t.created_at = i.created_at AND t.id = i.id)`,
      input.target_user_id,
    )
  if (people) {
    if (statuses) where(`+i.status IN (${marks(statuses)})`, ...statuses)
    return people.flatMap(([person, parts]) =>
      parts.map((part) => ({
        sql: `SELECT i.id, i.created_at, i.record
              FROM interaction_people p
              CROSS JOIN interactions i ON i.id = p.id
              WHERE p.project = ? AND p.person = ? AND p.part = ?
                ${rest()}${after.sql.replaceAll('i.', 'p.')}
              ORDER BY p.created_at DESC, p.id DESC LIMIT ?`,
        values: [project, person, part, ...values, ...end],
      })),
    )
  }
  const statement = (index: string, status: readonly string[] | undefined) => ({
    sql: `SELECT i.id, i.created_at, i.record
          FROM interactions i INDEXED BY ${index}
          WHERE i.project = ?${rest()}${status ? ` AND i.status IN (${marks(status)})` : ''}${tail}`,
    values: [project, ...values, ...(status ?? []), ...end],
  })
  if (input.run_id !== undefined) return [statement('interactions_run', statuses)]
  if (input.session_id !== undefined) return [statement('interactions_session', statuses)]
  return statuses
    ? statuses
        .filter((status) => (interactionStatuses as readonly string[]).includes(status))
        .map((status) => statement('interactions_status', [status]))
    : [statement('interactions_new', undefined)]
}
const newest = (a: ListRow, b: ListRow) =>
  b.created_at - a.created_at || (a.id < b.id ? 1 : a.id > b.id ? -1 : 0)

/** Returns interactions of the project, newest first. */
export function interactionList(
  store: Store,
  project: number,
  input: InteractionFilters,
): Page<Interaction> {
  const lists = planOf(project, input).map(({ sql, values }) =>
    store.upToPage<ListRow>(sql, ...values),
  )
  const rows =
    lists.length === 1
      ? (lists[0] ?? [])
      : [...new Map(lists.flat().map((row) => [row.id, row])).values()].sort(newest)
  return page(
    rows,
    input,
    (row) => JSON.parse(row.record) as Interaction,
    (row) => [row.created_at, row.id],
  )
}
