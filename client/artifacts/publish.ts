/** Publishes files of a job as artifacts of its run. */
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { basename } from 'node:path'
import type { ArtifactReference as JobArtifactReference } from '../../protocol/artifacts/reference.ts'
import type { Artifact } from '../../protocol/artifacts/schema.ts'
import { type PutOptions, putArtifact } from '../artifacts.ts'
import type { Transport } from '../transport.ts'

/** A reference to a published artifact, for the result of the job. `size` is in bytes. */
export type ArtifactReference = Required<JobArtifactReference>
/**
 * Options for publishing a file. `name` defaults to the last segment of the path, and is required
 * for bytes.
 */
export type PublishOptions = Partial<Pick<PutOptions, 'name' | 'mime' | 'metadata' | 'convert'>>
/** Uploads bytes, or the file at a path. */
export type Publish = (
  lease: string,
  file: string | Uint8Array,
  options: PublishOptions & { readonly signal: AbortSignal },
) => Promise<ArtifactReference>

/** Creates the function with which a worker publishes files under the lease of a job. */
export const publisherOf =
  (transport: Transport): Publish =>
  async (lease, file, options) => {
    const name = options.name ?? (typeof file === 'string' ? basename(file) : undefined)
    if (name === undefined) throw new TypeError('an artifact from bytes needs a name')
    const source =
      typeof file === 'string'
        ? { open: () => createReadStream(file), size: (await stat(file)).size }
        : { open: () => chunksOf(file), size: file.length }
    return referenceOf(await putArtifact(transport, source, { ...options, name, lease }))
  }
async function* chunksOf(bytes: Uint8Array): AsyncGenerator<Uint8Array, void> {
  yield bytes
}
const referenceOf = ({ id, name, mime_type, size_bytes, sha256 = '' }: Artifact) =>
  ({ type: 'artifact', id, name, mime: mime_type, size: size_bytes, sha256 }) as const
