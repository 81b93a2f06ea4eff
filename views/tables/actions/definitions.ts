/**
 * Stores and lists the action definitions of projects and of the organization, and lists the
 * actions and workflows that can be called in a project. The organization's definitions are stored
 * under a separate project number.
 */

import type {
  OrganizationAction,
  OrganizationActionEvent,
} from '../../../protocol/actions/organization-rows.ts'
import type { Action, ActionEvent } from '../../../protocol/actions/rows.ts'
import { parseTimestamp } from '../../../protocol/common.ts'
import type { PlacedEntry } from '../../../protocol/entry.ts'
import { type Refusal, refuse } from '../../../protocol/errors.ts'
import { withMaskedUrl } from '../../../protocol/masked-url.ts'
import { type Patch, patch } from '../../../protocol/patch.ts'
import type { ViewQueries } from '../../../protocol/queries/views.ts'
import type { Workflow } from '../../../protocol/workflows/rows.ts'
import type { Spec } from '../../../protocol/workflows/spec.ts'
import { newestRecords, recordWith } from '../../newest.ts'
import type { Page, Paging } from '../../page.ts'
import type { Store } from '../../store.ts'
import { WriteBackCache } from '../../write-back.ts'
import type { Watch } from '../runs/waiting.ts'

type Definition = Action | OrganizationAction

/**
 * Returns the cache of definition ids, by project and name. These ids are looked up often. An empty
 * string means that no such definition exists.
 */
const idsByName = (store: Store): WriteBackCache<string> =>
  store.cacheOf(
    'action_ids',
    () =>
      new WriteBackCache(
        (key): string => {
          const at = key.indexOf(':')
          return (
            store.one<{ id: string }>(
              'SELECT id FROM actions WHERE project = ? AND name = ?',
              Number(key.slice(0, at)),
              key.slice(at + 1),
            )?.id ?? ''
          )
        },
        () => {},
      ),
  )
/** Returns the id of the project's action with this name; undefined for an unknown name. */
export const definitionId = (store: Store, project: number, name: string): string | undefined =>
  idsByName(store).get(`${project}:${name}`) || undefined

/** Masks the query values of URLs, which events of earlier releases contain in plain text. */
const masked = (action: Definition): Definition =>
  withMaskedUrl<'endpoint_url', Definition>(action, 'endpoint_url')

/** Applies the action events of an entry of a project or of the organization. */
export function applyActions(store: Store, { entry }: PlacedEntry): void {
  const project = store.numberOf(entry.project)
  for (const any of entry.events) {
    const event = any as ActionEvent | OrganizationActionEvent
    switch (event.type) {
      case 'action.created':
      case 'organization_action.created':
        store.run(
          'INSERT OR REPLACE INTO actions (id, project, name, created_at, record) VALUES (?, ?, ?, ?, ?)',
          event.id,
          project,
          event.action.name,
          parseTimestamp(event.action.created_at) ?? entry.origin.at,
          JSON.stringify(masked(event.action)),
        )
        idsByName(store).set(`${project}:${event.action.name}`, event.id)
        break
      case 'action.updated':
      case 'organization_action.updated':
      case 'organization_action.secret_changed':
      case 'organization_action.secret_retired':
        change(store, project, event.id, event.action as Patch<Definition>)
        break
      case 'action.deleted':
      case 'organization_action.deleted':
        store.run('DELETE FROM actions WHERE id = ? AND project = ?', event.id, project)
        idsByName(store).set(`${project}:${event.name}`, '')
        break
    }
  }
}
function change(store: Store, project: number, id: string, by: Patch<Definition>): void {
  const before = recordWith<Definition>(store, 'actions', project, id)
  if (!before) return
  const record = masked(patch(before, by))
  store.run(
    'UPDATE actions SET name = ?, record = ? WHERE id = ?',
    record.name,
    JSON.stringify(record),
    id,
  )
  if (before.name !== record.name) idsByName(store).set(`${project}:${before.name}`, '')
  idsByName(store).set(`${project}:${record.name}`, id)
}

/** Returns the actions of a project or of the organization, newest first. */
export const actionList = <T extends Definition>(
  store: Store,
  project: number,
  input: Paging,
): Page<T> => newestRecords(store, 'actions', project, [], input)
/** Returns an action by id or by name, or `not_found` if there is no such action. */
export function actionGet<T extends Definition>(
  store: Store,
  project: number,
  by: 'id' | 'name',
  value: string,
): T | Refusal {
  const row = store.one<{ record: string }>(
    `SELECT record FROM actions WHERE project = ? AND ${by} = ?`,
    project,
    value,
  )
  return row
    ? (JSON.parse(row.record) as T)
    : refuse('not_found', { resource: 'action' }, 'There is no such action.')
}
/** Returns all actions of a project, or the action with the given name. */
export const actionsOf = <T extends Definition>(
  store: Store,
  project: number,
  name?: string,
): T[] =>
  store
    .all<{ record: string }>(
      `SELECT record FROM actions WHERE project = ?${name === undefined ? '' : ' AND name = ?'}`,
      project,
      ...(name === undefined ? [] : [name]),
    )
    .map(({ record }) => JSON.parse(record) as T)

/**
 * Returns the callable items of a project: its actions and published workflows; with `name`, only
 * the item with that name. `reachable`: whether a worker that is connected and not draining accepts
 * the action; false for actions that the service calls itself.
 */
export function callable(
  store: Store,
  project: number,
  watch: Watch,
  name?: string,
): ViewQueries['callable']['reply'] {
  const handle = name?.startsWith('workflow.') ? name.slice('workflow.'.length) : undefined
  const published =
    name !== undefined && handle === undefined
      ? []
      : store.all<{ id: string; record: string }>(
          `SELECT id, record
           FROM workflows
           WHERE project = ? AND json_extract(record, '$.published_as_tool')
             ${handle === undefined ? '' : 'AND handle = ?'}`,
          project,
          ...(handle === undefined ? [] : [handle]),
        )
  return {
    actions: actionsOf<Action>(store, project, name).map((action) => ({
      action,
      reachable:
        action.endpoint_kind === 'worker' &&
        watch.workers().some((worker) => lists(worker, action.name)),
    })),
    workflows: published.map(({ record }) => {
      const { id, latest_version, handle, name, description } = JSON.parse(record) as Workflow
      const spec = store.one<{ spec: string }>(
        'SELECT spec FROM versions WHERE definition = ? AND version = ? AND project = ?',
        id,
        latest_version,
        project,
      )
      const { input } = spec ? (JSON.parse(spec.spec) as Spec) : {}
      return {
        handle,
        name,
        ...(description !== undefined && { description }),
        ...(input && { input }),
      }
    }),
  }
}
/**
 * Whether a worker accepts an action. A worker that lists neither actions nor models accepts all
 * actions.
 */
const lists = (
  { action_names, models }: ReturnType<Watch['workers']>[number],
  name: string,
): boolean => (action_names.length > 0 ? action_names.includes(name) : models.length === 0)
