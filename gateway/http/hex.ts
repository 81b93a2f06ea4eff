/** Returns the bytes as lower-case hex digits, without an intermediate copy. */
export const hexOf = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex')

/**
 * Creates a generator of unique texts of at least 24 hex digits: 16 random digits, which are the
 * same for all texts of the generator, and a counter.
 */
export function uniqueTexts(random: (bytes: number) => Uint8Array): () => string {
  const prefix = hexOf(random(8))
  let count = 0x10000000
  return () => prefix + (count++).toString(16)
}
