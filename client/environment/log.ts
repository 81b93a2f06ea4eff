/** Writes the worker's log to a file of bounded size, and reads the last lines of logs. */
import {
  appendFileSync,
  mkdirSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { join } from 'node:path'

/** Size in bytes above which the older half of the log is removed. */
const MAX_LOG_BYTES = 2 * 1_048_576
/** Maximum length of a line in characters. */
const MAX_LINE_LENGTH = 4000

/** Writes lines to a file. Disk errors do not affect the worker. */
export class LogFile {
  readonly #file: string
  #size: number
  /** @param folder created if it is missing. */
  constructor(folder: string) {
    mkdirSync(folder, { recursive: true })
    this.#file = join(folder, 'worker.log')
    this.#size = statSync(this.#file, { throwIfNoEntry: false })?.size ?? 0
  }
  write(line: string): void {
    const text = `${line.slice(0, MAX_LINE_LENGTH).replaceAll('\n', ' ')}\n`
    try {
      appendFileSync(this.#file, text)
      this.#size += Buffer.byteLength(text)
      if (this.#size > MAX_LOG_BYTES) this.#shorten()
    } catch {
      // The disk is full or the folder no longer exists. The worker continues without a log.
    }
  }
  #shorten(): void {
    const all = readFileSync(this.#file)
    const kept = all.subarray(all.indexOf('\n', all.length - MAX_LOG_BYTES / 2) + 1)
    writeFileSync(`${this.#file}.new`, kept)
    renameSync(`${this.#file}.new`, this.#file)
    this.#size = kept.length
  }
}

/**
 * Returns the end of a text file.
 * @param lines maximum number of lines.
 * @param max_bytes maximum number of bytes.
 */
export async function tailOf(
  handle: FileHandle,
  lines: number,
  max_bytes: number,
): Promise<string> {
  const { size } = await handle.stat()
  const length = Math.min(size, max_bytes)
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(length), 0, length, size - length)
  let bytes = buffer.subarray(0, bytesRead)
  // The first line may be incomplete unless the whole file was read.
  if (length < size) bytes = bytes.subarray(bytes.indexOf('\n') + 1)
  const text = bytes.toString('utf8')
  const ended = text.endsWith('\n')
  const all = (ended ? text.slice(0, -1) : text).split('\n')
  return all.slice(-lines).join('\n') + (ended ? '\n' : '')
}
/** Opens a log. Returns undefined if that fails, for example because the log does not exist. */
export const openLog = (folder: string, name: string): Promise<FileHandle | undefined> =>
  open(join(folder, `${name}.log`)).catch(() => undefined)
