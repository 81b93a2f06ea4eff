/**
 * Cursors of transcripts. A cursor is a revision of a session, sealed for that session. Equal
 * revisions have equal cursors.
 */
import type { Refusal } from '../../../protocol/errors.ts'
import { openCursor, sealCursor } from '../../http/cursor.ts'
import type { World } from '../../ports.ts'

const binding = (project: string, session_id: string) => ({
  project,
  route: 'session.transcript',
  filters: { session_id },
})
/** Returns the cursor of a revision. */
export const sealTranscriptCursor = (
  world: Pick<World, 'seal'>,
  project: string,
  session_id: string,
  revision: number,
): string => sealCursor(world, binding(project, session_id), revision)
/**
 * Returns the revision in a cursor of this session. Any other text is refused with `bad_request`.
 */
export function openTranscriptCursor(
  world: Pick<World, 'seal'>,
  project: string,
  session_id: string,
  cursor: string,
): { readonly revision: number } | Refusal {
  const opened = openCursor(world, binding(project, session_id), cursor)
  return 'refused' in opened ? opened : { revision: Number(opened.position) }
}
