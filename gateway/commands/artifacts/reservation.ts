/**
 * Manages an upload in progress: the pending artifact, and the storage that it reserves.
 *
 * Invariants:
 * R1. Bytes are stored only under a name that a pending artifact contains, so if this gateway dies,
 *     the artifact abandons the upload at its deadline and erases the bytes.
 * R2. The gateway deletes bytes only after the artifact was abandoned. When it is unknown whether
 *     the artifact was abandoned, the artifact decides at its deadline whether to erase them.
 * R3. The reservation never lags behind the received bytes by more than `EXTENSION_BYTES`, and it
 *     covers all bytes before the artifact is published.
 */
import {
  type ArtifactState,
  blobName,
  type CompleteUpload,
  type LeaseFacts,
} from '../../../protocol/artifacts/commands.ts'
import type { ArtifactRecord } from '../../../protocol/artifacts/schema.ts'
import type { Origin } from '../../../protocol/entry.ts'
import { isRefusal, type Refusal, refuse } from '../../../protocol/errors.ts'
import type { CommandInput } from '../../../protocol/queries/commands.ts'
import type { AddressOf } from '../../../protocol/queries/owners.ts'
import { eraseFile } from '../../files/erase.ts'
import { hexOf } from '../../http/hex.ts'
import { organizationAt, sendNew } from '../../http/send.ts'
import type { Files, World } from '../../ports.ts'
import { every } from '../../timing.ts'

/** The lease of a worker, with its token and the queue that granted it. */
export interface Lease {
  readonly token: string
  readonly queue: AddressOf<'queue'>
  readonly facts: LeaseFacts
}
/** The context of an upload: its project, its origin and, for a worker, its lease. */
export interface UploadContext {
  readonly world: World
  readonly files: Files
  readonly project: string
  readonly origin: Origin
  readonly lease: Lease | undefined
}
export interface Reservation {
  /** The name of the object that stores the artifact's bytes. */
  readonly blob: string
  /**
   * Extends the reservation to `size`, the number of bytes received so far. Unless `whole` is set,
   * this is done only if at least `EXTENSION_BYTES` are not reserved yet. Returns a refusal if the
   * upload exceeds the quota or was abandoned.
   * @param whole whether no more bytes follow.
   */
  grow(size: number, whole: boolean): Promise<Refusal | undefined>
  /** Makes the artifact visible. Returns its record, or a refusal if the upload has ended. */
  publish(stored: CompleteUpload): Promise<ArtifactRecord | Refusal>
  /**
   * Abandons the upload. Returns the record if a command with an unknown outcome has already
   * published the artifact.
   */
  giveUp(): Promise<ArtifactRecord | undefined>
  /** Stops the renewal of the deadline. */
  stop(): void
}

/** Number of received but unreserved bytes at which the reservation is extended. */
const EXTENSION_BYTES = 8 * 1_048_576

/** The origin of a command, and the `world` that sends it. */
export type Sender = Pick<UploadContext, 'world' | 'origin'>
/** Sends a command to the organization about the storage of artifacts. */
export const toQuota = <
  N extends 'quota.reserve' | 'quota.settle' | 'quota.release' | 'quota.refund',
>(
  { world, origin }: Sender,
  name: N,
  input: CommandInput<'organization', N>,
) => sendNew(world, organizationAt(world), name, input, origin)
export const artifactAt = (project: string, id: string): AddressOf<'artifact'> => ({
  project,
  kind: 'artifact',
  id,
})
/** Sends a command to the actor of an artifact, under a new command id. */
export const toArtifact = <
  N extends 'artifact.reserve' | 'artifact.renew' | 'artifact.complete' | 'artifact.abandon',
>(
  { world, origin }: Sender,
  to: AddressOf<'artifact'>,
  name: N,
  input: CommandInput<'artifact', N>,
) => sendNew(world, to, name, input, origin)

/**
 * Creates the pending artifact of an upload, and reserves its storage.
 * @param size the declared size in bytes; undefined when it is unknown.
 */
export async function reserveUpload(
  context: UploadContext,
  artifact: string,
  size: number | undefined,
): Promise<Reservation | Refusal> {
  const { world, project, lease, origin } = context
  const to = artifactAt(project, artifact)
  const blob = blobName(project, artifact, hexOf(world.random(8)))
  const reserved = await toArtifact(context, to, 'artifact.reserve', {
    organization: world.organization(),
    blob,
    owner: origin.principal.id,
    ...(size !== undefined && { size_bytes: size }),
    ...(lease && { lease: lease.facts }),
  })
  let until = isRefusal(reserved) ? 0 : reserved.reply.expires_at
  let bytes = size ?? 0
  let ended: Refusal | undefined
  const reserve = (wanted: number) =>
    toQuota(context, 'quota.reserve', { artifact, bytes: wanted, expires_at: until })

  const giveUp = async (): Promise<ArtifactRecord | undefined> => {
    stop()
    const given = await toArtifact(context, to, 'artifact.abandon', {})
    if (isRefusal(given)) return undefined
    if (given.reply.state === 'abandoned') {
      await eraseFile(world, blob)
      await toQuota(context, 'quota.release', { artifact, until })
      return undefined
    }
    const kept = await world.ask(to, 'content', {})
    return kept && !isRefusal(kept) && kept.state === 'ready' ? kept.artifact : undefined
  }
  const renew = async (): Promise<void> => {
    const renewed = await toArtifact(context, to, 'artifact.renew', {})
    if (isRefusal(renewed)) {
      if (renewed.refused === 'artifact_conflict') ended = renewed
      return
    }
    until = renewed.reply.expires_at
    await reserve(bytes)
  }
  const stop = every(world, world.settings.artifacts.upload_ms / 3, () => void renew())
  const refused = isRefusal(reserved) ? reserved : await reserve(bytes)
  if (isRefusal(refused)) {
    await giveUp()
    return refused
  }
  return {
    blob,
    async grow(arrived, whole) {
      if (ended) return ended
      if (arrived <= bytes || (!whole && arrived - bytes < EXTENSION_BYTES)) return undefined
      const more = await reserve(arrived)
      if (isRefusal(more)) return more
      bytes = arrived
      return undefined
    },
    async publish(stored) {
      const record = lease
        ? await publishUnder(context, lease, to, stored)
        : await completed(context, to, stored)
      if (isRefusal(record)) return record
      // If this command fails, an effect of the artifact repeats it.
      await toQuota(context, 'quota.settle', { artifact, bytes: record.size_bytes })
      return record
    },
    giveUp,
    stop,
  }
}

const readyWith = (kept: ArtifactState | null, sha256: string): ArtifactRecord | undefined =>
  kept?.state === 'ready' && kept.artifact.sha256 === sha256 ? kept.artifact : undefined

async function completed(
  context: UploadContext,
  to: AddressOf<'artifact'>,
  stored: CompleteUpload,
): Promise<ArtifactRecord | Refusal> {
  const outcome = await toArtifact(context, to, 'artifact.complete', stored)
  return isRefusal(outcome) ? outcome : outcome.reply
}
/**
 * Publishes the artifact through the queue, which requires a current lease. The state of the
 * artifact, not the reply, shows whether this succeeded, because a repeat of a successful command
 * may arrive after the end of the lease.
 */
async function publishUnder(
  { world, origin }: UploadContext,
  { token, queue, facts }: Lease,
  to: AddressOf<'artifact'>,
  stored: CompleteUpload,
): Promise<ArtifactRecord | Refusal> {
  const input = { ...stored, lease_token: token, job_id: facts.job_id, artifact_id: to.id }
  const outcome = await sendNew(world, queue, 'job.publish_artifact', input, origin)
  const kept = await world.ask(to, 'content', {})
  if (isRefusal(kept)) return kept
  return readyWith(kept, stored.sha256) ?? (isRefusal(outcome) ? outcome : refuse('lease_lost'))
}
