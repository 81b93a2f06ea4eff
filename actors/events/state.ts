/**
 * The state of a project's matcher between two commands: listeners, recent deduplication keys,
 * faults of conditions, and the budget of triggers.
 *
 * Invariants:
 * M1. The size of the state does not depend on the number of events. It is bounded by the number of
 *     loops, waits and webhooks, by 2 × MAX_KEYS deduplication keys, and by the limits of the
 *     budget.
 * M2. Every key used since `keys.from` is stored. `keys.from` is at least a day ago, unless more
 *     than MAX_KEYS keys were used within the last day.
 */

import type {
  Awaited,
  ConditionFaults,
  Recalled,
  SourcesEvent,
  Watch,
} from '../../protocol/events/sources.ts'
import { getOwn } from '../../protocol/lookup.ts'
import { type Budget, initialBudget } from './budget.ts'

/** Maximum number of keys in a generation. */
const MAX_KEYS = 30_000
/** Maximum age of a generation in milliseconds. */
const DAY_MS = 24 * 3_600_000

/**
 * Keys with the ids of the events published under them, for the current generation (`young`) and
 * the previous one (`old`).
 */
interface Keys {
  /** Ordinal number of the current generation, counted from 0. */
  generation: number
  /** Time since which all used keys are stored, in Unix milliseconds. */
  from: number
  /** Time at which the current generation began, in Unix milliseconds. */
  since: number
  count: number
  young: Record<string, string>
  old: Record<string, string>
}
export interface SourcesState {
  /**
   * Triggers by loop. A loop without triggers is kept, so that an older list that arrives late is
   * detected.
   */
  readonly loops: Record<string, { readonly version: number; readonly triggers: readonly Watch[] }>
  /** Waits by id. */
  readonly waits: Record<string, { readonly run_id: string; readonly wait: Awaited }>
  /** Types and patterns that webhooks subscribe to, by webhook. An empty list means all types. */
  readonly hooks: Record<string, readonly string[]>
  /** Faults of conditions that could not be evaluated, by trigger. */
  readonly faults: Record<string, ConditionFaults>
  readonly keys: Keys
  readonly budget: Budget
}

/** Returns the state of a matcher before its first command. */
export const initialSources = (): SourcesState => ({
  loops: {},
  waits: {},
  hooks: {},
  faults: {},
  keys: { generation: 0, from: 0, since: 0, count: 0, young: {}, old: {} },
  budget: initialBudget(),
})

/** Prefixes a key, so that it never equals the name of an inherited property. */
const memberOf = (key: string): string => `:${key}`
/**
 * Returns the id of the event that was published under a key, or undefined if the key is not
 * stored.
 */
export const publishedBy = ({ keys }: SourcesState, key: string): string | undefined =>
  getOwn(keys.young, memberOf(key)) ?? getOwn(keys.old, memberOf(key))

/**
 * Looks up a key (K1, K2 of protocol/events/sources.ts).
 * @param at Unix milliseconds.
 * @param recalled the answer of a view for keys that the state does not store.
 * @returns the id of the event that was published under the key; null if no event was published
 * under it within a day; undefined if it is unknown whether an event was published.
 */
export function recall(
  state: SourcesState,
  key: string,
  at: number,
  recalled: Recalled | undefined,
): string | null | undefined {
  const known = publishedBy(state, key)
  if (known !== undefined) return known
  const { from, since, generation } = state.keys
  // If a clock was set back, `at` may be before `since`. The later of the two is used as the
  // current time.
  if (Math.max(at, since) - from >= DAY_MS) return null
  const index = recalled && generation - recalled.generation <= 1 ? recalled.asked.indexOf(key) : -1
  return index < 0 ? undefined : (recalled?.ids[index] ?? null)
}

/**
 * Stores a key. When the current generation is full or a day old, the previous generation is
 * dropped and a new one begins.
 */
export function remember({ keys }: SourcesState, key: string, id: string, at: number): void {
  if (keys.count >= MAX_KEYS || at - keys.since >= DAY_MS) {
    if (Object.keys(keys.old).length > 0) keys.from = keys.since
    keys.generation++
    keys.old = keys.young
    keys.young = {}
    keys.count = 0
    keys.since = at
  }
  keys.young[memberOf(key)] = id
  keys.count++
}

/** Counts the condition faults of triggers, but not of waits. */
export function countFault(
  state: SourcesState,
  {
    id: source_event_id,
    occurred_at: at,
    faulty = {},
  }: Extract<SourcesEvent, { type: 'source.published' }>,
): void {
  for (const [id, message] of Object.entries(faulty))
    if (!getOwn(state.waits, id))
      state.faults[id] = {
        count: (getOwn(state.faults, id)?.count ?? 0) + 1,
        last: { source_event_id, at, message },
      }
}
