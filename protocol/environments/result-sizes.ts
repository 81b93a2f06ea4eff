/** Sizes of results. They are separate from the actions, because the chat page needs no schemas. */

/** Sizes of the results of the actions of environments, in bytes. */
export const resultSizes = {
  /** The default maximum of each stream or file in a result. */
  usual: 64_000,
  most: 128_000,
  /** The default maximum size of a downloaded artifact. */
  download: 100 * 1_048_576,
} as const
