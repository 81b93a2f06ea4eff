/** Something at start that the operator can put right. */

/** The message says what is wrong and what to do next; it is shown without a stack. */
export class StartFault extends Error {
  override readonly name = 'StartFault'
}
