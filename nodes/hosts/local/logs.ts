/**
 * The log files of an environment. Before a file would exceed its maximum size, it is renamed to
 * `<name>.1`, which replaces an earlier `<name>.1`. A log therefore never uses more than twice that
 * size.
 */
import { constants, type FileHandle, open, readlink, rename } from 'node:fs/promises'
import type { LogRequest } from '../provider.ts'

/** Maximum size of a log file in bytes. */
const MAX_LOG_BYTES = 4 * 2 ** 20

/** A log that one process writes. */
export interface LogFile {
  /** Appends a chunk. Resolves when the chunk is written, which provides backpressure. */
  write(chunk: Buffer): Promise<void>
  close(): Promise<void>
}

/** Opens a log for writing. */
export async function openLog(path: string, maxBytes = MAX_LOG_BYTES): Promise<LogFile> {
  const append = () => open(path, 'a', 0o600)
  let file = await append()
  let { size } = await file.stat()
  const write = async (chunk: Buffer): Promise<void> => {
    if (size > 0 && size + chunk.length > maxBytes) {
      await file.close()
      await rename(path, `${path}.1`)
      file = await append()
      size = 0
    }
    await file.appendFile(chunk)
    size += chunk.length
  }
  let last: Promise<unknown> = Promise.resolve()
  const inOrder = <T>(work: () => Promise<T>): Promise<T> => {
    const done = last.then(work)
    last = done.catch(() => {})
    return done
  }
  return {
    write: (chunk) => inOrder(() => write(chunk)),
    close: () => inOrder(() => file.close()),
  }
}

/**
 * Opens a log for reading, if it is a regular file at exactly this path. Workers can replace some
 * logs with a link to a file of the host, or with a pipe that blocks its reader.
 */
async function openRegular(path: string): Promise<FileHandle | undefined> {
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants
  const file = await open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK).catch(() => undefined)
  if (!file) return undefined
  const stat = await file.stat()
  const opened = await readlink(`/proc/self/fd/${file.fd}`).catch(() => path)
  if (stat.isFile() && stat.nlink === 1 && opened === path) return file
  await file.close()
  return undefined
}
/** Reads the last bytes of a file. `size` is the size of the whole file. */
async function readEnd(
  path: string,
  bytes: number,
): Promise<{ readonly end: Buffer; readonly size: number }> {
  const file = await openRegular(path)
  if (!file) return { end: Buffer.alloc(0), size: 0 }
  try {
    const { size } = await file.stat()
    const end = Buffer.alloc(Math.min(size, bytes))
    const { bytesRead } = await file.read(end, 0, end.length, size - end.length)
    return { end: end.subarray(0, bytesRead), size }
  } finally {
    await file.close()
  }
}
/** Skips the remaining bytes of a UTF-8 character whose beginning is missing. */
function fromCharacter(bytes: Buffer): Buffer {
  let start = 0
  while (start < 3 && start < bytes.length && ((bytes[start] ?? 0) & 0xc0) === 0x80) start++
  return bytes.subarray(start)
}

/**
 * Returns the end of a log: at most `tail` lines and `max_bytes` bytes. No more than `max_bytes`
 * bytes are read.
 * @param path real path of the log, without symbolic links.
 */
export async function tailOf(
  path: string,
  { tail, max_bytes }: Omit<LogRequest, 'log_name'>,
): Promise<{ readonly content: string; readonly truncated: boolean }> {
  const current = await readEnd(path, max_bytes)
  const before = await readEnd(`${path}.1`, max_bytes - current.end.length)
  const bytes = Buffer.concat([before.end, current.end])
  const complete = bytes.length === current.size + before.size
  const text = (complete ? bytes : fromCharacter(bytes)).toString('utf8')
  const lines = text.split('\n')
  // The text after the last line break is a line only if it is not empty.
  const count = lines.length - (lines.at(-1) === '' ? 1 : 0)
  const skipped = Math.max(0, count - tail)
  return { content: lines.slice(skipped).join('\n'), truncated: !complete || skipped > 0 }
}
