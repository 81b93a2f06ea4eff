/** Room in memory for the bytes of files on their way through a gateway. Who finds none waits, the first who came the first to go on. */

/** Bytes of all files that a gateway holds at a time. */
const ROOM = 64 * 1_048_576

export interface Room {
  /** Resolves when there is room for so many bytes; the returned function gives it back, and does nothing the second time. */
  enter(bytes: number): Promise<() => void>
}

/** An empty room. @param size bytes; one file gets in, however large. */
export function openRoom(size = ROOM): Room {
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
    enter: async (bytes) => {
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
