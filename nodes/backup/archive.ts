/**
 * The files of a backup: a folder, or one tar file with the same files (IEEE Std 1003.1,
 * pax/ustar). A backup is written under a temporary name and renamed at the end, so that the final
 * name always stands for a complete backup. Only its owner can read it, because it contains
 * secrets.
 */
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { type FileHandle, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { StartFault } from '../process/fault.ts'

/** Size and checksum of a written file. */
export interface Written {
  readonly bytes: number
  readonly sha256: string
}
export interface ArchiveWriter {
  add(name: string, content: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): Promise<Written>
  /** Completes the backup and gives it its final name. */
  finish(): Promise<void>
  /** Deletes the partial backup. */
  abandon(): Promise<void>
}
export interface ArchiveReader {
  readonly names: readonly string[]
  read(name: string): AsyncIterable<Uint8Array>
}

const BLOCK = 512
const text = (value: string, length: number): Buffer => Buffer.concat([Buffer.from(value)], length)
const octal = (value: number, length: number): Buffer =>
  text(`${value.toString(8).padStart(length - 1, '0')}\0`, length)
/** Encodes a file size. Sizes of 8 GiB and more are binary, as GNU tar writes them. */
const sizeField = (size: number): Buffer => {
  if (size < 8 ** 11) return octal(size, 12)
  const field = Buffer.alloc(12)
  field[0] = 0x80
  field.writeBigUInt64BE(BigInt(size), 4)
  return field
}
function header(name: string, size: number): Buffer {
  const made = Buffer.concat(
    [
      text(name, 100),
      octal(0o600, 8),
      octal(0, 8),
      octal(0, 8),
      sizeField(size),
      octal(Math.floor(Date.now() / 1000), 12),
      Buffer.alloc(8, ' '),
      text('0', 1),
      Buffer.alloc(100),
      text('ustar\0', 6),
      text('00', 2),
      Buffer.alloc(247),
    ],
    BLOCK,
  )
  octal(
    made.reduce((sum, byte) => sum + byte, 0),
    7,
  ).copy(made, 148)
  return made
}
const padded = (size: number): number => Math.ceil(size / BLOCK) * BLOCK

/** Writes a content to a file from a byte offset on. */
async function pour(
  file: FileHandle,
  at: number,
  content: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): Promise<Written> {
  const hash = createHash('sha256')
  let bytes = 0
  for await (const chunk of content) {
    hash.update(chunk)
    for (let done = 0; done < chunk.length; )
      done += (await file.write(chunk, done, chunk.length - done, at + bytes + done)).bytesWritten
    bytes += chunk.length
  }
  return { bytes, sha256: hash.digest('hex') }
}

/**
 * Starts a backup at a path that must not exist, or be an empty folder. A path that ends with
 * `.tar` becomes one file, any other a folder.
 * @throws StartFault when the path is in use.
 */
export async function writeArchive(place: string): Promise<ArchiveWriter> {
  const path = resolve(place)
  const partial = `${path}.partial`
  const taken = await stat(path).catch(() => undefined)
  if (taken && (!taken.isDirectory() || (await readdir(path)).length > 0))
    throw new StartFault(`${path} already exists. Choose another path, or remove it first.`)
  await rm(partial, { recursive: true, force: true })
  await mkdir(dirname(path), { recursive: true })
  const abandon = () => rm(partial, { recursive: true, force: true })
  if (!path.endsWith('.tar')) {
    await mkdir(partial, { mode: 0o700 })
    return {
      abandon,
      add: async (name, content) => {
        const file = await open(join(partial, name), 'w', 0o600)
        try {
          const written = await pour(file, 0, content)
          await file.sync()
          return written
        } finally {
          await file.close()
        }
      },
      finish: async () => {
        if (taken) await rm(path, { recursive: true })
        await rename(partial, path)
      },
    }
  }
  const file = await open(partial, 'w', 0o600)
  let end = 0
  return {
    abandon: async () => {
      await file.close()
      await abandon()
    },
    add: async (name, content) => {
      const written = await pour(file, end + BLOCK, content)
      await file.write(header(name, written.bytes), 0, BLOCK, end)
      end += BLOCK + padded(written.bytes)
      return written
    },
    finish: async () => {
      await file.write(Buffer.alloc(2 * BLOCK), 0, 2 * BLOCK, end)
      await file.sync()
      await file.close()
      await rename(partial, path)
    },
  }
}

/**
 * Opens a backup.
 * @throws StartFault when the path has no backup, or a damaged one.
 */
export async function readArchive(place: string): Promise<ArchiveReader> {
  const path = resolve(place)
  const found = await stat(path).catch(() => undefined)
  if (!found) throw new StartFault(`There is no backup at ${path}.`)
  const read = (
    file: string,
    range: { start: number; end: number } | object,
  ): AsyncIterable<Uint8Array> => createReadStream(file, { highWaterMark: 256 * 1024, ...range })
  if (found.isDirectory())
    return { names: await readdir(path), read: (name) => read(join(path, name), {}) }
  const places = await contents(path, found.size)
  return {
    names: [...places.keys()],
    async *read(name) {
      const { start, size } = places.get(name) ?? { start: 0, size: 0 }
      if (size > 0) yield* read(path, { start, end: start + size - 1 })
    },
  }
}

/** Returns the byte offset and size of each file in a tar file. */
async function contents(
  path: string,
  length: number,
): Promise<Map<string, { start: number; size: number }>> {
  const places = new Map<string, { start: number; size: number }>()
  const file = await open(path, 'r')
  try {
    const block = Buffer.alloc(BLOCK)
    for (let at = 0; at + BLOCK <= length; ) {
      await file.read(block, 0, BLOCK, at)
      if (block.every((byte) => byte === 0)) break
      if (block.toString('latin1', 257, 262) !== 'ustar')
        throw new StartFault(
          at === 0
            ? `${path} is not a backup: it is neither a folder nor a tar file.`
            : `The backup is damaged: ${path} is not a valid archive from byte ${at} on. ` +
                'Use another copy of the backup.',
        )
      const size =
        (block[124] ?? 0) & 0x80
          ? Number(block.readBigUInt64BE(128))
          : Number.parseInt(block.toString('latin1', 124, 135), 8)
      places.set(block.toString('utf8', 0, 100).replace(/\0.*$/s, ''), { start: at + BLOCK, size })
      at += BLOCK + padded(size)
    }
  } finally {
    await file.close()
  }
  return places
}
