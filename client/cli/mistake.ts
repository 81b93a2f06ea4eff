/**
 * Types that are shared by the parts of the command line: environment variables, and the error for
 * user mistakes.
 */

export type Environment = Readonly<Record<string, string | undefined>>

/** A user mistake. The message is shown without a stack trace. */
export class Mistake extends Error {
  override readonly name = 'Mistake'
}
