/**
 * The list of artifacts. It contains only complete uploads that were not deleted. The actor keeps
 * the record of a deleted artifact.
 */
import type { ArtifactEvent } from '../../../protocol/artifacts/events.ts'
import type { ArtifactRecord } from '../../../protocol/artifacts/schema.ts'
import type { Viewer } from '../../../protocol/channels/schema.ts'
import { parseTimestamp } from '../../../protocol/common.ts'
import type { PlacedEntry } from '../../../protocol/entry.ts'
import { patch } from '../../../protocol/patch.ts'
import { type Condition, equalityConditions } from '../../conditions.ts'
import { type Ids, idsAfter, newestRecords, type Position, recordWith } from '../../newest.ts'
import type { Page, Paging } from '../../page.ts'
import type { Store } from '../../store.ts'
import { inReadableSession, viewerValues } from '../sessions/visibility.ts'

/** Applies an entry of an artifact. The artifact is listed from its completion to its deletion. */
export function applyArtifact(store: Store, { entry }: PlacedEntry): void {
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
      const known = recordWith<ArtifactRecord>(store, 'artifacts', project, event.id)
      if (known)
        store.run(
          'UPDATE artifacts SET record = ? WHERE id = ?',
          JSON.stringify(patch(known, event.artifact)),
          event.id,
        )
    } else if (event.type === 'artifact.deleted')
      store.run('DELETE FROM artifacts WHERE id = ? AND project = ?', event.id, project)
  }
}

interface ArtifactListing extends Paging {
  readonly run_id?: string
  readonly step_id?: string
  /** Prefix of the media type, such as `image/`. */
  readonly mime?: string
  readonly viewer: Viewer
}
/** Returns the conditions of a list: its filters, and what its viewer may read. */
export function artifactConditions({
  run_id,
  step_id,
  mime,
  viewer,
}: ArtifactListing): readonly Condition[] {
  return [
    ...equalityConditions({ run: run_id, step: step_id }),
    ...(mime === undefined ? [] : [['instr(mime, ?) = 1', mime.toLowerCase()] as const]),
    [
      `(owner = ? OR (shared = 1 AND ${inReadableSession('artifacts')}))`,
      viewer.id,
      ...viewerValues(viewer),
    ],
  ]
}
/**
 * Returns the artifacts that a viewer may read, newest first: the viewer's own artifacts, and those
 * shared artifacts that belong to no session or to a session that the viewer may read.
 */
export const artifactList = (
  store: Store,
  project: number,
  input: ArtifactListing,
): Page<ArtifactRecord> =>
  newestRecords(store, 'artifacts', project, artifactConditions(input), input)
/** Returns a page of all artifact ids of a project, regardless of who may read the artifacts. */
export const artifactIds = (store: Store, project: number, position: Position): Ids =>
  idsAfter(store, 'artifacts', project, [], position)
