/** Keeps the last refusal of a form's request, so that the form can show the message and faults. */
import { useState } from 'preact/hooks'
import { ApiError } from './client.ts'

/**
 * Returns the fault of a field, or of a part such as `permissions[2]` of the field `permissions`.
 */
export type FaultOf = (field: string) => string | undefined
/** The refusal of a form's last attempt, with functions that run an attempt and read its faults. */
interface Refusals {
  /** The refusal of the last attempt; undefined during an attempt and after a success. */
  readonly error: ApiError | undefined
  /**
   * Returns the fault that the last attempt reported for a field, such as `entries.token`, or for a
   * part of it.
   */
  readonly faultOf: FaultOf
  /**
   * Returns the refusal if the form must show it as a whole: it has no faults, or a fault of a field
   * other than these, beside which the form shows the faults.
   */
  readonly errorBeside: (...names: readonly string[]) => ApiError | undefined
  /**
   * Runs an attempt, and keeps its `ApiError` in `error`.
   * @throws any other error.
   */
  readonly attempt: (run: () => Promise<unknown>) => Promise<void>
  /** Clears the refusal, for example when the rejected input is discarded. */
  readonly clear: () => void
}

/** Whether another record has the value of this field. The message of the error says so. */
const isTaken = (error: ApiError | undefined, name: string): boolean =>
  error?.code === 'already_exists' && error.details['field'] === name

/** Whether a fault of the request is about a field of the form, or a part of it. */
const concerns = (field: string, name: string): boolean =>
  field === name || (field.startsWith(name) && /^[.[]/.test(field.slice(name.length)))

/** Whether a refusal has no faults, or a fault of a field other than these. */
export const hasOtherFaults = (
  { fields }: Pick<ApiError, 'fields'>,
  names: readonly string[],
): boolean =>
  fields.length === 0 || fields.some(({ field }) => !names.some((name) => concerns(field, name)))

/** Provides the refusal state of one form. */
export function useRefusal(): Refusals {
  const [error, setError] = useState<ApiError>()
  return {
    error,
    faultOf: (name) =>
      error?.fields.find(({ field }) => concerns(field, name))?.message ??
      (isTaken(error, name) ? error?.message : undefined),
    errorBeside: (...names) => (error && hasOtherFaults(error, names) ? error : undefined),
    clear: () => setError(undefined),
    async attempt(run) {
      setError(undefined)
      try {
        await run()
      } catch (failure) {
        if (!(failure instanceof ApiError)) throw failure
        setError(failure)
      }
    },
  }
}
