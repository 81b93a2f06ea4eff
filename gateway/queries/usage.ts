/**
 * Lists the usage events of all partitions. For a credential of a project, the list is limited to
 * the events of that project.
 */

import { parseTimestamp } from '../../protocol/common.ts'
import { isRefusal, type Refusal, refuse } from '../../protocol/errors.ts'
import { creditsOf } from '../../protocol/loops/credits.ts'
import type { RowQuestion } from '../../protocol/queries/views.ts'
import type { UsageEvent } from '../../protocol/usage/rows.ts'
import type { Call, Edge } from '../call.ts'
import { mergePages } from './merge-pages.ts'

/**
 * A page of usage events. `beside` contains totals, which the response contains in addition to the
 * items. `position` is present only when more events follow.
 */
interface UsagePage {
  readonly items: readonly UsageEvent[]
  readonly position?: unknown
  readonly beside: Readonly<Record<string, number>>
}

/** Queries every partition, and merges the pages in the order of the list. */
export async function listUsage(
  { world }: Edge,
  { caller: { scope }, query }: Call,
  question: RowQuestion<'usage.list'>,
): Promise<UsagePage | Refusal> {
  const asked = query['project_id'] as readonly string[] | undefined
  if (scope.kind === 'project' && asked?.some((id) => id !== scope.project_id))
    return refuse('forbidden', undefined, 'This key belongs to another project.')
  const answers = await world.everywhere('usage.list', {
    ...question,
    ...(scope.kind === 'project' && { project_id: [scope.project_id] }),
  })
  const sign = query['recorded_after'] === undefined ? -1 : 1
  const keyOf = ({ recorded_at, id }: UsageEvent) => `${recorded_at} ${id}`
  const merged = mergePages(answers, Number(query['limit']), (a, b) =>
    keyOf(a) < keyOf(b) ? -sign : sign,
  )
  if (isRefusal(merged)) return merged
  const { items, last, pages } = merged
  const sum = (of: 'quantity' | 'milli') =>
    pages.reduce((total, { totals }) => total + totals[of], 0)
  return {
    items,
    ...(last && { position: [parseTimestamp(last.recorded_at), last.id] }),
    beside: {
      total_raw_quantity: sum('quantity'),
      total_credit_cost: creditsOf(sum('milli')),
      total_credit_cost_milli: sum('milli'),
    },
  }
}
