/**
 * What the matcher of a project knows between two commands: who listens to what, and which keys were used lately.
 *
 * Invariants:
 * M1. The state does not grow with the events: it holds listeners, which are there as long as loops and waits are, and at most
 *     2 × KEYS keys.
 * M2. Every key used since `keys.from` is here. That is a day ago or longer, unless more than KEYS keys were used within that day.
 */
import { getOwn } from '../../protocol/lookup.ts'
import type {
  Awaited,
  ConditionFaults,
  Recalled,
  SourcesEvent,
  Watch,
} from '../../protocol/events/sources.ts'
import { unspent, type Budget } from './budget.ts'

/** Keys of one generation, and how long it grows, in milliseconds. */
const KEYS = 30_000
const DAY = 24 * 3_600_000

/** Keys with the ids of what they published: those of the present generation, and of the one before. */
interface Keys {
  /** The number of the present generation. */
  generation: number
  /** Since when all keys are kept, and since when those of the present generation, Unix milliseconds. */
  from: number
  since: number
  count: number
  young: Record<string, string>
  old: Record<string, string>
}
export interface SourcesState {
  /** By loop. One without triggers stays, so that an older list that comes late is known to be old. */
  readonly loops: Record<string, { readonly version: number; readonly triggers: readonly Watch[] }>
  /** By id of the wait. */
  readonly waits: Record<string, { readonly run_id: string; readonly wait: Awaited }>
  /** Types and patterns that webhooks listen to, by webhook; none: everything. */
  readonly hooks: Record<string, readonly string[]>
  /** Conditions that could not be evaluated, by trigger. */
  readonly faults: Record<string, ConditionFaults>
  readonly keys: Keys
  readonly budget: Budget
}

/** A project in which nobody listens. */
export const silent = (): SourcesState => ({
  loops: {},
  waits: {},
  hooks: {},
  faults: {},
  keys: { generation: 0, from: 0, since: 0, count: 0, young: {}, old: {} },
  budget: unspent(),
})

/** A place that no key of an object's own can take. */
const placeOf = (key: string): string => `:${key}`
/** The event that was published under a key, as far as it is remembered. @param at Unix milliseconds. */
export const publishedBy = ({ keys }: SourcesState, key: string): string | undefined =>
  getOwn(keys.young, placeOf(key)) ?? getOwn(keys.old, placeOf(key))

/**
 * What is known of a key (K1, K2 of protocol/events/sources.ts): the id that was published under it, null when none was within a day, undefined
 * when that is not known.
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
  // Clocks may be set back.
  if (Math.max(at, since) - from >= DAY) return null
  const index = recalled && generation - recalled.generation <= 1 ? recalled.asked.indexOf(key) : -1
  return index < 0 ? undefined : (recalled?.ids[index] ?? null)
}

/** Remember a key. The generation before the last is forgotten when the present one is a day old, or full. */
export function remember({ keys }: SourcesState, key: string, id: string, at: number): void {
  if (keys.count >= KEYS || at - keys.since >= DAY) {
    if (Object.keys(keys.old).length > 0) keys.from = keys.since
    keys.generation++
    keys.old = keys.young
    keys.young = {}
    keys.count = 0
    keys.since = at
  }
  keys.young[placeOf(key)] = id
  keys.count++
}

/** Count conditions that could not be evaluated, of triggers that are still there. */
export function blame(
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
