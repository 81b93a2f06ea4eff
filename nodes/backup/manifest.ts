/** What a backup says about itself: what is in it, what it was taken from, and how to tell that it is whole. */
import { createHash } from 'node:crypto'
import { StartFault } from '../process/fault.ts'
import type { Copied } from '../nats/journal/copy.ts'
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
  /** What names began with on the NATS servers; absent: nothing. Stored messages carry it, so a restore needs the same. */
  readonly prefix?: string
  readonly streams: readonly StreamCopy[]
  /** The records of the installation, which is a file of its own. */
  readonly installation: Written & { readonly file: string }
}
/** Name of the manifest in the archive: written last, so its presence says that the backup is complete. */
export const MANIFEST = 'manifest.json'

const whole = async (content: AsyncIterable<Uint8Array>): Promise<Buffer> => {
  const chunks: Uint8Array[] = []
  for await (const chunk of content) chunks.push(chunk)
  return Buffer.concat(chunks)
}
/** The text of a file of the archive. */
export const textOf = async (archive: ArchiveReader, name: string): Promise<string> =>
  (await whole(archive.read(name))).toString()

/** The manifest. @throws StartFault when there is none, or a newer release wrote it. */
export async function readManifest(archive: ArchiveReader, place: string): Promise<Manifest> {
  if (!archive.names.includes(MANIFEST))
    throw new StartFault(
      `${place} has no ${MANIFEST}: it is no backup, or one that was not finished. Take another.`,
    )
  const manifest = JSON.parse(await textOf(archive, MANIFEST)) as Manifest
  if (manifest.format !== 1)
    throw new StartFault(
      `${place} has the format ${String(manifest.format)} and was taken by Baton ${manifest.baton}. Restore it with that release or a newer one.`,
    )
  return manifest
}

/** Read every file and compare it with the manifest. @param seen told of bytes read. @throws StartFault naming the first file that differs. */
export async function verify(
  archive: ArchiveReader,
  { streams, installation }: Manifest,
  seen: (bytes: number) => void,
): Promise<void> {
  for (const { file, bytes, sha256 } of [installation, ...streams]) {
    const hash = createHash('sha256')
    let size = 0
    if (!archive.names.includes(file))
      throw new StartFault(`The backup is damaged: ${file} is missing. Use another copy of it.`)
    for await (const chunk of archive.read(file)) {
      hash.update(chunk)
      size += chunk.length
      seen(chunk.length)
    }
    if (size !== bytes || hash.digest('hex') !== sha256)
      throw new StartFault(
        `The backup is damaged: ${file} has ${size} bytes (${bytes} expected) or another checksum. Use another copy of it.`,
      )
  }
}
