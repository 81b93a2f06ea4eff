/**
 * The list of usage events of all partitions. For a credential of a project, the list is limited to
 * the events of that project.
 */

import { parseTimestamp } from '../../protocol/common.ts'
import { isRefusal, type Refusal, refuse } from '../../protocol/errors.ts'
import { creditsOf } from '../../protocol/loops/credits.ts'
import type { RowQuestion } from '../../protocol/queries/views.ts'
import type { UsageEvent } from '../../protocol/usage/rows.ts'
import type { Call, Edge } from '../call.ts'

/**
 * A page with the totals that the answer contains next to its items. `position` is present only
 * when more events follow.
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
  const refused = answers.find(isRefusal)
  if (refused) return refused
  const parts = answers.flatMap((answer) => (isRefusal(answer) ? [] : [answer]))
  const sign = query['recorded_after'] === undefined ? -1 : 1
  const keyOf = ({ recorded_at, id }: UsageEvent) => `${recorded_at} ${id}`
  const all = parts
    .flatMap(({ items }) => items)
    .sort((a, b) => (keyOf(a) < keyOf(b) ? -sign : sign))
  const items = all.slice(0, Number(query['limit']))
  const last = items.at(-1)
  const more =
    last !== undefined &&
    (all.length > items.length || parts.some(({ position }) => position !== undefined))
  const sum = (of: 'quantity' | 'milli') =>
    parts.reduce((total, { totals }) => total + totals[of], 0)
  return {
    items,
    ...(more && { position: [parseTimestamp(last.recorded_at), last.id] }),
    beside: {
      total_raw_quantity: sum('quantity'),
      total_credit_cost: creditsOf(sum('milli')),
      total_credit_cost_milli: sum('milli'),
    },
  }
}
