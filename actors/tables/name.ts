/**
 * The actor that holds a table name in its project (the holder). Its id is derived from the name.
 * Unlike a channel, a table can be renamed, so a name is taken in two steps. First, a gateway
 * claims the name for a table. Then the table, once created or renamed, confirms the claim.
 *
 * Invariants:
 * N1. At most one table has or claims the name.
 * N2. Only the latest claim can be confirmed or released, so late messages about an earlier claim
 *     of the same table change nothing.
 * N3. If a claim is not confirmed within `CLAIM_TIMEOUT_MS`, the holder asks the table about it.
 *     The name stays taken until the table answers. A table that denies the claim never uses it
 *     afterwards.
 */
import type { Api } from '../../protocol/api.ts'
import { refuse } from '../../protocol/errors.ts'
import type { TableNameCommands, TableNameEvent } from '../../protocol/tables/events.ts'
import type { Actor } from '../actor.ts'

/** Milliseconds after which the holder asks the table about an unconfirmed claim. */
export const CLAIM_TIMEOUT_MS = 30_000

interface TableNameState {
  /** The number of claims so far, which is also the number of the latest claim. */
  claims: number
  /** Id of the table that has or claims the name. */
  table?: string
  name?: string
  /** Unix milliseconds at which the claim lapses. Absent when it is confirmed or has lapsed. */
  until?: number
}

const isLatest = (
  state: TableNameState,
  { table_id, claim }: { readonly table_id: string; readonly claim: number },
): boolean => state.table === table_id && state.claims === claim

/** The actor of a table name. */
export const tableName: Actor<
  TableNameState,
  TableNameEvent,
  Api,
  'table_name',
  TableNameCommands
> = {
  kind: 'table_name',
  initial: () => ({ claims: 0 }),
  decide: {
    'table_name.claim': ({ claims, table }, { name, table_id }, { at }) => {
      if (table !== undefined && table !== table_id)
        return refuse('already_exists', { field: 'name', name })
      const claim = claims + 1
      return {
        events: [
          { type: 'table_name.claimed', name, table_id, claim, until: at + CLAIM_TIMEOUT_MS },
        ],
        reply: { claim },
      }
    },
    'table_name.confirm': (state, input) => ({
      events:
        isLatest(state, input) && state.until !== undefined
          ? [{ type: 'table_name.confirmed' }]
          : [],
      reply: undefined,
    }),
    'table_name.release': (state, input) => ({
      events: isLatest(state, input) ? [{ type: 'table_name.released' }] : [],
      reply: undefined,
    }),
    wake: ({ claims, table, name, until }, _, { at }) => ({
      events:
        until !== undefined && until <= at && table !== undefined && name !== undefined
          ? [{ type: 'table_name.claim_lapsed', name, table_id: table, claim: claims }]
          : [],
      reply: undefined,
    }),
  },
  evolve: {
    'table_name.claimed': (_, { name, table_id, claim, until }) => ({
      claims: claim,
      table: table_id,
      name,
      until,
    }),
    'table_name.confirmed': ({ until: _, ...state }) => state,
    'table_name.claim_lapsed': ({ until: _, ...state }) => state,
    'table_name.released': ({ claims }) => ({ claims }),
  },
  react: {
    'table_name.claim_lapsed': ({ name, table_id, claim }, { id: holder }) => [
      {
        tell: {
          to: { kind: 'table', id: table_id },
          name: 'table.claim_lapsed',
          input: { holder, claim, name },
        },
      },
    ],
  },
  deadline: ({ until }) => until,
}
