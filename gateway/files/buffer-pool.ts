/**
 * A pool of reusable buffers of one size. Without a pool, a process that transfers files would
 * leave each received chunk to the garbage collector, which frees chunks only after tens of
 * megabytes have accumulated.
 *
 * Invariant: a buffer is returned once, after its last use. Its next owner overwrites it.
 */

export interface BufferPool {
  /** Size of each buffer in bytes. */
  readonly size: number
  /** Number of buffers that are in use. */
  readonly used: number
  /** Highest number of buffers that have been in use at the same time. */
  readonly most: number
  /** Returns a buffer with arbitrary content. */
  take(): Buffer
  /** Returns a buffer to the pool. */
  give(buffer: Buffer): void
  /** Counts a buffer as no longer in use, without returning it to the pool. */
  drop(): void
}

/**
 * Creates a pool.
 * @param size size of each buffer in bytes.
 * @param keep maximum total size in bytes of the unused buffers that the pool keeps.
 */
export function createBufferPool(size: number, keep: number): BufferPool {
  const free: Buffer[] = []
  let [used, most] = [0, 0]
  return {
    size,
    get used() {
      return used
    },
    get most() {
      return most
    },
    take: () => {
      most = Math.max(most, ++used)
      return free.pop() ?? Buffer.allocUnsafeSlow(size)
    },
    give: (buffer) => {
      used--
      if ((free.length + 1) * size <= keep) free.push(buffer)
    },
    drop: () => void used--,
  }
}
