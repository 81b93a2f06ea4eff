/**
 * Reads artifacts: their records, their bytes, signed URLs and the used storage. A private artifact
 * is readable by its owner, and by the readers of messages in which the owner posted it. Other
 * principals receive `not_found`. Lists are answered by a view.
 */
import type { ArtifactState } from '../../../protocol/artifacts/commands.ts'
import { artifactReferences } from '../../../protocol/artifacts/reference.ts'
import { type ArtifactRecord, limits, type SignedUrl } from '../../../protocol/artifacts/schema.ts'
import { timestamp } from '../../../protocol/common.ts'
import { isRefusal, type Refusal, refuse } from '../../../protocol/errors.ts'
import { isId } from '../../../protocol/ids.ts'
import { viewerOf } from '../../auth/viewer.ts'
import { type Call, type Edge, scopeId } from '../../call.ts'
import { answerWithoutBytes, planContent } from '../../files/content.ts'
import { reportMissing } from '../../files/missing.ts'
import { whileAdmitted } from '../../guard.ts'
import { baseUrl } from '../../http/origin.ts'
import type { Incoming } from '../../http/request.ts'
import type { Answer } from '../../http/respond.ts'
import { openToken, sealToken } from '../../http/sealed-token.ts'
import { type LocalQuery, localQuery } from '../../listing.ts'
import type { World } from '../../ports.ts'
import type { Handler } from '../../serve.ts'
import { artifactAt } from './reservation.ts'

const missing = refuse('not_found', { resource: 'artifact' }, 'There is no such artifact.')
const notReady = refuse('conflict', { resource: 'artifact' }, 'The upload has not ended.')
const unavailable = refuse('artifact_storage_unavailable')

type Kept = Extract<ArtifactState, { readonly blob: string }>

/** Returns an artifact that was neither deleted nor abandoned, and the name of its blob. */
async function findKept(world: World, project: string, id: string): Promise<Kept | Refusal> {
  if (!isId(id, 'artifact')) return missing
  const kept = await world.ask(artifactAt(project, id), 'content', {})
  if (kept && isRefusal(kept)) return kept
  if (!kept || kept.state === 'abandoned' || kept.state === 'deleted') return missing
  return kept
}
/**
 * Returns `not_found` for a private artifact that the caller may not read. The artifact stores the
 * messages in which its owner posted it. The view decides whether the caller may read such a
 * message, and whether the message still names the artifact. The worker of an environment reads no
 * messages.
 */
async function refusePrivate(edge: Edge, call: Call, kept: Kept): Promise<Refusal | undefined> {
  const { caller } = call
  const { visibility, owned_by, id } = kept.artifact
  if (visibility !== 'private' || owned_by === caller.principal.id) return undefined
  if (caller.environment) return missing
  for (const { channel_id, message_id } of (kept.posts ?? []).toReversed()) {
    const message = await edge.world.view(scopeId(edge, call), 'channel.message', {
      id: channel_id,
      message_id,
      viewer: viewerOf(caller),
    })
    if (!isRefusal(message)) {
      if (artifactReferences(message.metadata).some((one) => one.id === id)) return undefined
    } else if (message.refused !== 'not_found') return message
  }
  return missing
}
const requireReady = (kept: Kept): Kept | Refusal => (kept.state === 'pending' ? notReady : kept)
/**
 * Returns `not_found` for an artifact of a session that the caller may not read. Such an artifact
 * is readable by the readers of the session and by the artifact's owner.
 */
export async function refuseUnreadable(
  edge: Edge,
  call: Call,
  kept: ArtifactState | null,
): Promise<Refusal | undefined> {
  if (!kept || kept.state === 'abandoned') return undefined
  const { caller } = call
  const { session_id, artifact } = kept
  if (session_id === undefined || artifact.owned_by === caller.principal.id) return undefined
  const closed = await edge.sessionVisibility.check(scopeId(edge, call), { session_id }, caller)
  return closed?.refused === 'not_found' ? missing : closed
}
async function findReadable(edge: Edge, call: Call): Promise<Kept | Refusal> {
  const found = await findKept(edge.world, scopeId(edge, call), call.slots['artifact_id'] ?? '')
  if (isRefusal(found)) return found
  const closed =
    (await refusePrivate(edge, call, found)) ?? (await refuseUnreadable(edge, call, found))
  return closed ?? requireReady(found)
}

/**
 * Answers with the bytes of an artifact, or with one range of the bytes. The connection closes when
 * the caller loses its access during the download.
 */
export async function sendArtifact(edge: Edge, call: Call): Promise<Answer | Refusal> {
  const found = await findReadable(edge, call)
  if (isRefusal(found)) return found
  const sent = await send(edge.world, found, call.incoming, call.query['download'] === true)
  if (isRefusal(sent) || !sent.content) return sent
  const { size, chunks } = sent.content
  return { ...sent, content: { size, chunks: whileAdmitted(edge, call, chunks) } }
}

async function send(
  world: World,
  { artifact, blob }: Kept,
  incoming: Incoming,
  download: boolean,
): Promise<Answer | Refusal> {
  const plan = planContent(artifact, incoming, download)
  const short = answerWithoutBytes(plan, artifact)
  if (short) return short
  const { status, headers, type, start, end } = plan
  const size = end - start
  // A stream that is opened but never read would occupy a connection to the store.
  if (incoming.method === 'HEAD')
    return { status, headers, type, content: { size, chunks: noBytes() } }
  const failed = (error: unknown): void =>
    world.log.warn(
      { event: 'file_read_failed', err: error, artifact_id: artifact.id },
      'file read failed',
    )
  try {
    const bytes = await world.files?.read(blob, start, end)
    if (!bytes) {
      reportMissing(world, artifact.id)
      return unavailable
    }
    const chunks = reported(bytes, failed)
    return { status, headers, type, content: { size, chunks } }
  } catch (error) {
    failed(error)
    return unavailable
  }
}
async function* noBytes(): AsyncGenerator<Uint8Array, void> {}
/** Yields `bytes` unchanged. If `bytes` throws, calls `failed` with the error and rethrows it. */
async function* reported(
  bytes: AsyncIterable<Uint8Array>,
  failed: (error: unknown) => void,
): AsyncGenerator<Uint8Array, void> {
  try {
    yield* bytes
  } catch (error) {
    failed(error)
    throw error
  }
}

/** Returns the record of an artifact, or `not_found` while its upload has not ended. */
export async function readArtifact(edge: Edge, call: Call): Promise<ArtifactRecord | Refusal> {
  const found = await findReadable(edge, call)
  return !isRefusal(found) ? found.artifact : found === notReady ? missing : found
}

const DOWNLOAD = 'artifact download'
/** Route of signed URLs below the base URL. */
const DOWNLOADS = '/v1/artifact-downloads'

/**
 * Returns a URL from which the bytes of an artifact can be read for a short time without a
 * credential.
 */
export async function signArtifact(edge: Edge, call: Call): Promise<SignedUrl | Refusal> {
  const { world } = edge
  const found = await findReadable(edge, call)
  if (isRefusal(found)) return found
  const { standard, most } = limits.signed
  const seconds = Math.min(Number(call.body['ttl_seconds'] ?? standard), most)
  const expires = world.now() + seconds * 1000
  const token = sealToken(world, DOWNLOAD, [scopeId(edge, call), found.artifact.id, expires])
  return {
    url: `${baseUrl(world.settings, call.incoming.further('host'))}${DOWNLOADS}/${token}`,
    method: 'GET',
    expires_at: timestamp(expires),
  }
}
/**
 * Handles a signed URL. An invalid or expired token is refused with `not_found`, like an unknown
 * artifact.
 */
export const downloadArtifact =
  ({ world }: Edge): Handler =>
  async (incoming) => {
    const content = openToken(world, DOWNLOAD, incoming.slots[0] ?? '')
    if (!content) return missing
    const [project, id, expires] = content as [string, string, number]
    if (world.now() >= expires) return missing
    const found = await findKept(world, project, id)
    const artifact = isRefusal(found) ? found : requireReady(found)
    return isRefusal(artifact) ? artifact : send(world, artifact, incoming, false)
  }

/** Handlers of the artifact queries, by operation name. */
export const artifactQueries: Readonly<Record<string, LocalQuery>> = {
  'artifact.quota': localQuery<'artifact.quota'>(async ({ world }) => {
    const id = world.organization()
    const used = await world.ask({ project: id, kind: 'organization', id }, 'artifact_quota', {})
    return isRefusal(used) ? used : { ...used, generated_at: timestamp(world.now()) }
  }),
}
