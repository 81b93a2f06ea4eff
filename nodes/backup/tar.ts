/**
 * The headers of a tar file (IEEE Std 1003.1, pax/ustar), encoded and decoded by node-tar. The
 * streams of node-tar and tar-stream are not used. Their writers need the size of an entry before
 * its content, but the size of a copied stream is known only at the end. Their readers read all
 * contents to reach the last entry, which is the manifest.
 */
import { Header } from 'tar/header'

/** Size of a header in bytes. Contents are padded to a multiple of this size. */
export const BLOCK = 512

/** An entry as its header describes it. */
export interface TarEntry {
  readonly name: string
  /** Size of the content that follows the header, in bytes. */
  readonly size: number
  /** Whether the entry is a file rather than a folder, a link or an extension of the format. */
  readonly file: boolean
}

/** Encodes the header of a file. Sizes of 8 GiB and more are binary, as GNU tar writes them. */
export function encodeHeader(name: string, size: number): Buffer {
  const block = Buffer.alloc(BLOCK)
  const mtime = new Date()
  new Header({ path: name, mode: 0o600, uid: 0, gid: 0, size, mtime, type: 'File' }).encode(block)
  return block
}

/**
 * Decodes a header. Returns `end` for the block that ends an archive, and undefined for a block
 * that is damaged or not a header.
 */
export function decodeHeader(block: Buffer): TarEntry | 'end' | undefined {
  try {
    const { nullBlock, cksumValid, path, size, type } = new Header(block)
    if (nullBlock) return 'end'
    if (!cksumValid || path === undefined || size === undefined) return undefined
    return {
      name: path,
      size,
      file: type === 'File' || type === 'OldFile' || type === 'ContiguousFile',
    }
  } catch {
    // A number in the header has an invalid encoding or is too large.
    return undefined
  }
}

/** Returns the size of content with its padding, in bytes. */
export const paddedSize = (size: number): number => Math.ceil(size / BLOCK) * BLOCK
