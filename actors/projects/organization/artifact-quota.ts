/**
 * The storage that the artifacts of all projects use, and its limit. A gateway sends each change
 * directly, and the artifact actor sends it again. The two messages can arrive in either order
 * (protocol/artifacts/commands.ts).
 *
 * Invariants:
 * S1. An artifact is pending at most once. After its upload has ended, its id is therefore stored
 *     for as long as another reservation for it could still be accepted.
 * S2. The bytes of a deleted artifact are refunded once, although two messages request it. A direct
 *     message that arrives first is recorded until the message from the artifact actor arrives,
 *     which happens exactly once. A direct message that arrives second is detected as a repeat: the
 *     refund is remembered until the time after which direct messages are ignored.
 * S3. No reservation makes the sum of used and reserved bytes exceed the limit.
 */
import type { QuotaCommands } from '../../../protocol/artifacts/commands.ts'
import type { QuotaEvent } from '../../../protocol/artifacts/events.ts'
import type { ArtifactQuota } from '../../../protocol/artifacts/schema.ts'
import { refuse } from '../../../protocol/errors.ts'
import { getOwn } from '../../../protocol/lookup.ts'
import type { Cause, Decision } from '../../actor.ts'

/**
 * The storage that artifacts use. All maps are keyed by artifact id. Times are Unix milliseconds.
 */
export interface ArtifactStorage {
  used_bytes: number
  count: number
  /** Uploads that have not finished, with their reserved bytes and deadlines. */
  readonly pending: Record<string, { readonly bytes: number; readonly expires_at: number }>
  /** Uploads that have finished, with the deadline after which no reservation is accepted. */
  readonly over: Record<string, number>
  /** Artifacts whose direct refund has arrived before the message from the artifact actor. */
  readonly awaited: Record<string, true>
  /**
   * Artifacts whose actor has sent the refund, with the time after which direct messages are
   * ignored.
   */
  readonly refunded: Record<string, number>
}
export interface StorageHolder {
  readonly artifacts: ArtifactStorage
}
export const noArtifacts = (): ArtifactStorage => ({
  used_bytes: 0,
  count: 0,
  pending: {},
  over: {},
  awaited: {},
  refunded: {},
})

/** Bytes that artifacts may use by default: 10 GiB. */
const DEFAULT_QUOTA_BYTES = 10 * 2 ** 30
/** The options of the quota. `artifact_quota`: bytes, 10 GiB by default; 0: no limit. */
export interface QuotaOptions {
  readonly artifact_quota?: number
}
const limitOf = ({ artifact_quota = DEFAULT_QUOTA_BYTES }: QuotaOptions): number =>
  artifact_quota === 0 ? Number.MAX_SAFE_INTEGER : artifact_quota

type Done<N extends keyof QuotaCommands> = Decision<QuotaEvent, QuotaCommands[N]['reply']>
const nothing = { events: [], reply: undefined }

const reservedBytes = ({ pending }: ArtifactStorage, without: string): number =>
  Object.entries(pending).reduce((sum, [id, { bytes }]) => (id === without ? sum : sum + bytes), 0)

export function reserveStorage(
  options: QuotaOptions,
  { artifacts }: StorageHolder,
  { artifact, bytes, expires_at }: QuotaCommands['quota.reserve']['input'],
  { at }: Cause,
): Done<'quota.reserve'> {
  if (at > expires_at || getOwn(artifacts.over, artifact) !== undefined)
    return refuse('artifact_conflict', { artifact_id: artifact }, 'The upload has ended.')
  const limit_bytes = limitOf(options)
  const used_bytes = artifacts.used_bytes + reservedBytes(artifacts, artifact)
  if (used_bytes + bytes > limit_bytes)
    return refuse('artifact_quota_exceeded', { used_bytes, limit_bytes, requested_bytes: bytes })
  const until = Math.max(expires_at, getOwn(artifacts.pending, artifact)?.expires_at ?? 0)
  return {
    events: [{ type: 'quota.reserved', artifact, bytes, expires_at: until }],
    reply: undefined,
  }
}
export const settleStorage = (
  { artifacts }: StorageHolder,
  { artifact, bytes }: QuotaCommands['quota.settle']['input'],
): Done<'quota.settle'> =>
  getOwn(artifacts.pending, artifact)
    ? { events: [{ type: 'quota.settled', artifact, bytes }], reply: undefined }
    : nothing
export const releaseStorage = (
  { artifacts }: StorageHolder,
  { artifact, until }: QuotaCommands['quota.release']['input'],
  { at }: Cause,
): Done<'quota.release'> =>
  getOwn(artifacts.pending, artifact) ||
  (at <= until && getOwn(artifacts.over, artifact) === undefined)
    ? { events: [{ type: 'quota.released', artifact, until }], reply: undefined }
    : nothing
export function refundStorage(
  { artifacts }: StorageHolder,
  { artifact, bytes, until, direct }: QuotaCommands['quota.refund']['input'],
  { at }: Cause,
): Done<'quota.refund'> {
  const known =
    getOwn(artifacts.refunded, artifact) !== undefined ||
    (direct && (at > until || getOwn(artifacts.awaited, artifact)))
  return known
    ? nothing
    : {
        events: [{ type: 'quota.refunded', artifact, bytes, until, ...(direct && { direct }) }],
        reply: undefined,
      }
}

type On<T extends QuotaEvent['type']> = Extract<QuotaEvent, { readonly type: T }>
/** Ends the pending upload of an artifact. Returns false if no upload was pending. */
function leave({ pending, over }: ArtifactStorage, artifact: string, until = 0): boolean {
  const known = getOwn(pending, artifact)
  const last = Math.max(until, known?.expires_at ?? 0)
  delete pending[artifact]
  if (last > 0) over[artifact] = last
  return known !== undefined
}
/** Removes expired records from the front, up to the first that has not expired. */
function forget(times: Record<string, number>, at: number): void {
  for (const id of Object.keys(times)) {
    if ((times[id] ?? 0) >= at) return
    delete times[id]
  }
}
const applied =
  <T extends QuotaEvent['type']>(change: (storage: ArtifactStorage, event: On<T>) => void) =>
  <S extends StorageHolder>(state: S, event: On<T>, at: number): S => {
    forget(state.artifacts.over, at)
    forget(state.artifacts.refunded, at)
    change(state.artifacts, event)
    return state
  }
export const evolveStorage = {
  'quota.reserved': applied<'quota.reserved'>(({ pending }, { artifact, bytes, expires_at }) => {
    pending[artifact] = { bytes, expires_at }
  }),
  'quota.settled': applied<'quota.settled'>((storage, { artifact, bytes }) => {
    leave(storage, artifact)
    storage.used_bytes += bytes
    storage.count++
  }),
  'quota.released': applied<'quota.released'>((storage, { artifact, until }) => {
    leave(storage, artifact, until)
  }),
  'quota.refunded': applied<'quota.refunded'>((storage, { artifact, bytes, until, direct }) => {
    if (direct) storage.awaited[artifact] = true
    else storage.refunded[artifact] = until
    if (!direct && getOwn(storage.awaited, artifact)) {
      delete storage.awaited[artifact]
      return
    }
    // The refund of a deleted artifact may arrive before the settlement of its upload. It then
    // frees the reserved bytes, and the settlement finds no pending upload.
    if (leave(storage, artifact)) return
    storage.used_bytes -= bytes
    storage.count--
  }),
}

/**
 * Returns the handler of the query for the storage in use. Its reply is the response of the quota
 * endpoint without `generated_at`.
 */
export const storageOf =
  (options: QuotaOptions) =>
  ({ artifacts }: StorageHolder): Omit<ArtifactQuota, 'generated_at'> => ({
    used_bytes: artifacts.used_bytes,
    limit_bytes: limitOf(options),
    artifact_count: artifacts.count,
    pending_count: Object.keys(artifacts.pending).length,
  })
