/**
 * How full the disk of the embedded NATS server is. Measured on the disk, because nats-server counts messages before
 * compression. What is left free is a reserve for fences, checkpoints and views, and for blocks while they are compressed.
 */
import { existsSync, mkdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { readdir, stat, statfs } from 'node:fs/promises'
import { join } from 'node:path'

/** Bytes. `used` of `limit`; beyond the limit nothing is written. */
export interface DiskUse {
  readonly used: number
  readonly limit: number
  readonly free: number
}

/** What stays free: a share of the store and what is free beside it, at least so many bytes; of a small disk only that share. */
const RESERVE = 0.1
const RESERVE_BYTES = 8 * 2 ** 20
/** Milliseconds between two measurements of the store, which look at each of its files. */
const MEASURE_EVERY = 30_000

/** Bytes, as measured: of the store, free on its disk, and of the whole disk. */
interface Measured {
  readonly store: number
  readonly free: number
  readonly capacity: number
}
/**
 * How full the disk is.
 * @param total the most bytes that the store and what is free have been together.
 * @param limit bytes that the store may have, when that was set.
 */
export function diskUse(
  { store, free, capacity }: Measured,
  total: number,
  limit: number | undefined,
): DiskUse {
  const reserve = Math.min(capacity * RESERVE, Math.max(total * RESERVE, RESERVE_BYTES))
  if (limit === undefined)
    return { used: Math.max(0, total - free), limit: Math.max(0, total - reserve), free }
  // A disk that is filled by others leaves the store less than its limit.
  return { used: store, limit: Math.max(0, Math.min(limit, store + free - reserve)), free }
}

/** Bytes that the files below a folder take; what vanishes meanwhile counts nothing. */
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

/** The gauge of a store. @param limit bytes, when that was set. @param now milliseconds that only grow. */
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
      if (now() - measured >= MEASURE_EVERY) {
        measured = now()
        bytes = await bytesBelow(store)
      }
      total = Math.max(total, bytes + free)
      return diskUse({ store: bytes, free, capacity }, total, limit)
    }
    const found = await use()
    if (found.used < found.limit || now() - measured < 1000) return found
    // Before anything is stopped because of an old measurement, it is made anew.
    measured = Number.NEGATIVE_INFINITY
    return use()
  }
}

/** Bytes that are kept for a disk that others have filled: for the small files of a start, and for views to catch up. */
const CUSHION = 4 * 2 ** 20
const cushion = (folder: string): string => join(folder, 'reserve')
const freeOf = (folder: string): number => {
  const { bavail, bsize } = statfsSync(folder)
  return bavail * bsize
}
/** Give up the cushion when the disk is full. The folder is made when absent. */
export function releaseCushion(folder: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  if (freeOf(folder) < CUSHION / 4) rmSync(cushion(folder), { force: true })
}
/** Have the cushion, where there is room for it. */
export function keepCushion(folder: string): void {
  const file = cushion(folder)
  try {
    if (!existsSync(file) && freeOf(folder) > 3 * CUSHION)
      writeFileSync(file, Buffer.alloc(CUSHION), { mode: 0o600 })
  } catch {
    rmSync(file, { force: true })
  }
}
