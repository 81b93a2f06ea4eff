/**
 * Types that are shared by the parts of the command line: environment variables, and the error for
 * user mistakes.
 */

export type Environment = Readonly<Record<string, string | undefined>>

/** Whether an error is a failed call of the operating system, such as that a file is missing. */
export const isSystemError = (error: unknown): error is NodeJS.ErrnoException =>
  error instanceof Error && 'syscall' in error

/** A user mistake. The message is shown without a stack trace. */
export class Mistake extends Error {
  override readonly name = 'Mistake'
}
