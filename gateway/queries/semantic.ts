/**
 * Semantic and hybrid searches in the rows of a table. The view reports whether all current rows
 * are embedded, and ranks them. If the rows or the query cannot be embedded in time, the search is
 * refused. A search never falls back to another mode.
 */
import { isRefusal, type Refusal, refuse } from '../../protocol/errors.ts'
import type { ViewQueries } from '../../protocol/queries/views.ts'
import { isFailure, type SemanticProgress } from '../../protocol/tables/semantic.ts'
import type { World } from '../ports.ts'
import { backoffMs, sleep } from '../timing.ts'

/**
 * Maximum time in milliseconds for which a search waits until the rows are embedded, unless half of
 * `settings.deadline` is shorter.
 */
const WAIT_MS = 5000
/**
 * Initial and maximum delay before the view is queried again, in milliseconds. Each delay is twice
 * the previous one, up to the maximum.
 */
const AGAIN = { first: 20, last: 250 } as const

/** The parts of the `World` that a search uses. */
export type Searching = Pick<World, 'view' | 'embedder' | 'settings' | 'monotonic' | 'later'>

type Reply = ViewQueries['table_semantic']['reply']
type Question = Pick<
  ViewQueries['table_semantic']['input'],
  'id' | 'query' | 'mode' | 'filter' | 'limit' | 'after'
>
/**
 * Answers a search. Refused with `table_semantic_search_unavailable` if the rows or the query
 * cannot be embedded in time. The details contain the `reason` and, if rows are not embedded yet,
 * the numbers of all rows and of embedded rows.
 */
export async function searchSemantically(
  world: Searching,
  project: string,
  question: Question,
): Promise<Exclude<Reply, SemanticProgress>> {
  const { embedder } = world
  if (!embedder) return refuse('table_semantic_search_unavailable', { reason: 'not_configured' })
  const until = world.monotonic() + Math.min(WAIT_MS, world.settings.deadline / 2)
  let through: number | undefined
  let vector: string | undefined
  for (let attempt = 0; ; attempt++) {
    const last = world.monotonic() >= until
    const reply = await world.view(project, 'table_semantic', {
      ...question,
      model: embedder.model,
      ...(vector !== undefined && { vector }),
      ...(through !== undefined && { through }),
      ...(last && { count: true }),
    })
    if (isRefusal(reply) || !('ready' in reply)) return reply
    through ??= reply.through
    if (reply.ready) {
      const answer = await embedder.query(question.query)
      if (isFailure(answer)) return failed(answer.failed)
      vector = answer.vectors[0]
      continue
    }
    if (last) return unfinished(reply)
    await sleep(world, backoffMs(attempt, AGAIN))
  }
}
const unfinished = ({ rows = 0, indexed_rows = 0, fault }: SemanticProgress): Refusal =>
  refuse(
    'table_semantic_search_unavailable',
    { reason: fault ?? 'indexing', rows, indexed_rows, retry_after: 5 },
    fault === undefined
      ? `${indexed_rows} of ${rows} rows are embedded; repeat the search later, or use mode=keyword.`
      : `Rows cannot be embedded now (${fault}); repeat the search later, or use mode=keyword.`,
  )
const failed = (reason: string): Refusal =>
  refuse(
    'table_semantic_search_unavailable',
    { reason, retry_after: 5 },
    `The query cannot be embedded now (${reason}); repeat the search later, or use mode=keyword.`,
  )
