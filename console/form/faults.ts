/** Keeps the faults that the service reported for the fields of a form. */
import { useState } from 'preact/hooks'
import { ApiError, type FieldFault } from '../api/client.ts'

interface Faults {
  readonly faults: readonly FieldFault[]
  /** Replaces the faults, for example with faults that the form has found itself. */
  readonly setFaults: (faults: readonly FieldFault[]) => void
  /**
   * Sends the form, and keeps the faults of a refusal. A success removes all faults.
   * @throws the error of the request, so that the button shows it.
   */
  readonly attempt: (send: () => Promise<unknown>) => Promise<void>
}

/**
 * Returns the faults of a form's fields, for a form whose button shows the message of a refusal. A
 * form that shows the message itself uses `useRefusal`.
 */
export function useFaults(): Faults {
  const [faults, setFaults] = useState<readonly FieldFault[]>([])
  return {
    faults,
    setFaults,
    async attempt(send) {
      try {
        await send()
        setFaults([])
      } catch (error) {
        setFaults(error instanceof ApiError ? error.fields : [])
        throw error
      }
    },
  }
}

/**
 * Reports the faults of a refused request to the parts of its form.
 * @param shown matches the fields that the form shows. An error with faults of other fields, or
 * without faults, is thrown again.
 * @throws `error`, if it is not a refusal or the form cannot show it completely.
 */
export function reportFaults(
  error: unknown,
  shown: RegExp,
  report: (faults: readonly FieldFault[]) => void,
): void {
  if (!(error instanceof ApiError)) throw error
  const { fields } = error
  report(fields)
  if (fields.length === 0 || !fields.every(({ field }) => shown.test(field))) throw error
}
