/**
 * Extracts the text of an uploaded Office file as Markdown, after its upload was answered. If this
 * gateway dies, the artifact ends the conversion at its deadline.
 */
import type { ArtifactRecord } from '../../../protocol/artifacts/schema.ts'
import { errorBody, isRefusal } from '../../../protocol/errors.ts'
import { textName } from '../../../protocol/sessions/attachments.ts'
import type { Edge } from '../../call.ts'
import { inspect } from '../../files/file.ts'
import { hexOf } from '../../http/hex.ts'
import { artifactAt, type UploadContext } from './reservation.ts'

/** The outcome of a conversion, which is never an exception. */
type Outcome = { readonly state: 'ready' } | { readonly state: 'failed'; readonly error: string }

async function extract(
  { bodyMemory }: Edge,
  { files, world }: UploadContext,
  { id, name, mime_type, size_bytes }: ArtifactRecord,
  blob: string,
): Promise<Outcome> {
  const release = await bodyMemory.acquire(size_bytes)
  try {
    const bytes = await files.get(blob)
    if (!bytes) return { state: 'failed', error: 'The file cannot be read.' }
    const inspected = await inspect(Buffer.from(bytes), name, mime_type)
    if (isRefusal(inspected)) return { state: 'failed', error: errorBody(inspected).error.message }
    if (inspected.text === undefined)
      return { state: 'failed', error: 'The file is not a DOCX, XLSX or PPTX file.' }
    await files.put(textName(blob), Buffer.from(inspected.text))
    return { state: 'ready' }
  } catch (error) {
    world.log.warn(
      { event: 'artifact_conversion_failed', err: error, artifact_id: id },
      'artifact conversion failed',
    )
    return { state: 'failed', error: 'The file cannot be read.' }
  } finally {
    release()
  }
}

/** Converts an artifact and reports the outcome to it. */
export async function convert(
  edge: Edge,
  context: UploadContext,
  record: ArtifactRecord,
  blob: string,
): Promise<void> {
  const { world, project, origin } = context
  const outcome = await extract(edge, context, record, blob)
  await world.command({
    ...artifactAt(project, record.id),
    command_id: hexOf(world.random(16)),
    name: 'artifact.convert_done',
    input: outcome,
    origin,
  })
}
