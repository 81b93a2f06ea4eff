/**
 * Deletes artifacts. Their bytes are deleted and refunded to the quota before the call is answered.
 */
import { isRefusal } from '../../../protocol/errors.ts'
import { viewerOf } from '../../auth/viewer.ts'
import { scopeId } from '../../call.ts'
import { eraseFile } from '../../files/erase.ts'
import type { Prepare } from '../../prepare.ts'
import { refuseUnreadable } from './read.ts'
import { artifactAt, type Sender, toQuota } from './reservation.ts'

/**
 * Deletes the bytes of a recently deleted artifact, and refunds them to the quota. Does nothing and
 * returns false for any other artifact. The effects of the artifact repeat this work, so nothing is
 * lost if it fails here.
 */
export async function completeRemoval(
  { world, origin }: Sender,
  project: string,
  artifact_id: string,
): Promise<boolean> {
  const kept = await world.ask(artifactAt(project, artifact_id), 'content', {})
  if (!kept || isRefusal(kept) || kept.state !== 'deleted' || !world.files) return false
  const { artifact, blob, until } = kept
  if (until === undefined || until <= world.now()) return false
  await eraseFile(world, blob)
  const { id, size_bytes: bytes } = artifact
  await toQuota({ world, origin }, 'quota.refund', { artifact: id, bytes, until, direct: true })
  return true
}

/**
 * Prepares a deletion: adds the caller to the command, and deletes the bytes after the command.
 * Returns `not_found` to a caller that may not read the session of the artifact.
 */
const remove: Prepare = async (edge, call, _identity, origin) => {
  const { world } = edge
  const project = scopeId(edge, call)
  const id = call.slots['artifact_id'] ?? ''
  const kept = await world.ask(artifactAt(project, id), 'content', {})
  if (isRefusal(kept)) return kept
  const closed = await refuseUnreadable(edge, call, kept)
  if (closed) return closed
  return {
    input: { viewer: viewerOf(call.caller) },
    after: async () => void (await completeRemoval({ world, origin }, project, id)),
  }
}

/** Preparations of the artifact commands, by operation name. */
export const artifactPreparations: Readonly<Record<string, Prepare>> = { 'artifact.delete': remove }
