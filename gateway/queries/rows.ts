/** Pages of the rows of a table: queries and search. The view answers them. */
import { isRefusal, type Refusal, refuse } from '../../protocol/errors.ts'
import type { RowQuestion } from '../../protocol/queries/views.ts'
import { type Call, type Edge, scopeId } from '../call.ts'
import { DEFAULT_LIMIT } from '../listing.ts'

/**
 * Lists rows, and adds the number of rows of a full page to the answer. Search by meaning is refused
 * with `table_semantic_search_unavailable`, because no index for it exists.
 */
export async function listRows<N extends 'table.query' | 'table.search'>(
  { world, ...edge }: Edge,
  call: Call,
  name: N,
  question: RowQuestion<N>,
): Promise<unknown | Refusal> {
  const { mode } = question as { readonly mode?: string }
  if (mode !== undefined && mode !== 'keyword') return refuse('table_semantic_search_unavailable')
  const limit = question.limit ?? DEFAULT_LIMIT
  const page = await world.view(scopeId({ world, ...edge }, call), name, { ...question, limit })
  return isRefusal(page) ? page : { ...page, beside: { limit } }
}
