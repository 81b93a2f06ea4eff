/** What all parts of the command line share: environment variables, and the error of the person at the keyboard. */

export type Environment = Readonly<Record<string, string | undefined>>

/** A mistake of the person at the keyboard: its message is shown without a stack. */
export class Mistake extends Error {
  override readonly name = 'Mistake'
}
