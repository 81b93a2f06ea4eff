/**
 * Stores and lists usage events: one row for each paid answer of a model, in runs and in turns
 * outside of runs.
 */

import { parseTimestamp, timestamp } from '../../../protocol/common.ts'
import type { PlacedEntry } from '../../../protocol/entry.ts'
import { type Refusal, refuseFields } from '../../../protocol/errors.ts'
import { creditsOf } from '../../../protocol/loops/credits.ts'
import type { RunEvent } from '../../../protocol/runs/events.ts'
import type { SessionEvent } from '../../../protocol/sessions/events.ts'
import type { UsageEvent } from '../../../protocol/usage/rows.ts'
import { allOf, type Condition, equalityConditions, isOneOf } from '../../conditions.ts'
import { type Page, type Paging, readPage } from '../../page.ts'
import type { Store } from '../../store.ts'

/** The usage that an event reports. Fields that do not apply are absent. */
interface Spent {
  readonly usage_id?: string | undefined
  readonly run_id?: string | undefined
  readonly step_key?: string | undefined
  readonly counter: string
  readonly quantity: number
  readonly milli: number
  readonly agent_turn_id?: string | undefined
  readonly provider?: string | undefined
  readonly model?: string | undefined
}

/** Applies the usage that an entry of a run records. */
export function applyRunUsage(store: Store, { cursor, entry }: PlacedEntry): void {
  for (const [index, event] of (entry.events as readonly RunEvent[]).entries()) {
    if (event.type !== 'usage.recorded') continue
    const { category, quantity, credit_cost } = event.payload ?? {}
    keep(store, entry, cursor + index, {
      run_id: entry.id,
      step_key: event.step,
      counter: String(category ?? ''),
      quantity: Number(quantity ?? 0),
      milli: Math.round(Number(credit_cost ?? 0) * 1000),
      ...event.usage,
    })
  }
}

/** Applies the usage of turns outside of runs. A run records the usage of its own turns. */
export function applySessionUsage(store: Store, { cursor, entry }: PlacedEntry): void {
  for (const [index, event] of (entry.events as readonly SessionEvent[]).entries()) {
    if (event.type !== 'turn.spent' || event.spending.run_id !== undefined) continue
    const { tokens, ...spent } = event.spending
    keep(store, entry, cursor + index, { ...spent, counter: 'llm.tokens', quantity: tokens })
  }
}

function keep(
  store: Store,
  { project, origin: { at } }: PlacedEntry['entry'],
  cursor: number,
  { usage_id, run_id = '', step_key = '', counter, quantity, milli, ...spent }: Spent,
): void {
  const { agent_turn_id = '', provider = '', model = '' } = spent
  const recorded_at = timestamp(at)
  const id = `usage_${project}_${cursor}`
  // A usage id is the id of the job that caused the usage. Events of earlier releases have no usage
  // id.
  const job_id = usage_id ?? ''
  const record: UsageEvent = {
    id,
    project_id: project,
    api_key_id: '',
    period_start: `${recorded_at.slice(0, 7)}-01T00:00:00.000Z`,
    counter,
    raw_quantity: quantity,
    credit_cost: creditsOf(milli),
    credit_cost_milli: milli,
    credit_weight_version: 1,
    zero_credits: milli === 0,
    source_type: 'agent_turn',
    source_id: agent_turn_id,
    idempotency_key: usage_id ?? id,
    run_id,
    step_id: step_key && `${run_id}:${step_key}`,
    step_key,
    job_id,
    agent_turn_id,
    provider,
    model,
    model_class: '',
    metadata: {},
    occurred_at: recorded_at,
    recorded_at,
    created_at: recorded_at,
  }
  store.append(
    'usage_events',
    id,
    project,
    at,
    record.period_start,
    counter,
    record.source_type,
    agent_turn_id,
    run_id,
    job_id,
    record.api_key_id,
    quantity,
    milli,
    JSON.stringify(record),
  )
}

/** Filters of the list. All must match. */
export interface UsageFilters extends Paging {
  readonly period_start?: string
  readonly project_id?: readonly string[]
  readonly recorded_after?: string
  readonly counter?: string
  readonly source_type?: string
  readonly source_id?: string
  readonly run_id?: string
  readonly job_id?: string
  readonly api_key_id?: string
}
const equal = ['counter', 'source_type', 'source_id', 'run_id', 'job_id', 'api_key_id'] as const
/** Sums over all events that match the filters. */
export interface UsageTotals {
  readonly quantity: number
  readonly milli: number
}

/**
 * Returns usage events of this partition, newest first; with `recorded_after`, oldest first. A
 * filter with an invalid time is refused.
 */
export function usageList(
  store: Store,
  input: UsageFilters,
): (Page<UsageEvent> & { readonly totals: UsageTotals }) | Refusal {
  const { project_id, period_start, recorded_after } = input
  const conditions: Condition[] = [
    ...equalityConditions(Object.fromEntries(equal.map((name) => [name, input[name]]))),
    ...(project_id ? [isOneOf('project', project_id)] : []),
  ]
  for (const [name, given] of Object.entries({ period_start, recorded_after })) {
    if (given === undefined) continue
    const at = parseTimestamp(given)
    if (at === undefined)
      return refuseFields({
        field: name,
        message: 'must be a date and time with an offset, such as 2031-02-03T04:05:06Z',
      })
    conditions.push(
      name === 'period_start' ? ['period_start = ?', timestamp(at)] : ['recorded_at >= ?', at],
    )
  }
  const matching = allOf(conditions)
  const totals = store.one<UsageTotals>(
    `SELECT COALESCE(SUM(quantity), 0) AS quantity, COALESCE(SUM(milli), 0) AS milli
     FROM usage_events
     WHERE ${matching.sql}`,
    ...matching.values,
  ) ?? { quantity: 0, milli: 0 }
  const found = readPage<{ readonly record: string }, UsageEvent>(
    store,
    {
      select: 'SELECT id, recorded_at, record FROM usage_events',
      conditions,
      order: ['recorded_at', 'id'],
      direction: recorded_after === undefined ? 'DESC' : 'ASC',
    },
    input,
    ({ record }) => JSON.parse(record) as UsageEvent,
  )
  return { ...found, totals }
}
