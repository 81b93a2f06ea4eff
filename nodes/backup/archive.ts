/**
 * Writes and reads backups. A backup is a folder, or one tar file with the same files. A backup is
 * written under a temporary name and renamed at the end, so a folder or file with the final name is
 * always complete. Only the user who took the backup can read it, because it contains secrets.
 */
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { type FileHandle, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { StartFault } from '../process/fault.ts'
import { BLOCK, decodeHeader, encodeHeader, paddedSize } from './tar.ts'

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
 * Starts a backup: a tar file if the path ends with `.tar`, otherwise a folder. The path must be
 * unused, except that a folder may replace an empty folder.
 * @throws StartFault when the path is in use, or nothing can be written there.
 */
export async function writeArchive(place: string): Promise<ArchiveWriter> {
  const path = resolve(place)
  const partial = `${path}.partial`
  const taken = await stat(path).catch(() => undefined)
  const reusable =
    taken?.isDirectory() && !path.endsWith('.tar') && (await readdir(path)).length === 0
  if (taken && !reusable)
    throw new StartFault(`${path} already exists. Choose another path, or remove it first.`)
  const blocked = (error: Error): never => {
    throw new StartFault(
      `The backup cannot be written to ${path} (${error.message}). Choose another path with --to.`,
    )
  }
  await rm(partial, { recursive: true, force: true }).catch(blocked)
  await createFolder(dirname(path)).catch(blocked)
  const abandon = () => rm(partial, { recursive: true, force: true })
  if (!path.endsWith('.tar')) {
    await mkdir(partial, { mode: 0o700 }).catch(blocked)
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
  const file = await open(partial, 'w', 0o600).catch(blocked)
  let end = 0
  return {
    abandon: async () => {
      await file.close()
      await abandon()
    },
    add: async (name, content) => {
      const written = await pour(file, end + BLOCK, content)
      await file.write(encodeHeader(name, written.bytes), 0, BLOCK, end)
      end += BLOCK + paddedSize(written.bytes)
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
 * Creates a folder with its parents. On file systems that accept no new folders, such as `/proc`, a
 * recursive `mkdir` of Node does not end.
 */
async function createFolder(path: string): Promise<void> {
  const found = await stat(path).catch(() => undefined)
  if (found?.isDirectory()) return
  if (dirname(path) !== path) await createFolder(dirname(path))
  await mkdir(path)
}

/**
 * Opens a backup.
 * @throws StartFault when nothing exists at the path, or the file there is not an intact tar file.
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

/**
 * Returns the byte offset and size of each file in a tar file.
 * @throws StartFault when the file is not a tar file, is damaged or is incomplete.
 */
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
      const entry = decodeHeader(block)
      if (entry === 'end') break
      if (!entry)
        throw new StartFault(
          at === 0
            ? `${path} is not a backup: it is neither a folder nor a tar file.`
            : `The backup is damaged: ${path} is not a valid archive from byte ${at} on. ` +
                'Use another copy of the backup.',
        )
      const { name, size, file: isFile } = entry
      if (at + BLOCK + size > length)
        throw new StartFault(
          `The backup is damaged: ${path} ends within ${name}. Use another copy of the backup.`,
        )
      if (isFile) places.set(name, { start: at + BLOCK, size })
      at += BLOCK + paddedSize(size)
    }
  } finally {
    await file.close()
  }
  return places
}
