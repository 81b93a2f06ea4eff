/**
 * A semaphore that limits the memory for files that a gateway transfers. Callers wait in FIFO order
 * while their bytes do not fit within the limit.
 */

/** Maximum total size in bytes of the files that a gateway holds in memory. */
const MAX_FILE_BYTES = 64 * 1_048_576

export interface ByteSemaphore {
  /**
   * Resolves when this number of bytes is reserved. The returned function releases them; a second
   * call has no effect.
   */
  acquire(bytes: number): Promise<() => void>
}

/**
 * Creates a semaphore.
 * @param size limit in bytes. A larger file is admitted when it is the only one.
 */
export function createByteSemaphore(size = MAX_FILE_BYTES): ByteSemaphore {
  let held = 0
  const line: { readonly bytes: number; readonly go: () => void }[] = []
  const admit = () => {
    for (
      let first = line[0];
      first && (held === 0 || held + first.bytes <= size);
      first = line[0]
    ) {
      line.shift()
      held += first.bytes
      first.go()
    }
  }
  return {
    acquire: async (bytes) => {
      await new Promise<void>((go) => {
        line.push({ bytes, go })
        admit()
      })
      let inside = true
      return () => {
        if (!inside) return
        inside = false
        held -= bytes
        admit()
      }
    },
  }
}
