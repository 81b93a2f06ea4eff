/** Returns the bytes as lower-case hex digits, without an intermediate copy. */
export const hexOf = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex')

/**
 * Creates a generator of unique texts: 20 random hex digits, which are the same for all texts of
 * the generator, and a counter.
 */
export function uniqueTexts(random: (bytes: number) => Uint8Array): () => string {
  let prefix: string | undefined
  let count = 0
  return () => {
    prefix ??= hexOf(random(10))
    return prefix + (count++).toString(36)
  }
}
