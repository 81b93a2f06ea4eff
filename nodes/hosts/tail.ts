/** Collects the end of a log that is read in parts, with bounds on its lines and bytes. */

export interface Tail {
  add(part: Buffer): void
  /** Returns the last lines. `truncated` is true if the log has content before them. */
  end(): { readonly content: string; readonly truncated: boolean }
}

/**
 * Creates a collector that keeps the newest bytes.
 * @param lines maximum number of lines.
 * @param bytes maximum number of bytes. A character is never split.
 */
export function createTail(lines: number, bytes: number): Tail {
  let parts: Buffer[] = []
  let size = 0
  let dropped = false
  return {
    add(part) {
      parts.push(part)
      size += part.length
      // Up to twice the maximum is collected between two copies, so that copies are rare.
      if (size <= 2 * bytes) return
      const kept = Buffer.from(Buffer.concat(parts).subarray(-bytes))
      parts = [kept]
      size = kept.length
      dropped = true
    },
    end() {
      const all = Buffer.concat(parts)
      let from = Math.max(0, all.length - bytes)
      // A byte of the form 10xxxxxx is not the first byte of a character.
      if (from > 0 || dropped)
        while (from < all.length && ((all[from] ?? 0) & 0xc0) === 0x80) from++
      const text = all.subarray(from).toString()
      const end = text.endsWith('\n') ? '\n' : ''
      const found = text.slice(0, text.length - end.length).split('\n')
      const kept = found.slice(-lines)
      return {
        content: kept.join('\n') + end,
        truncated: dropped || from > 0 || kept.length < found.length,
      }
    },
  }
}
