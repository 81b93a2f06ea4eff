/**
 * The table actor: the single writer of a table's definition and rows. The decisions are in the
 * other files of this folder.
 *
 * Invariants:
 * T1. The identities of rows are unique. Every update increments the version of its row.
 * T2. Row changes are numbered 1, 2, 3, … A bulk insert is one change.
 * T3. The state does not grow with the rows: it contains the definition, counters, and a bounded
 *     window of changes. Rows are in the journal and in views. A command is decided on the current
 *     rows, or not at all: the facts that it contains are checked against the window.
 * T4. The table has a name only while the holder of the name reserves it for the table (name.ts).
 */
import type { Api } from '../../protocol/api.ts'
import type { BindingCommands, BoundEvent } from '../../protocol/blueprints/stored.ts'
import { patch } from '../../protocol/patch.ts'
import type {
  AddedTableInputs,
  NameClaim,
  TableCommands,
  TableEvent,
} from '../../protocol/tables/events.ts'
import { tableLimits } from '../../protocol/tables/schema.ts'
import type { Actor, Effect } from '../actor.ts'
import { managed, singleResource } from '../blueprints/managed.ts'
import { claimLapsed, create, remove, update } from './definition.ts'
import * as rows from './rows.ts'
import { tellAllInserted, tellDeleted, tellInserted, tellUpdated } from './source-events.ts'
import { deny, initialTable, type TableState } from './state.ts'
import {
  noteDeleted,
  noteInserted,
  noteUpdated,
  type WindowBounds,
  windowBounds,
} from './window.ts'

const resource = singleResource<TableState>('table', ({ table }) => table)

/**
 * Returns the commands that confirm or release claims of the table, for the holders of the claimed
 * names.
 */
const answerClaim = (
  name: 'table_name.confirm' | 'table_name.release',
  table_id: string,
  claims: readonly (NameClaim | undefined)[],
): Effect[] =>
  claims.flatMap((each) =>
    each
      ? [
          {
            tell: {
              to: { kind: 'table_name', id: each.holder },
              name,
              input: { table_id, claim: each.claim },
            },
          },
        ]
      : [],
  )

/**
 * Creates the table actor.
 * @param brand the configured brand, the prefix of reserved tags.
 * @param table_rows maximum number of rows of a table.
 * @param window bounds of the window of recent changes.
 */
export const tableActor = ({
  brand,
  table_rows = tableLimits.rows,
  window = windowBounds,
}: {
  readonly brand: string
  readonly table_rows?: number
  readonly window?: WindowBounds
}): Actor<
  TableState,
  TableEvent | BoundEvent,
  Api,
  'table',
  TableCommands & BindingCommands,
  AddedTableInputs
> => ({
  kind: 'table',
  initial: initialTable,
  decide: {
    'table.create': managed(resource.managed, 'create', create),
    'table.update': managed(resource.managed, 'change', update(brand)),
    'table.delete': managed(resource.managed, 'delete', remove),
    ...resource.arms,
    'table.claim_lapsed': claimLapsed,
    'row.insert': rows.insert(table_rows),
    'row.bulk': rows.bulk(table_rows),
    'row.upsert': rows.upsert(table_rows),
    'row.update': rows.update,
    'row.delete': rows.remove,
  },
  records: { 'table.update': ({ table }) => table },
  evolve: {
    'table.created': (state, { table, claim }) => ({ ...state, table, claim }),
    'table.updated': (state, { table, claim, released }) => {
      if (released) deny(state, released)
      return {
        ...state,
        ...(state.table && { table: patch(state.table, table) }),
        ...(claim && { claim }),
      }
    },
    'table.deleted': () => ({ ...initialTable(), deleted: true }),
    'table.name_kept': (state, { claim }) => ({ ...state, claim }),
    ...resource.evolve,
    'table.claim_denied': (state, { claim }) => {
      deny(state, claim)
      return state
    },
    'table.row_inserted': (state, { row, change }) => {
      noteInserted(state.window, [row], change, window)
      return { ...state, change, rows: state.rows + 1 }
    },
    'table.rows_inserted': (state, { rows, change }) => {
      noteInserted(state.window, rows, change, window)
      return { ...state, change, rows: state.rows + rows.length }
    },
    'table.row_updated': (state, { row, previous_identity, change }) => {
      noteUpdated(state.window, row, previous_identity, change, window)
      return { ...state, change }
    },
    'table.row_deleted': (state, { row, change }) => {
      noteDeleted(state.window, row, change, window)
      return { ...state, change, rows: state.rows - 1 }
    },
  },
  react: {
    'table.created': ({ claim }, { id }) => answerClaim('table_name.confirm', id, [claim]),
    'table.updated': ({ claim, released }, { id }) => [
      ...answerClaim('table_name.confirm', id, [claim]),
      ...answerClaim('table_name.release', id, [released]),
    ],
    'table.deleted': ({ released }, { id }) => answerClaim('table_name.release', id, [released]),
    'table.name_kept': ({ claim }, { id }) => answerClaim('table_name.confirm', id, [claim]),
    'table.claim_denied': ({ claim }, { id }) => answerClaim('table_name.release', id, [claim]),
    'table.row_inserted': tellInserted,
    'table.rows_inserted': tellAllInserted,
    'table.row_updated': tellUpdated,
    'table.row_deleted': tellDeleted,
  },
  ask: {
    definition: ({ table }) => table ?? null,
    resource: (state) => resource.asked(state, { is_empty: state.rows === 0 }),
  },
  ended: ({ deleted }) => deleted === true,
})
