/** Deletion of artifacts: the bytes are deleted and leave the quota before the call is answered. */
import { isRefusal } from '../../../protocol/errors.ts'
import { viewerOf } from '../../auth/viewer.ts'
import { scopeId } from '../../call.ts'
import { eraseFile } from '../../files/erase.ts'
import type { Prepare } from '../../prepare.ts'
import { artifactAt, toQuota } from './reservation.ts'

/** Adds the caller to a deletion, and completes it. The artifact's effects do the same again. */
const remove: Prepare = (edge, call, _identity, origin) => {
  const { world } = edge
  return {
    input: { viewer: viewerOf(call.caller) },
    async after() {
      const to = artifactAt(scopeId(edge, call), call.slots['artifact_id'] ?? '')
      const kept = await world.ask(to, 'content', {})
      if (!kept || isRefusal(kept) || kept.state !== 'deleted' || !world.files) return
      const { artifact, blob, until } = kept
      if (until === undefined || until <= world.now()) return
      await eraseFile(world.files, blob)
      const { id, size_bytes: bytes } = artifact
      await toQuota({ world, origin }, 'quota.refund', { artifact: id, bytes, until, direct: true })
    },
  }
}

/** Preparations of the commands of artifacts, by operation name. */
export const artifactPreparations: Readonly<Record<string, Prepare>> = { 'artifact.delete': remove }
