/** Sizes of results, apart from the actions, because the chat page needs only these. */

/** Sizes of the results of the actions of environments, in bytes. */
export const resultSizes = {
  /** What a result contains of each stream or file unless the call says otherwise. */
  usual: 64_000,
  most: 128_000,
  /** Maximum size of a downloaded artifact unless the call says otherwise. */
  download: 100 * 1_048_576,
} as const
