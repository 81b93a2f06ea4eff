/**
 * Receives uploads of artifacts. The body is read part by part, and the file is streamed to the
 * object store. Before that, the caller, its lease and its idempotency key are checked, and the
 * storage is reserved (`reservation.ts`). The artifact becomes visible once all bytes are stored
 * and the whole form is valid. An upload that ends in any other way leaves no artifact and no
 * bytes.
 */
import { type ArtifactRecord, publishedArtifact } from '../../../protocol/artifacts/schema.ts'
import { isRefusal, type Refusal, refuse, refuseFields } from '../../../protocol/errors.ts'
import { slotOf } from '../../../protocol/ids.ts'
import { authorize } from '../../auth/authorize.ts'
import { type Call, type Edge, scopeId } from '../../call.ts'
import { boundaryOf } from '../../files/multipart.ts'
import { type ArrivingPart, arrivingParts, UploadRefused } from '../../files/streaming/form.ts'
import { type Upload, UploadCut } from '../../files/upload.ts'
import { recheckAdmission } from '../../guard.ts'
import { keyOf } from '../../http/idempotency.ts'
import { originOf } from '../../http/origin.ts'
import type { Answer } from '../../http/respond.ts'
import type { FileDigest, Files, World } from '../../ports.ts'
import { claimKey, findLease } from './claim.ts'
import { ArtifactFields } from './form.ts'
import { type Lease, type Reservation, reserveUpload, type UploadContext } from './reservation.ts'

/** Maximum size of a form without its file, in bytes: delimiters, headers and other fields. */
export const MAX_FORM_OVERHEAD_BYTES = 262_144

/**
 * The names of the headers with the lease token of a worker, in lower case. Workers that do not know
 * the brand of the installation send the header of the default brand.
 */
export const leaseHeaders = (brand: string): readonly string[] => [
  `x-${brand.toLowerCase()}-lease-token`,
  'x-service-lease-token',
]

const NO_FILE = refuseFields({ field: 'file', message: 'is required' })
const TWO_FILES = refuseFields({ field: 'file', message: 'appears more than once' })

/**
 * Receives an upload and answers with its artifact. The rest of a refused or repeated upload is
 * discarded before the response.
 */
export async function receiveArtifact(edge: Edge, call: Call): Promise<Answer | Refusal> {
  const { upload } = call.incoming
  if (!upload) return NO_FILE
  const outcome = await admitUpload(edge, call, upload)
  await upload.discard()
  return outcome
}

/**
 * Refuses a caller that may not upload. An upload under a lease requires `work.execute` instead of
 * `project.edit`. The worker of an environment needs no permission for such an upload.
 */
const denied = ({ world }: Edge, { caller }: Call, leased: boolean): Refusal | undefined =>
  caller.environment && leased
    ? undefined
    : authorize(world.settings.brand, leased ? 'work.execute' : 'project.edit', caller)

/** Refuses an upload if the caller is the worker of an environment and does not hold the lease. */
async function checkHolder(
  { world }: Edge,
  { caller }: Call,
  project: string,
  { facts }: Lease,
): Promise<Refusal | undefined> {
  if (!caller.environment) return undefined
  const { id } = caller.environment
  const standing = await world.ask({ project, kind: 'environment', id }, 'standing', {})
  if (standing && isRefusal(standing)) return standing
  return standing?.worker.session === facts.worker_session_id
    ? undefined
    : refuse('permission_denied', undefined, 'The lease belongs to another worker.')
}

async function admitUpload(edge: Edge, call: Call, upload: Upload): Promise<Answer | Refusal> {
  const { world } = edge
  const { incoming } = call
  const project = scopeId(edge, call)
  const token = leaseHeaders(world.settings.brand)
    .map((name) => incoming.further(name))
    .find((given) => given !== undefined)
  const refused = denied(edge, call, token !== undefined)
  if (refused) return refused
  const type = incoming.header('content-type')
  const boundary = boundaryOf(type)
  if (boundary === undefined)
    return refuse(
      'unsupported_media_type',
      { content_type: type ?? '' },
      'Send the file as multipart/form-data.',
    )
  const { files } = world
  if (!files) return refuse('artifact_storage_unavailable')
  const key = keyOf(call)
  if (isRefusal(key)) return key
  const origin = originOf(world, call.caller, incoming, call.request_id)
  const lease = token === undefined ? undefined : await findLease(world, project, token)
  const lost = lease && isRefusal(lease) ? lease : undefined
  if (lost && lost.refused !== 'lease_lost') return lost
  const held = lease && !isRefusal(lease) ? lease : undefined
  const foreign = held && (await checkHolder(edge, call, project, held))
  if (foreign) return foreign
  const artifact = world.id('artifact', undefined, held && slotOf(held.facts.job_id))
  // A repeated upload is answered with the artifact of the first one, even after the lease ended.
  const known =
    key === undefined ? undefined : await claimKey({ world, project, origin }, key, artifact)
  if (known) return isRefusal(known) ? known : { status: 200, body: publishedArtifact(known) }
  if (lost) return lost
  const context: UploadContext = { world, files, project, origin, lease: held }
  return receive(edge, call, context, artifact, upload, boundary)
}

async function receive(
  edge: Edge,
  call: Call,
  context: UploadContext,
  artifact: string,
  upload: Upload,
  boundary: string,
): Promise<Answer | Refusal> {
  const { world, files } = context
  const limit = world.settings.artifacts.max_bytes
  const fields = new ArtifactFields(limit)
  let reservation: Reservation | undefined
  try {
    let file: { readonly stored: FileDigest; readonly type: string | undefined } | undefined
    for await (const part of arrivingParts(upload.chunks(edge.uploadTurns), boundary)) {
      if (part.name !== 'file') {
        await fields.take(part)
        continue
      }
      if (reservation) throw new UploadRefused(TWO_FILES)
      const reserved = await reserveUpload(context, artifact, fields.size)
      if (isRefusal(reserved)) return reserved
      reservation = reserved
      const stored = await store(
        world,
        files,
        reservation,
        arriving(part, fields, reservation, limit),
        upload.ended,
      )
      file = { stored, type: part.type }
    }
    if (!reservation || !file) return NO_FILE
    const form = fields.whole(file.type)
    fields.checkSize(file.stored.size_bytes, true)
    // An upload can take a long time, and the caller may have lost access in the meantime.
    const refused =
      (await recheckAdmission(edge, call)) ?? (await stillAllowed(edge, call, context))
    if (refused) throw new UploadRefused(refused)
    const record = await reservation.publish({ ...file.stored, ...form })
    if (isRefusal(record)) throw new UploadRefused(record)
    reservation.stop()
    return created(record)
  } catch (error) {
    const published = await reservation?.giveUp()
    if (published) return created(published)
    if (error instanceof UploadRefused) return error.refusal
    if (!(error instanceof UploadCut)) throw error
    return error.reason === 'too_large'
      ? refuse('payload_too_large', { limit })
      : refuse('bad_request')
  }
}
const created = (record: ArtifactRecord): Answer => ({
  status: 201,
  body: publishedArtifact(record),
})

const stillAllowed = async (
  edge: Edge,
  call: Call,
  { lease }: UploadContext,
): Promise<Refusal | undefined> => {
  const caller = await edge.authentication.again(call.caller)
  return isRefusal(caller) ? caller : denied(edge, { ...call, caller }, lease !== undefined)
}

/**
 * Yields the bytes of the file as they arrive. Throws `UploadRefused` when they exceed the limit or
 * the quota, or do not match the declared size.
 */
async function* arriving(
  { bytes }: ArrivingPart,
  fields: ArtifactFields,
  reservation: Reservation,
  limit: number,
): AsyncGenerator<Buffer, void> {
  let size = 0
  const check = async (whole: boolean) => {
    if (size > limit) throw new UploadRefused(refuse('payload_too_large', { limit }))
    fields.checkSize(size, whole)
    const refused = await reservation.grow(size, whole)
    if (refused) throw new UploadRefused(refused)
  }
  for await (const chunk of bytes) {
    size += chunk.length
    await check(false)
    yield chunk
  }
  await check(true)
}

/** Stores the file. Converts errors of the store to refusals, and rethrows errors of the upload. */
async function store(
  world: World,
  files: Files,
  { blob }: Reservation,
  bytes: AsyncIterable<Buffer>,
  ended: AbortSignal,
): Promise<FileDigest> {
  try {
    return await files.write(blob, bytes, ended)
  } catch (error) {
    if (error instanceof UploadRefused || error instanceof UploadCut) throw error
    world.log.warn({ event: 'file_store_failed', err: error, blob }, 'file not stored')
    throw new UploadRefused(refuse('artifact_storage_unavailable'))
  }
}
