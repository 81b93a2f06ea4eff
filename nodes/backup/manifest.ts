/**
 * The manifest of a backup: its contents, its source, and the checksums that show whether it is
 * intact.
 */
import { createHash } from 'node:crypto'
import type { Copied } from '../nats/journal/copy.ts'
import { StartFault } from '../process/fault.ts'
import type { ArchiveReader, Written } from './archive.ts'

/** One stream of the backup. */
export interface StreamCopy extends Copied, Written {
  readonly stream: string
  readonly file: string
}
export interface Manifest {
  readonly format: 1
  readonly created_at: string
  readonly baton: string
  readonly nats_server: string
  readonly partitions: number
  readonly shards: number
  readonly replicas: number
  /**
   * Prefix of names on the NATS servers. Absent when the names had no prefix. Stored messages
   * contain the prefix, so a restore needs the same prefix.
   */
  readonly prefix?: string
  readonly streams: readonly StreamCopy[]
  /** The file with the records of the installation. */
  readonly installation: Written & { readonly file: string }
}
/**
 * Name of the manifest in the archive. The manifest is written last, so its presence shows that the
 * backup is complete.
 */
export const MANIFEST = 'manifest.json'

const whole = async (content: AsyncIterable<Uint8Array>): Promise<Buffer> => {
  const chunks: Uint8Array[] = []
  for await (const chunk of content) chunks.push(chunk)
  return Buffer.concat(chunks)
}
/** Returns the text of a file in the archive. */
export const textOf = async (archive: ArchiveReader, name: string): Promise<string> =>
  (await whole(archive.read(name))).toString()

/**
 * Reads the manifest.
 * @throws StartFault when the backup has no manifest, or its format is unknown to this release.
 */
export async function readManifest(archive: ArchiveReader, place: string): Promise<Manifest> {
  if (!archive.names.includes(MANIFEST))
    throw new StartFault(
      `${place} has no ${MANIFEST}: it is not a backup, or the backup was not completed. Use another one.`,
    )
  const manifest = JSON.parse(await textOf(archive, MANIFEST)) as Manifest
  if (manifest.format !== 1)
    throw new StartFault(
      `${place} has the format ${String(manifest.format)} and was taken by Baton ${manifest.baton}. ` +
        `Restore it with that release or a newer one.`,
    )
  return manifest
}

/**
 * Reads every file that the manifest lists, and compares its size and checksum.
 * @param seen receives the size in bytes of each chunk read.
 * @throws StartFault that names the first file that is missing or differs.
 */
export async function verify(
  archive: ArchiveReader,
  { streams, installation }: Manifest,
  seen: (bytes: number) => void,
): Promise<void> {
  for (const { file, bytes, sha256 } of [installation, ...streams]) {
    const hash = createHash('sha256')
    let size = 0
    if (!archive.names.includes(file))
      throw new StartFault(
        `The backup is damaged: ${file} is missing. Use another copy of the backup.`,
      )
    for await (const chunk of archive.read(file)) {
      hash.update(chunk)
      size += chunk.length
      seen(chunk.length)
    }
    if (size !== bytes || hash.digest('hex') !== sha256)
      throw new StartFault(
        'The backup is damaged: ' +
          `${file} has ${size} bytes (${bytes} expected) or another checksum. ` +
          'Use another copy of the backup.',
      )
  }
}
