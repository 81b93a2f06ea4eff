/**
 * Limits the number of runs that triggers start in response to events that runs caused. The started
 * runs can cause further events, so without limits one event could start any number of runs. A tree
 * consists of a root event, which no run caused, and of all events that follow from it, directly or
 * indirectly.
 *
 * Invariants:
 * B1. Triggers start no run for an event that a run caused if its tree would then have more than
 *     `per_root` started runs. Runs started for the root event count toward this limit. A tree is
 *     remembered until at least MAX_TREES other trees have followed.
 * B2. For events that runs caused, triggers start at most `per_minute` runs of one loop in each
 *     one-minute window. Windows do not overlap.
 * B3. Events that no run caused are limited by the rate limits of requests, not here, because many
 *     loops may listen to one such event.
 */

import {
  MAX_CHAIN_DEPTH,
  type Publication,
  type SourcesEvent,
  type TriggerLimits,
} from '../../protocol/events/sources.ts'
import { getOwn } from '../../protocol/lookup.ts'
import type { SourcesState } from './state.ts'

/**
 * Maximum number of trees in one generation. A full generation becomes the previous one, and a new
 * generation begins.
 */
const MAX_TREES = 5000
const MINUTE_MS = 60_000

type Stored = Extract<SourcesEvent, { type: 'source.published' }>
type Fires = Readonly<Record<string, readonly string[]>>

/** Counts of the runs that triggers have started. */
export interface Budget {
  /**
   * Number of runs by root event, for the current generation of trees. A root event that started a
   * single run has no entry until its tree starts more runs.
   */
  trees: Record<string, number>
  /** The same counts for the previous generation. */
  older: Record<string, number>
  /** Number of trees of the current generation. */
  count: number
  /** Number of runs by loop, in the current window of one minute. */
  loops: Record<string, number>
  /** Unix milliseconds at which the current window began. */
  since: number
}
/** Returns the budget of a project in which no trigger has fired. */
export const initialBudget = (): Budget => ({ trees: {}, older: {}, count: 0, loops: {}, since: 0 })

const startedFor = (
  { trees, older }: Budget,
  { id, chain }: Pick<Stored, 'id' | 'chain'>,
): number => {
  const root = chain?.root ?? id
  return getOwn(trees, root) ?? getOwn(older, root) ?? (chain ? 1 : 0)
}
const startedOf = ({ loops, since }: Budget, loop_id: string, at: number): number =>
  at - since < MINUTE_MS ? (getOwn(loops, loop_id) ?? 0) : 0

/**
 * Returns two maps by loop: the triggers that may fire (`fires`), and the triggers that would
 * exceed a limit, with the reason (`overruns`). The loops in `overruns` must be paused.
 */
export function withinLimits(
  { budget }: Pick<SourcesState, 'budget'>,
  {
    id,
    event_type,
    depth,
    chain,
    fires,
  }: Pick<Publication, 'event_type' | 'depth' | 'chain'> & {
    readonly id: string
    readonly fires: Fires
  },
  at: number,
  { per_root, per_minute }: TriggerLimits,
): { readonly fires: Fires; readonly overruns: NonNullable<Stored['overruns']> } {
  if (depth === 0 || depth > MAX_CHAIN_DEPTH) return { fires, overruns: {} }
  const root = chain?.root ?? id
  let started = startedFor(budget, { id, ...(chain && { chain }) })
  const within: Record<string, readonly string[]> = {}
  const overruns: Record<string, NonNullable<Stored['overruns']>[string]> = {}
  for (const [loop_id, trigger_ids] of Object.entries(fires)) {
    const limit =
      started + trigger_ids.length > per_root
        ? `Triggers have started ${started} runs for the event ${root} ` +
          `and the events that it caused; ${per_root} are allowed`
        : startedOf(budget, loop_id, at) + trigger_ids.length > per_minute
          ? `Events of runs have started ${startedOf(budget, loop_id, at)} runs of the loop ` +
            `within a minute; ${per_minute} are allowed`
          : undefined
    if (limit === undefined) {
      within[loop_id] = trigger_ids
      started += trigger_ids.length
    } else
      overruns[loop_id] = {
        trigger_ids,
        reason:
          `${limit}. The next run would be started by ${event_type}, ` +
          `through ${[...(chain?.loops ?? []), loop_id].join(' → ')}.`,
      }
  }
  return { fires: within, overruns }
}

/** Charges the budget for the runs that an event starts. */
export function charge(budget: Budget, { id, depth, chain, fires = {} }: Stored, at: number): void {
  const added = Object.values(fires).reduce((sum, ids) => sum + ids.length, 0)
  if (added === 0 || depth > MAX_CHAIN_DEPTH) return
  if (depth > 0) {
    if (at - budget.since >= MINUTE_MS) {
      budget.loops = {}
      budget.since = at
    }
    for (const [loop_id, ids] of Object.entries(fires))
      budget.loops[loop_id] = (getOwn(budget.loops, loop_id) ?? 0) + ids.length
  }
  const root = chain?.root ?? id
  if (depth === 0 && added === 1) return
  const before = startedFor(budget, { id, ...(chain && { chain }) })
  if (getOwn(budget.trees, root) === undefined && ++budget.count > MAX_TREES) {
    budget.older = budget.trees
    budget.trees = {}
    budget.count = 1
  }
  budget.trees[root] = before + added
}
