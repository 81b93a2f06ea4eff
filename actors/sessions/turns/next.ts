/**
 * The type `TurnStep`: what a turn does after its generation or segment has been handled.
 * Generations and segments return a `TurnStep` instead of advancing the turn themselves, so they do
 * not depend on the lifecycle in `turns.ts`. There, `applyStep` acts on the `TurnStep`.
 */
import type { Ending } from '../../../protocol/sessions/bookkeeping.ts'
import type { TurnUpsert } from '../../../protocol/sessions/schema.ts'

/** The wait that the record of a suspended turn shows. */
export type Wait = NonNullable<TurnUpsert['wait']>
/**
 * `advance`: the turn takes the next step immediately. `end`: the turn ends with this outcome.
 * `wait`: the turn is suspended until an answer arrives. `undefined`: the turn continues when a job
 * or a question is settled.
 */
export type TurnStep = 'advance' | { readonly end: Ending } | { readonly wait: Wait } | undefined

/** Returns the `TurnStep` that ends a turn with an error. */
export const failureStep = (error_type: string, error_message: string): TurnStep => ({
  end: { status: 'failed', error_type, error_message },
})
