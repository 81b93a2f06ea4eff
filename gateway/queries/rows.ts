/** Pages of the rows of a table: queries and search. The view answers them. */
import { isRefusal, type Refusal } from '../../protocol/errors.ts'
import type { RowQuestion } from '../../protocol/queries/views.ts'
import { type Call, type Edge, scopeId } from '../call.ts'
import { DEFAULT_LIMIT } from '../listing.ts'
import { searchSemantically } from './semantic.ts'

/** Adds the number of rows of a full page to a page. */
const withLimit = async <P extends object>(limit: number, asked: Promise<P | Refusal>) => {
  const page = await asked
  return isRefusal(page) ? page : { ...page, beside: { limit } }
}

/** Answers `table.query`. */
export const queryRows = (
  edge: Edge,
  call: Call,
  { limit = DEFAULT_LIMIT, ...question }: RowQuestion<'table.query'>,
): Promise<unknown> =>
  withLimit(limit, edge.world.view(scopeId(edge, call), 'table.query', { ...question, limit }))

/** Answers `table.search`. */
export const searchRows = (
  edge: Edge,
  call: Call,
  { limit = DEFAULT_LIMIT, mode, ...question }: RowQuestion<'table.search'>,
): Promise<unknown> =>
  withLimit(
    limit,
    mode === 'semantic' || mode === 'hybrid'
      ? searchSemantically(edge, call, { ...question, mode, limit })
      : edge.world.view(scopeId(edge, call), 'table.search', { ...question, limit }),
  )
