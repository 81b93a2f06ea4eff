/**
 * Stores and lists interactions with their targets and reviewers. Each statement of a list scans
 * one index: the index by person, run, session, status or creation time.
 */

import type { Viewer } from '../../../protocol/channels/schema.ts'
import { parseTimestamp } from '../../../protocol/common.ts'
import type { PlacedEntry } from '../../../protocol/entry.ts'
import { type Refusal, refuse } from '../../../protocol/errors.ts'
import { withMaskedCallback } from '../../../protocol/interactions/callback.ts'
import { applyChange, type InteractionEvent } from '../../../protocol/interactions/events.ts'
import { reviewersOf } from '../../../protocol/interactions/resolve.ts'
import { type Interaction, interactionStatuses } from '../../../protocol/interactions/schema.ts'
import {
  type Condition,
  equalityConditions,
  isOneOf,
  type Many,
  valuesOf,
} from '../../conditions.ts'
import { recordWith } from '../../newest.ts'
import { type Page, type PageStatement, type Paging, planPage, readMergedPage } from '../../page.ts'
import { changeRecord, recordCache } from '../../records.ts'
import type { Store } from '../../store.ts'
import { interactionVisibleTo, viewerValues } from '../sessions/visibility.ts'

const interactionCache = (store: Store) =>
  recordCache<Interaction>(store, 'interactions', () => ({
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
  const rows = interactionCache(store)
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
        event.type === 'interaction.deleted' ? undefined : applyChange(record, event, at),
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
const COLUMNS = 'i.id, i.created_at, i.record'

/**
 * Returns the SQL statements whose merged rows contain a page of a list. Each statement scans one
 * index, in the order of the list.
 */
function planInteractions(project: number, input: InteractionFilters): readonly PageStatement[] {
  const { status, kind, run_id, session_id, target_user_id, inbox, viewer } = input
  const statuses = status === undefined ? undefined : valuesOf(status)
  const filters: readonly Condition[] = [
    ...(kind === undefined ? [] : [isOneOf('+i.kind', valuesOf(kind))]),
    ...(viewer ? [visibleTo(viewer)] : []),
    ...equalityConditions({ 'i.run': run_id, 'i.session': session_id }),
    ...(inbox && target_user_id !== undefined ? [hasTarget(target_user_id)] : []),
  ]
  const ofPerson = (person: string, part: 'target' | 'reviewer'): PageStatement =>
    planPage(
      {
        select: `SELECT ${COLUMNS}
                 FROM interaction_people p
                 CROSS JOIN interactions i ON i.id = p.id`,
        conditions: [
          ...equalityConditions({ 'p.project': project, 'p.person': person, 'p.part': part }),
          ...filters,
          ...(statuses ? [isOneOf('+i.status', statuses)] : []),
        ],
        order: ['p.created_at', 'p.id'],
        direction: 'DESC',
      },
      input,
    )
  if (inbox)
    return (input.caller ?? []).flatMap((person) => [
      ofPerson(person, 'target'),
      ofPerson(person, 'reviewer'),
    ])
  if (target_user_id !== undefined) return [ofPerson(target_user_id, 'target')]
  const ofIndex = (index: string, status: readonly string[] | undefined): PageStatement =>
    planPage(
      {
        select: `SELECT ${COLUMNS} FROM interactions i INDEXED BY ${index}`,
        conditions: [
          ['i.project = ?', project],
          ...filters,
          ...(status ? [isOneOf('i.status', status)] : []),
        ],
        order: ['i.created_at', 'i.id'],
        direction: 'DESC',
      },
      input,
    )
  if (run_id !== undefined) return [ofIndex('interactions_run', statuses)]
  if (session_id !== undefined) return [ofIndex('interactions_session', statuses)]
  return statuses
    ? statuses
        .filter((status) => (interactionStatuses as readonly string[]).includes(status))
        .map((status) => ofIndex('interactions_status', [status]))
    : [ofIndex('interactions_new', undefined)]
}
const visibleTo = ({ names, ...viewer }: NonNullable<InteractionFilters['viewer']>): Condition => [
  interactionVisibleTo('i', names),
  ...viewerValues(viewer),
  ...names,
]
const hasTarget = (person: string): Condition => [
  `EXISTS (
     SELECT 1 FROM interaction_people t
     WHERE t.project = i.project AND t.person = ? AND t.part = 'target'
       AND t.created_at = i.created_at AND t.id = i.id)`,
  person,
]

/** Returns interactions of the project, newest first. */
export function interactionList(
  store: Store,
  project: number,
  input: InteractionFilters,
): Page<Interaction> {
  return readMergedPage<ListRow, Interaction>(
    store,
    planInteractions(project, input),
    input,
    ({ record }) => JSON.parse(record) as Interaction,
  )
}
