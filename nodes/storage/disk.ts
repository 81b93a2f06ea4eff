/**
 * Measures how full the disk of the embedded NATS server is. The sizes of the files are measured,
 * because nats-server reports the size of messages before compression. The free space beyond the
 * limit is a reserve for fences, checkpoints and views, and for blocks while they are compressed.
 */
import { existsSync, mkdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { readdir, stat, statfs } from 'node:fs/promises'
import { join } from 'node:path'

/** Use of the disk in bytes. Writes stop at the latest when `used` reaches `limit`. */
export interface DiskUse {
  readonly used: number
  readonly limit: number
  readonly free: number
}

/**
 * Size of the reserve, as a share of the combined size of the store and the free space. The reserve
 * never exceeds this share of the whole disk.
 */
const RESERVE = 0.1
/** Minimum size of the reserve in bytes, if the disk is large enough. */
const RESERVE_BYTES = 8 * 2 ** 20
/** Milliseconds between two measurements of the store, each of which inspects all of its files. */
const MEASURE_EVERY_MS = 30_000

/** Measured bytes: used by the store, free on its disk, and the capacity of that disk. */
interface Measured {
  readonly store: number
  readonly free: number
  readonly capacity: number
}
/**
 * Computes how full the disk is.
 * @param total the largest sum of store and free space so far, in bytes.
 * @param limit configured limit of the store in bytes, if any.
 */
export function diskUse(
  { store, free, capacity }: Measured,
  total: number,
  limit: number | undefined,
): DiskUse {
  const reserve = Math.min(capacity * RESERVE, Math.max(total * RESERVE, RESERVE_BYTES))
  if (limit === undefined)
    return { used: Math.max(0, total - free), limit: Math.max(0, total - reserve), free }
  // If other data fills the disk, the effective limit is below the configured one.
  return { used: store, limit: Math.max(0, Math.min(limit, store + free - reserve)), free }
}

/**
 * Returns the disk space of the files below a folder, in bytes. Files that vanish during the
 * measurement count as 0.
 */
async function bytesBelow(folder: string): Promise<number> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => [])
  let bytes = 0
  for (const entry of entries) {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) bytes += await bytesBelow(path)
    else bytes += ((await stat(path).catch(() => undefined))?.blocks ?? 0) * 512
  }
  return bytes
}

/**
 * Creates the gauge of a store: a function that measures how full its disk is.
 * @param limit configured limit in bytes, if any.
 * @param now a monotonic clock in milliseconds.
 */
export function createDiskGauge(
  store: string,
  limit: number | undefined,
  now = () => performance.now(),
): () => Promise<DiskUse> {
  let measured = Number.NEGATIVE_INFINITY
  let bytes = 0
  let total = 0
  return async () => {
    const { bavail, bsize, blocks } = await statfs(store)
    const [free, capacity] = [bavail * bsize, blocks * bsize]
    const use = async (): Promise<DiskUse> => {
      if (now() - measured >= MEASURE_EVERY_MS) {
        measured = now()
        bytes = await bytesBelow(store)
      }
      total = Math.max(total, bytes + free)
      return diskUse({ store: bytes, free, capacity }, total, limit)
    }
    const found = await use()
    if (found.used < found.limit || now() - measured < 1000) return found
    // Before writes are stopped, a measurement that is older than a second is repeated.
    measured = Number.NEGATIVE_INFINITY
    return use()
  }
}

/**
 * Size in bytes of the cushion, a file that is deleted when other data has filled the disk. Its
 * space is for the small files that are written at startup, and for views that catch up.
 */
const CUSHION_BYTES = 4 * 2 ** 20
const cushion = (folder: string): string => join(folder, 'reserve')
const freeOf = (folder: string): number => {
  const { bavail, bsize } = statfsSync(folder)
  return bavail * bsize
}
/** Deletes the cushion if the disk is almost full. Creates the folder if it is missing. */
export function releaseCushion(folder: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  if (freeOf(folder) < CUSHION_BYTES / 4) rmSync(cushion(folder), { force: true })
}
/** Creates the cushion if it is missing and there is space for it. */
export function keepCushion(folder: string): void {
  const file = cushion(folder)
  try {
    if (!existsSync(file) && freeOf(folder) > 3 * CUSHION_BYTES)
      writeFileSync(file, Buffer.alloc(CUSHION_BYTES), { mode: 0o600 })
  } catch {
    rmSync(file, { force: true })
  }
}
