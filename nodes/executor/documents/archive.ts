/**
 * Reads members of the ZIP archive of an Office file. Members are decompressed as a stream, which
 * ends when a limit is exceeded. The sizes that the archive declares are not trusted.
 *
 * Invariant: at most `ARCHIVE.bytes` and the output of one more chunk are decompressed.
 */
import { Unzip, type UnzipFile, UnzipInflate } from 'fflate'
import { DocumentFault } from './fault.ts'

/** Maximum decompressed size in bytes of one member, and of all members that are read together. */
const ARCHIVE = { member: 32 * 1_048_576, bytes: 64 * 1_048_576 } as const
/** Bytes of the archive that are read at a time. They decompress to about 16 MiB at most. */
const CHUNK_BYTES = 16_384

/** The decompressed members of an archive by name. */
export type Parts = ReadonlyMap<string, Uint8Array>

/**
 * Decompresses the members with matching names. If a name occurs twice, the first member is used,
 * because a later one may be a member of an embedded archive.
 * @throws {DocumentFault} when the archive is damaged, encrypted or too large.
 */
export function readParts(bytes: Uint8Array, wanted: RegExp): Parts {
  const parts = new Map<string, Uint8Array>()
  let total = 0
  const unzip = new Unzip((file) => {
    if (wanted.test(file.name)) take(file)
  })
  const take = (file: UnzipFile): void => {
    const chunks: Uint8Array[] = []
    let size = 0
    file.ondata = (error, chunk, final) => {
      if (error) throw error
      size += chunk.length
      total += chunk.length
      if (size > ARCHIVE.member || total > ARCHIVE.bytes)
        throw new DocumentFault(
          `The file is too large when it is unpacked: a part of it may have at most ` +
            `${ARCHIVE.member / 1_048_576} MiB, and all parts together ` +
            `${ARCHIVE.bytes / 1_048_576} MiB. Split the file.`,
        )
      chunks.push(chunk)
      if (final && !parts.has(file.name)) parts.set(file.name, Buffer.concat(chunks))
    }
    file.start()
  }
  unzip.register(UnzipInflate)
  try {
    for (let at = 0; at < bytes.length; at += CHUNK_BYTES)
      unzip.push(bytes.subarray(at, at + CHUNK_BYTES), at + CHUNK_BYTES >= bytes.length)
  } catch (error) {
    if (error instanceof DocumentFault) throw error
    throw new DocumentFault(
      'The file is damaged or encrypted. Save it again without a password, and upload it again.',
    )
  }
  return parts
}
