/** The actions that read, write and delete files of the workspace. */
import { randomUUID } from 'node:crypto'
import {
  constants,
  type FileHandle,
  lstat,
  open,
  rename,
  rm,
  rmdir,
  unlink,
} from 'node:fs/promises'
import { resultSizes } from '../../../protocol/environments/result-sizes.ts'
import type { Action, Parameters } from '../../worker/options.ts'
import { ActionFault, choice, flag, optionalText, requiredText, wholeNumber } from '../fault.ts'
import { endOfCharacter } from '../process/output.ts'
import type { Entry, Workspace } from '../workspace.ts'

const { O_APPEND, O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_WRONLY } = constants
/** Permission bits of new files. */
const NEW_FILE = 0o644
const encodings = ['text', 'base64'] as const

/** Opens a regular file, without following a link or blocking on a pipe. */
export async function openFile({ path, shown }: Entry, flags = O_RDONLY): Promise<FileHandle> {
  const handle = await open(path, flags | O_NOFOLLOW | O_NONBLOCK, NEW_FILE)
  const status = await handle.stat()
  if (status.isFile()) return handle
  await handle.close()
  throw status.isDirectory()
    ? new ActionFault('is_a_directory', `${shown} is a folder`)
    : new ActionFault('not_a_file', `${shown} is not a regular file`)
}

/**
 * Reads part of a file. Text is cut at a character boundary, unless not even one character fits.
 */
export const readFile =
  (workspace: Workspace): Action =>
  (parameters) => {
    const encoding = choice(parameters, 'encoding', encodings)
    const offset = wholeNumber(parameters, 'offset', {
      standard: 0,
      minimum: 0,
      maximum: Number.MAX_SAFE_INTEGER,
    })
    const limit = wholeNumber(parameters, 'max_bytes', {
      standard: resultSizes.usual,
      maximum: resultSizes.most,
    })
    return workspace.use(requiredText(parameters, 'path'), {}, async (entry) => {
      const handle = await openFile(entry)
      try {
        const { size } = await handle.stat()
        let bytes = await readAt(handle, offset, limit)
        const rest = offset + bytes.length < size
        const whole = encoding === 'text' && rest ? endOfCharacter(bytes) : bytes.length
        if (whole > 0) bytes = bytes.subarray(0, whole)
        const truncated = offset + bytes.length < size
        return {
          path: entry.shown,
          encoding,
          ...(encoding === 'base64' ? { content: bytes.toString('base64') } : asText(bytes)),
          truncated,
          ...(truncated && { next_offset: offset + bytes.length }),
        }
      } finally {
        await handle.close()
      }
    })
  }
async function readAt(handle: FileHandle, offset: number, limit: number): Promise<Buffer> {
  const bytes = Buffer.alloc(limit)
  let filled = 0
  while (filled < limit) {
    const { bytesRead } = await handle.read(bytes, filled, limit - filled, offset + filled)
    if (bytesRead === 0) break
    filled += bytesRead
  }
  return bytes.subarray(0, filled)
}
function asText(bytes: Buffer): { content: string; note?: string } {
  try {
    const content = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
    if (!content.includes('\0')) return { content }
  } catch {
    // The bytes are not valid UTF-8, so they are decoded below with replacement characters and a
    // note.
  }
  return {
    content: bytes.toString('utf8'),
    note: 'This is not UTF-8 text. Invalid bytes are shown as U+FFFD; use base64 to get all bytes.',
  }
}

/** Writes a file: replaces its content or appends to it. */
export const writeFile =
  (workspace: Workspace): Action =>
  (parameters) => {
    const bytes = contentOf(parameters)
    const mode = modeOf(parameters)
    const append = flag(parameters, 'append')
    const options = { create: true }
    return workspace.use(requiredText(parameters, 'path'), options, async (entry) => {
      await (append ? appendTo(entry, bytes, mode) : replace(entry, bytes, mode))
      return { path: entry.shown, bytes_written: bytes.length }
    })
  }
function contentOf(parameters: Parameters): Buffer {
  const content = parameters['content']
  if (typeof content !== 'string')
    throw new ActionFault('invalid_parameters', 'content must be a text')
  if (choice(parameters, 'encoding', encodings) === 'text') return Buffer.from(content)
  if (!/^[A-Za-z0-9+/\s]*={0,2}\s*$/.test(content))
    throw new ActionFault('invalid_parameters', 'content must be base64')
  return Buffer.from(content, 'base64')
}
function modeOf(parameters: Parameters): number | undefined {
  const text = optionalText(parameters, 'mode')
  if (text === undefined) return undefined
  if (!/^[0-7]{3,4}$/.test(text))
    throw new ActionFault('invalid_parameters', 'mode must be three or four octal digits')
  return Number.parseInt(text, 8)
}
async function appendTo(entry: Entry, bytes: Buffer, mode: number | undefined): Promise<void> {
  const handle = await openFile(entry, O_WRONLY | O_CREAT | O_APPEND)
  try {
    await handle.writeFile(bytes)
    if (mode !== undefined) await handle.chmod(mode)
  } finally {
    await handle.close()
  }
}
/** Replaces a file atomically. The mode is preserved unless the call sets one. */
async function replace(entry: Entry, bytes: Buffer, mode: number | undefined): Promise<void> {
  const before = await lstat(entry.path).catch(() => undefined)
  if (before && !before.isFile())
    throw before.isDirectory()
      ? new ActionFault('is_a_directory', `${entry.shown} is a folder`)
      : new ActionFault('not_a_file', `${entry.shown} is not a regular file`)
  await replaceWith(entry, async (handle) => {
    await handle.writeFile(bytes)
    const wanted = mode ?? (before && before.mode & 0o7777)
    if (wanted !== undefined) await handle.chmod(wanted)
  })
}
/** Writes a temporary file, and renames it to the entry after `fill` has succeeded. */
export async function replaceWith(
  entry: Entry,
  fill: (handle: FileHandle) => Promise<void>,
): Promise<void> {
  const temporary = entry.beside(`.${randomUUID()}.tmp`)
  const handle = await open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, NEW_FILE)
  try {
    try {
      await fill(handle)
    } finally {
      await handle.close()
    }
    await rename(temporary, entry.path)
  } catch (error) {
    await rm(temporary, { force: true })
    throw error
  }
}

/** Deletes a file, a link or a folder, but never the workspace itself. */
export const deleteFile =
  (workspace: Workspace): Action =>
  async (parameters) => {
    const path = requiredText(parameters, 'path')
    const recursive = flag(parameters, 'recursive')
    if (workspace.isRoot(path))
      throw new ActionFault('invalid_parameters', 'the workspace itself cannot be deleted')
    try {
      return await workspace.use(path, { link: true }, async (entry) => {
        const status = await lstat(entry.path)
        if (!status.isDirectory()) await unlink(entry.path)
        else if (recursive) await rm(entry.path, { recursive: true })
        else await rmdir(entry.path)
        return { path: entry.shown, deleted: true }
      })
    } catch (error) {
      if (!(error instanceof ActionFault) || error.name !== 'not_found') throw error
      return { path, deleted: false }
    }
  }
