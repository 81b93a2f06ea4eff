/**
 * Saves forms of records that other people may change at the same time.
 *
 * Invariant: a value that was stored while the form was open is overwritten only after the user has
 * been notified of it. The condition `If-Match` also prevents overwriting a change that is made
 * between the check and the update.
 */
import { useState } from 'preact/hooks'
import { canonicalJson } from '../../protocol/rules/canonical-json.ts'
import {
  ApiError,
  type CallInput,
  type CallName,
  type CallReply,
  call,
  requestOf,
  send,
} from './client.ts'
import { apiText } from './text.ts'

type Fields = Readonly<Record<string, unknown>>
/** Maximum number of attempts. An attempt fails if the record changes after it was read. */
const MAX_ATTEMPTS = 5

/**
 * Reads a record, and updates it if `accepts` returns true. If the record changes between the read
 * and the update, both are repeated.
 * @param name a conditional command (`protocol/conditional.ts`).
 * @returns the reply, or undefined if `accepts` returned false.
 * @throws ApiError if the service refuses.
 */
export async function updateIf<N extends CallName>(
  name: N,
  input: CallInput<N>,
  accepts: (stored: Fields) => boolean,
): Promise<CallReply<N> | undefined> {
  const { path } = requestOf(name, input as Fields)
  for (let attempt = 1; ; attempt++) {
    const response = await send('GET', path)
    if (!accepts((await response.json()) as Fields)) return undefined
    const ifMatch = response.headers.get('etag')
    try {
      return await call(name, input, ifMatch === null ? {} : { ifMatch })
    } catch (error) {
      const isLate = error instanceof ApiError && error.code === 'precondition_failed'
      if (!isLate || attempt === MAX_ATTEMPTS) throw error
    }
  }
}

const isEqual = (a: unknown, b: unknown): boolean =>
  a === b || canonicalJson(a ?? null) === canonicalJson(b ?? null)

/** Saves a form with a conditional command. */
export type Save = <N extends CallName>(name: N, input: CallInput<N>) => Promise<CallReply<N>>
/**
 * Returns a function that saves a form. If somebody else has changed fields that the request sets,
 * the function throws an ApiError with the code `precondition_failed`. Its next call overwrites
 * these fields.
 * @param loaded the record that the form shows.
 */
export function saverOf(loaded: object): Save {
  let base = loaded as Fields
  return async (name, input) => {
    const { method, body = {} } = requestOf(name, input as Fields)
    const given = body as Fields
    let changed: readonly string[] = []
    const reply = await updateIf(name, input, (stored) => {
      // A PUT also removes the fields that it does not contain, so these are compared too.
      const fields = method === 'PUT' ? { ...stored, ...base, ...given } : given
      changed = Object.keys(fields).filter(
        (field) =>
          !/^updated_(at|by)$/.test(field) &&
          !isEqual(stored[field], base[field]) &&
          !isEqual(stored[field], given[field]),
      )
      if (changed.length > 0) base = stored
      return changed.length === 0
    })
    if (reply === undefined) {
      const message = apiText.changedMeanwhile(changed.join(', '))
      throw new ApiError(412, 'precondition_failed', message)
    }
    base = { ...base, ...(reply as Fields) }
    return reply
  }
}
/**
 * Provides the function that saves a form. `loaded` is the record as it was when the form was
 * opened.
 */
export const useSave = (loaded: object = {}): Save => useState(() => saverOf(loaded))[0]
