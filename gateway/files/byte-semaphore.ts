/** Room in memory for the bytes of files on their way through a gateway. Who finds none waits, the first who came the first to go on. */

/** Bytes of all files that a gateway holds at a time. */
const MAX_FILE_BYTES = 64 * 1_048_576

export interface ByteSemaphore {
  /** Resolves when there is room for so many bytes; the returned function gives it back, and does nothing the second time. */
  acquire(bytes: number): Promise<() => void>
}

/** An empty room. @param size bytes; one file gets in, however large. */
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
