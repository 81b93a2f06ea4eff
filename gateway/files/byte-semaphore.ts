/**
 * Limits the memory for bytes of files in transfer through a gateway. Callers wait in FIFO order
 * when the limit is reached.
 */

/** Maximum bytes of all files that a gateway holds in memory at a time. */
const MAX_FILE_BYTES = 64 * 1_048_576

export interface ByteSemaphore {
  /**
   * Resolves when so many bytes fit below the limit. The returned function releases them; a second
   * call does nothing.
   */
  acquire(bytes: number): Promise<() => void>
}

/** Creates a semaphore. @param size bytes; a single file is always admitted, however large. */
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
