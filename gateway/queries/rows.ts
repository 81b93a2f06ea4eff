/** Reads pages of the rows of a table from its view, by query or by search. */
import { isRefusal, type Refusal } from '../../protocol/errors.ts'
import type { RowQuestion, ViewQueries } from '../../protocol/queries/views.ts'
import { DEFAULT_LIMIT } from '../listing.ts'
import type { World } from '../ports.ts'
import { type Searching, searchSemantically } from './semantic.ts'

type Reads = Pick<World, 'view'>
type Found = Promise<
  | (ViewQueries['table.query']['reply'] & {
      /** An additional field of the response: the maximum number of rows on a page. */
      readonly beside: { readonly limit: number }
    })
  | Refusal
>
const withLimit = async (
  limit: number,
  asked: Promise<ViewQueries['table.query']['reply'] | Refusal>,
): Found => {
  const page = await asked
  return isRefusal(page) ? page : { ...page, beside: { limit } }
}

/** Answers `table.query`: reads a page of the rows that match a filter. */
export const queryRows = (
  world: Reads,
  project: string,
  { limit = DEFAULT_LIMIT, ...question }: RowQuestion<'table.query'>,
): Found => withLimit(limit, world.view(project, 'table.query', { ...question, limit }))

/**
 * Answers `table.search`. Semantic and hybrid searches use the embedding model. The view alone
 * answers keyword searches.
 */
export const searchRows = (
  world: Searching,
  project: string,
  { limit = DEFAULT_LIMIT, mode, ...question }: RowQuestion<'table.search'>,
): Found =>
  withLimit(
    limit,
    mode === 'semantic' || mode === 'hybrid'
      ? searchSemantically(world, project, { ...question, mode, limit })
      : world.view(project, 'table.search', { ...question, limit }),
  )
