/**
 * The list of artifacts. It contains only complete uploads that were not deleted. The actor keeps
 * the record of a deleted artifact.
 */
import type { ArtifactEvent } from '../../../protocol/artifacts/events.ts'
import type { ArtifactRecord } from '../../../protocol/artifacts/schema.ts'
import type { Viewer } from '../../../protocol/channels/schema.ts'
import { parseTimestamp } from '../../../protocol/common.ts'
import type { Placed } from '../../../protocol/entry.ts'
import { patch } from '../../../protocol/patch.ts'
import { beyond, limitOf, type Page, type Paging, page } from '../../page.ts'
import type { Store, Value } from '../../store.ts'
import { openTo, viewerValues } from '../sessions/visibility.ts'

/** Applies an entry of an artifact. The artifact is listed from its completion to its deletion. */
export function applyArtifact(store: Store, { entry }: Placed): void {
  const project = store.numberOf(entry.project)
  for (const event of entry.events as readonly ArtifactEvent[]) {
    if (event.type === 'artifact.completed') {
      const { id, artifact, session_id } = event
      store.run(
        `INSERT OR REPLACE INTO artifacts
           (id, project, created_at, run, step, session, mime, shared, owner, record)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
        id,
        project,
        parseTimestamp(artifact.created_at) ?? entry.origin.at,
        artifact.run_id ?? null,
        artifact.step_id ?? null,
        session_id ?? null,
        artifact.mime_type.toLowerCase(),
        Number(artifact.visibility === 'shared'),
        artifact.owned_by ?? '',
        JSON.stringify(artifact),
      )
    } else if (event.type === 'artifact.converted') {
      const known = store.one<{ record: string }>(
        'SELECT record FROM artifacts WHERE id = ? AND project = ?',
        event.id,
        project,
      )
      if (known)
        store.run(
          'UPDATE artifacts SET record = ? WHERE id = ?',
          JSON.stringify(patch(JSON.parse(known.record) as ArtifactRecord, event.artifact)),
          event.id,
        )
    } else if (event.type === 'artifact.deleted')
      store.run('DELETE FROM artifacts WHERE id = ? AND project = ?', event.id, project)
  }
}

interface ArtifactListing extends Paging {
  readonly run_id?: string
  readonly step_id?: string
  /** The beginning of the media type, such as `image/`. */
  readonly mime?: string
  readonly viewer: Viewer
}
/** Returns the SQL statement of a list, and its parameters. */
export function planArtifacts(
  project: number,
  { run_id, step_id, mime, viewer, ...paging }: ArtifactListing,
): { readonly sql: string; readonly values: readonly Value[] } {
  const after = beyond(['created_at', 'id'], 'DESC', paging.after)
  const filters: (readonly [sql: string, value: Value])[] = []
  if (run_id !== undefined) filters.push(['run = ?', run_id])
  if (step_id !== undefined) filters.push(['step = ?', step_id])
  if (mime !== undefined) filters.push(['instr(mime, ?) = 1', mime.toLowerCase()])
  return {
    sql: `SELECT id, created_at, record
     FROM artifacts
     WHERE project = ?${filters.map(([sql]) => ` AND ${sql}`).join('')}
       AND (owner = ? OR (shared = 1 AND ${openTo('artifacts')}))${after.sql}
     ORDER BY created_at DESC, id DESC LIMIT ?`,
    values: [
      project,
      ...filters.map(([, value]) => value),
      viewer.id,
      ...viewerValues(viewer),
      ...after.values,
      limitOf(paging) + 1,
    ],
  }
}
/**
 * Returns the artifacts that a viewer may read, newest first: the viewer's own artifacts, and
 * shared artifacts, except artifacts of sessions that the viewer may not read.
 */
export function artifactList(
  store: Store,
  project: number,
  input: ArtifactListing,
): Page<ArtifactRecord> {
  const { sql, values } = planArtifacts(project, input)
  return page(
    store.upToPage<{ id: string; created_at: number; record: string }>(sql, ...values),
    input,
    (row) => JSON.parse(row.record) as ArtifactRecord,
    (row) => [row.created_at, row.id],
  )
}
/** Returns the artifact ids of a project after an id, regardless of who may read the artifacts. */
export const artifactIds = (
  store: Store,
  project: number,
  { after, limit }: { readonly after: string; readonly limit: number },
): { readonly items: readonly string[] } => ({
  items: store
    .upToPage<{ id: string }>(
      'SELECT id FROM artifacts WHERE project = ? AND id > ? ORDER BY id LIMIT ?',
      project,
      after,
      limit,
    )
    .map(({ id }) => id),
})
