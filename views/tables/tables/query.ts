/** Queries the rows of a table by filter and sort. */
import { type Refusal, refuseFields } from '../../../protocol/errors.ts'
import { planQuery } from '../../../protocol/tables/query.ts'
import type { QueryRows, TableRow } from '../../../protocol/tables/schema.ts'
import type { InParts } from '../../define-view.ts'
import { limitOf, type Page, type Paging, page } from '../../page.ts'
import type { Store } from '../../store.ts'
import { missingTable, tableOf } from './definitions.ts'
import { rowRecord } from './rows.ts'
import { selectRows } from './selection.ts'

/**
 * Returns a page of the rows that match a filter. The `position` of the page is the sort key of its
 * last row, in base64. An unknown table and an invalid query are refused.
 */
export function* queryRows(
  store: Store,
  project: number,
  input: Pick<QueryRows, 'filter' | 'sort'> & Paging & { readonly id: string },
): InParts<Page<TableRow> | Refusal> {
  const defined = tableOf(store, project, input.id)
  if (!defined) return missingTable
  const { schema } = defined.table
  const plan = planQuery(schema, input)
  if ('faults' in plan) return refuseFields(...plan.faults)
  const [last] = input.after ?? []
  const rows = yield* selectRows(
    store,
    defined,
    plan,
    limitOf(input) + 1,
    typeof last === 'string' ? Buffer.from(last, 'base64') : undefined,
  )
  return page(
    rows,
    input,
    (row) => rowRecord(input.id, schema, row),
    ({ sort }) => [sort.toString('base64')],
  )
}
