/**
 * Sizes of the results of environment actions. They are in a separate file, so that the chat page
 * can import them without the schemas.
 */

/** Maximum sizes in bytes. */
export const resultSizes = {
  /** The default maximum size of each stream or file in a result. */
  usual: 64_000,
  /** The largest maximum that a request can set. */
  most: 128_000,
  /** The default maximum size of a downloaded artifact. */
  download: 100 * 1_048_576,
} as const
