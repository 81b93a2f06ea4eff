/**
 * What a turn does after a part of it has been decided. Generations and segments return it instead
 * of advancing the turn themselves, so they do not depend on the lifecycle in `turns.ts`, which
 * carries it out with `follow`.
 */
import type { Ending } from '../../../protocol/sessions/bookkeeping.ts'
import type { TurnUpsert } from '../../../protocol/sessions/schema.ts'

/** The wait that the record of a suspended turn shows. */
export type Wait = NonNullable<TurnUpsert['wait']>
/**
 * `advance`: take the next step at once. `end`: end with this outcome. `wait`: suspend until an
 * answer arrives. `undefined`: nothing to do until a job or a question is settled.
 */
export type Next = 'advance' | { readonly end: Ending } | { readonly wait: Wait } | undefined

/** The turn ends with an error. */
export const failed = (error_type: string, error_message: string): Next => ({
  end: { status: 'failed', error_type, error_message },
})
