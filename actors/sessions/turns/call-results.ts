/**
 * The calls of a turn's open segment: finding and settling calls, and the wait that the turn's
 * record shows. A settled call keeps its first result.
 */
import type { FieldError } from '../../../protocol/errors.ts'
import type { Call } from '../../../protocol/sessions/bookkeeping.ts'
import { limits } from '../../../protocol/sessions/limits.ts'
import type { ToolResultBlock } from '../../../protocol/sessions/turns/blocks.ts'
import { type Draft, noteCall, patchCall, turnOf } from '../draft.ts'
import { beginningOf } from '../history/shorten.ts'
import type { Turn } from '../state.ts'
import type { Wait } from './next.ts'

/** Maximum number of faults that a result lists. */
const MAX_FAULTS = 20

/**
 * The result of a call. `fine`: whether the result is shown to the model as a success; by default,
 * true only if `status` is `ok`.
 */
interface Came {
  readonly status: 'ok' | 'error' | 'cancelled'
  readonly content: string
  readonly fine?: boolean
}

/** Returns the call with this id, or undefined if the turn's open segment does not contain it. */
export const callOf = (draft: Draft, id: string, call: string): Call | undefined =>
  turnOf(draft, id)?.work.segment?.calls[call]

/** Settles a call with its result. */
export function settleCall(
  draft: Draft,
  id: string,
  call: string,
  { status, content, fine = status === 'ok' }: Came,
): void {
  const known = callOf(draft, id, call)
  if (!known || known.state === 'done') return
  const result: ToolResultBlock = {
    type: 'tool_result',
    tool_use_id: call,
    content: beginningOf(content, fine ? limits.results : limits.fault),
    ...(!fine && { is_error: true }),
  }
  patchCall(draft, id, known.index, { status, progress: null })
  noteCall(draft, id, call, { state: 'done', result })
}
/** Settles a call with an error if its arguments have faults. Returns whether there are faults. */
export function rejectFaultyCall(
  draft: Draft,
  id: string,
  call: string,
  faults: readonly FieldError[],
  error = 'the arguments do not match the tool',
): boolean {
  if (faults.length === 0) return false
  const content = JSON.stringify({ error, fields: faults.slice(0, MAX_FAULTS) })
  settleCall(draft, id, call, { status: 'error', content })
  return true
}
/** Returns the wait that the turn's record shows for a call. */
export const waitOf = ({ id, interaction_id = '', expires_at }: Call): Wait => ({
  kind: 'interaction',
  interaction_id,
  tool_call_id: id,
  ...(expires_at !== undefined && { expires_at }),
})
/** Returns the ids of a turn's questions that are not settled. */
export const openQuestions = ({ work }: Turn): string[] =>
  Object.values(work.segment?.calls ?? {}).flatMap(({ state, interaction_id }) =>
    (state === 'asking' || state === 'waiting') && interaction_id !== undefined
      ? [interaction_id]
      : [],
  )
