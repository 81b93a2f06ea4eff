/** The table actor: the single writer of a table. */
import type { AnyActor } from '../actor.ts'

export const tableActor = (_: { readonly table_rows?: number }): AnyActor => ({
  kind: 'table',
  initial: () => ({}),
  decide: {},
  evolve: {},
})
