/**
 * The audit log: which principal changed which configuration. The rules in `audited.ts` define
 * which events are audited, and what their entries contain.
 */

import type { Viewer } from '../../../protocol/channels/schema.ts'
import { parseTimestamp, timestamp } from '../../../protocol/common.ts'
import type { PlacedEntry } from '../../../protocol/entry.ts'
import { type Refusal, refuseFields } from '../../../protocol/errors.ts'
import { makeId } from '../../../protocol/ids.ts'
import type { AuditEntry } from '../../../protocol/projects/rows.ts'
import { hashOf } from '../../../protocol/subjects.ts'
import {
  type Condition,
  equalityConditions,
  isOneOf,
  type Many,
  valuesOf,
} from '../../conditions.ts'
import { type Page, type Paging, readPage } from '../../page.ts'
import type { Store } from '../../store.ts'
import { WriteBackCache } from '../../write-back.ts'
import { channelVisibleTo, interactionVisibleTo, viewerValues } from '../sessions/visibility.ts'
import { readEntry } from './audited.ts'

/**
 * Returns the id of an audit entry. It is derived from the event's time, cursor and project, so
 * that every view assigns the same id. Ids are ordered by time and, within a millisecond, by
 * journal order.
 */
function auditId(at: number, cursor: number, project: string): string {
  const hash = hashOf(project)
  const bytes = new Uint8Array(9)
  let rest = cursor
  for (let i = 6; i >= 0; i--, rest = Math.floor(rest / 256)) bytes[i] = rest % 256
  bytes.set([(hash >>> 8) & 255, hash & 255], 7)
  return makeId('audit', at, bytes, hash % 1024)
}

/** Maximum number of cached names. It exceeds the default, because names are short. */
const MAX_CACHED_NAMES = 65_536
/**
 * Returns the cache of the latest name of each resource, by the resource's id. Events after the
 * resource's creation may lack the name.
 */
const nameCache = (store: Store): WriteBackCache<string> =>
  store.cacheOf(
    'audited names',
    () =>
      new WriteBackCache(
        (resource) =>
          store.one<{ name: string | null }>(
            `SELECT json_extract(record, '$.resource_name') AS name
             FROM audit
             WHERE resource_id = ?
             ORDER BY created_at DESC, id DESC LIMIT 1`,
            resource,
          )?.name ?? undefined,
        () => {},
        { most: MAX_CACHED_NAMES },
      ),
  )

/** Appends the audit entries of a journal entry, which may be of any kind of actor. */
export function applyAudit(store: Store, { cursor, entry }: PlacedEntry): void {
  const { at, principal, credential, request_id, ip, user_agent } = entry.origin
  for (const { index, action, resource_type, resource_id, name, changes = {} } of readEntry(
    entry,
  )) {
    // A project is a resource of the organization, but the project's own log shows its changes too.
    const project =
      entry.kind !== 'organization'
        ? entry.project
        : resource_type === 'project'
          ? resource_id
          : null
    const names = nameCache(store)
    const resource_name = name ?? names.get(resource_id)
    if (resource_name !== undefined && names.peek(resource_id) !== resource_name)
      names.set(resource_id, resource_name)
    const id = auditId(at, cursor + index, entry.project)
    const record: Omit<AuditEntry, 'org_id'> & { org_id?: string } = {
      id,
      ...(entry.kind === 'organization' && { org_id: entry.id }),
      ...(project !== null && { project_id: project }),
      resource_type,
      resource_id,
      ...(resource_name !== undefined && { resource_name }),
      action,
      actor_type: principal.type,
      actor_id: principal.id,
      ...(principal.type === 'user' && { user_id: principal.id }),
      ...(credential && { credential_type: credential.type, credential_id: credential.id }),
      ...(request_id !== undefined && { request_id }),
      ...(ip !== undefined && { ip_address: ip }),
      ...(user_agent !== undefined && { user_agent }),
      ...(Object.keys(changes).length > 0 && { changes }),
      created_at: timestamp(at),
    }
    store.append(
      'audit',
      id,
      project,
      resource_type,
      resource_id,
      action,
      principal.type,
      principal.id,
      record.user_id ?? null,
      at,
      JSON.stringify(record),
    )
  }
  if (entry.kind === 'organization')
    store.run("INSERT OR REPLACE INTO meta (key, value) VALUES ('organization', ?)", entry.id)
}

/** Filters of the audit log. All must match. */
export interface AuditFilters extends Paging {
  readonly resource_type?: Many
  readonly project_id?: string
  readonly resource_id?: string
  readonly user_id?: string
  readonly actor_type?: Many
  readonly actor_id?: string
  /** Alias of `actor_id`. */
  readonly principal_id?: string
  readonly action?: Many
  readonly created_after?: string
  readonly created_before?: string
  /** The principal on whose behalf the query is made; absent: all entries are shown. */
  readonly viewer?: Viewer
}

/**
 * Returns audit entries of this partition, newest first. A filter with an invalid time is refused.
 * @param organization id of the organization, for entries that do not contain it.
 */
export function auditList(
  store: Store,
  input: AuditFilters,
  organization: string,
): Page<AuditEntry> | Refusal {
  const { viewer, actor_type } = input
  const actorTypes = valuesOf(actor_type).map((type) =>
    type === 'service' ? 'service_account' : type,
  )
  // The unary plus keeps SQLite from using an index for a filter with low selectivity.
  const within = (column: string, filter: Many | undefined): readonly Condition[] =>
    filter === undefined ? [] : [isOneOf(`+${column}`, valuesOf(filter))]
  const conditions: Condition[] = [
    ...equalityConditions({
      project: input.project_id,
      resource_id: input.resource_id,
      actor_id: input.actor_id,
      '+user_id': input.user_id,
    }),
    ...equalityConditions({ actor_id: input.principal_id }),
    ...within('resource_type', input.resource_type),
    ...within('action', input.action),
    ...within('actor_type', actor_type && actorTypes),
  ]
  for (const [name, operator] of [
    ['created_after', '>='],
    ['created_before', '<'],
  ] as const) {
    const text = input[name]
    if (text === undefined) continue
    const at = parseTimestamp(text)
    if (at === undefined)
      return refuseFields({
        field: name,
        message: 'must be a date and time with an offset, such as 2031-02-03T04:05:06Z',
      })
    conditions.push([`created_at ${operator} ?`, at])
  }
  if (viewer && !viewer.admin) {
    // The session of a deleted interaction is no longer known, so only administrators may read the
    // entries of that interaction.
    conditions.push([
      `(resource_type <> 'interaction' OR EXISTS (
          SELECT 1 FROM interactions i
          WHERE i.id = audit.resource_id AND ${interactionVisibleTo('i', [viewer.id])}))`,
      ...viewerValues(viewer),
      viewer.id,
    ])
    // The same applies to channels. The id of a membership begins with the id of its channel.
    conditions.push([
      `(resource_type NOT IN ('channel', 'channel_member') OR ${channelVisibleTo(
        "substr(resource_id, 1, instr(resource_id || ':', ':') - 1)",
      )})`,
      viewer.id,
    ])
  }
  return readPage<{ readonly record: string }, AuditEntry>(
    store,
    {
      select: 'SELECT id, created_at, record FROM audit',
      conditions,
      order: ['created_at', 'id'],
      direction: 'DESC',
    },
    input,
    ({ record }) => ({
      org_id: organization,
      ...(JSON.parse(record) as Omit<AuditEntry, 'org_id'>),
    }),
  )
}
