/** Errors that the operator can correct, mostly at startup. */

/**
 * An error whose message describes the problem and its remedy. It is shown without a stack trace.
 */
export class StartFault extends Error {
  override readonly name = 'StartFault'
}
