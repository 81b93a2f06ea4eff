/**
 * State of a loop: its current definition, its active runs, and its waiting runs. The rules are in
 * the other files of this folder.
 *
 * Invariants:
 * L1. `active` contains the runs that were admitted and have not reported their end; `line`
 *     contains the waiting runs in order of arrival. A run is in at most one of the two.
 * L2. The state does not grow with the number of ended runs. It stores only the number of
 *     consecutive failures, the spending of one day, and the latest firings.
 */

import type { Definition } from '../../protocol/access/directory.ts'
import type { InternalBinding } from '../../protocol/blueprints/stored.ts'
import { timestamp } from '../../protocol/common.ts'
import { getOwn } from '../../protocol/lookup.ts'
import type { Clock, Derived, HeldFiring, LoopEvent } from '../../protocol/loops/events.ts'
import type { TriggerStanding } from '../../protocol/loops/rows.ts'
import type { QueueReason } from '../../protocol/loops/run.ts'
import { type Loop, pausedLoop, type Trigger, triggerKey } from '../../protocol/loops/schema.ts'
import { patch } from '../../protocol/patch.ts'

interface Waiting {
  readonly run_id: string
  readonly trigger_id?: string
  readonly reason: QueueReason
}
type TriggerLimit = Pick<Trigger, 'concurrency_policy' | 'max_concurrent_runs'>
/** The concurrency policy of a deleted loop, and the limits of its triggers by trigger id. */
interface LimitsAtDeletion {
  readonly concurrency?: Loop['concurrency']
  readonly triggers: Readonly<Record<string, TriggerLimit>>
}
export interface LoopState {
  /** Absent before the loop is created and after it is deleted. */
  record?: Loop
  deleted?: true
  /** The limits that the loop had when it was deleted. They apply to runs that are recovered. */
  limits_at_deletion?: LimitsAtDeletion
  /** The runs that were recovered after the loop was deleted, until they end; absent: none. */
  returned?: Readonly<Record<string, true>>
  binding?: InternalBinding
  version: Derived['version']
  definitions: Readonly<Record<string, Definition>>
  trigger_ids: Readonly<Record<string, string>>
  /** Sealed signing secrets by trigger key. */
  secrets: Readonly<Record<string, string>>
  /** The trigger ids of the active runs, by run id; empty for a run without a trigger. */
  active: Record<string, string>
  /** Active runs that were displaced and have not ended yet. */
  leaving: Record<string, true>
  line: Waiting[]
  /**
   * The state of the organization's slot of each active run that needs one: requested, held, or
   * declined because the loop was not active. A run begins, or continues after a recovery, only
   * when it holds its slot.
   */
  places: Record<string, 'asked' | 'had' | 'declined'>
  /** Number of consecutive failed runs. */
  failures: number
  /**
   * Recent spending of runs, oldest first: the start of each window, and the amount spent in it, in
   * thousandths of a credit.
   */
  spent: [at: number, milli: number][]
  /**
   * For each active run that was halted because the daily budget was spent, the time in Unix
   * milliseconds at which its halt ends; absent: no run was halted.
   */
  halted?: Record<string, number>
  /** The next fire times of schedules, by trigger id. */
  clocks: Record<string, Clock>
  /** Keys of the most recently settled firings, to detect repeats. */
  fired: string[]
  /**
   * Starts that were skipped since the loop's latest version was created, by trigger id; absent:
   * none.
   */
  skips?: Readonly<
    Record<
      string,
      { readonly count: number; readonly last: NonNullable<TriggerStanding['last_skipped_start']> }
    >
  >
  /** Version of the list of watched events that was last sent to the matcher. */
  watched: number
  /** The summary that was last sent to the loop's project. */
  standing: {
    readonly version: number
    readonly actions: readonly string[]
    readonly organization: string
  }
  more_at?: number
  /** The principal that last changed the loop; absent: unknown, or the loop was never changed. */
  editor?: string
  /** Firings for events of private sessions, by the job ids of their errands; absent: none. */
  firings?: Readonly<Record<string, HeldFiring>>
}
/** A loop that exists: it was created and has not been deleted. */
export type ExistingLoop = LoopState & { readonly record: Loop }

/** Returns the state of a loop before it is created. */
export const initialLoop = (): LoopState => ({
  version: { id: '', number: 0 },
  definitions: {},
  trigger_ids: {},
  secrets: {},
  active: {},
  leaving: {},
  line: [],
  places: {},
  failures: 0,
  spent: [],
  clocks: {},
  fired: [],
  watched: 0,
  standing: { version: 0, actions: [], organization: '' },
})
export const isExisting = (state: LoopState): state is ExistingLoop =>
  state.record !== undefined && !state.deleted

/** Number of firings that are remembered to detect repeats. */
const REMEMBERED = 2000
/** Length in milliseconds of the period that the daily budget covers. */
export const DAY_MS = 86_400_000
/** Length in milliseconds of the windows in which spending is summed. */
export const WINDOW_MS = 300_000

/** Returns the amount that runs spent within the last day, in thousandths of a credit. */
export const spentToday = ({ spent }: LoopState, now: number): number =>
  spent.reduce((sum, [at, milli]) => (at + DAY_MS > now ? sum + milli : sum), 0)

/** A trigger with its id and its key. */
export interface KnownTrigger {
  readonly id: string
  readonly key: string
  readonly trigger: Trigger
}
/** Returns the triggers of a loop with their ids and keys. */
export const triggersOf = (
  { triggers = [] }: Pick<Loop, 'triggers'>,
  ids: LoopState['trigger_ids'],
): KnownTrigger[] =>
  triggers.flatMap((trigger, index) => {
    const key = triggerKey(trigger, index)
    const id = getOwn(ids, key)
    return id === undefined ? [] : [{ id, key, trigger }]
  })
/** Returns the trigger with this id if it may start runs now, otherwise undefined. */
export const liveTrigger = (state: LoopState, id: string): KnownTrigger | undefined =>
  isExisting(state) && state.record.status === 'active'
    ? triggersOf(state.record, state.trigger_ids).find(
        (known) => known.id === id && known.trigger.enabled !== false,
      )
    : undefined

const remember = (state: LoopState, fire: string | undefined): void => {
  if (fire !== undefined && state.fired.push(fire) > REMEMBERED)
    state.fired.splice(0, state.fired.length - REMEMBERED)
}
type Evolve = {
  readonly [N in LoopEvent['type']]: (
    state: LoopState,
    event: Extract<LoopEvent, { type: N }>,
    at: number,
  ) => LoopState
}
const dropped = (state: LoopState, run_id: string): LoopState => {
  delete state.active[run_id]
  delete state.leaving[run_id]
  delete state.places[run_id]
  if (state.halted) delete state.halted[run_id]
  if (state.returned) {
    const { [run_id]: _, ...others } = state.returned
    state.returned = others
  }
  const index = state.line.findIndex((waiting) => waiting.run_id === run_id)
  if (index >= 0) state.line.splice(index, 1)
  return state
}
const same = (state: LoopState): LoopState => state
/** Notes that a run was recovered, if the loop is deleted: a deleted loop starts no other runs. */
function noteReturn(state: LoopState, run_id: string): void {
  if (state.deleted) state.returned = { ...state.returned, [run_id]: true }
}
/** Returns the limits of the loop's triggers, by trigger id. */
export function triggerLimits(state: LoopState): Readonly<Record<string, TriggerLimit>> {
  const { record, trigger_ids, limits_at_deletion } = state
  if (!record) return limits_at_deletion?.triggers ?? {}
  return Object.fromEntries(
    triggersOf(record, trigger_ids).map(({ id, trigger }) => {
      const { concurrency_policy, max_concurrent_runs } = trigger
      const limit: TriggerLimit = {
        ...(concurrency_policy !== undefined && { concurrency_policy }),
        ...(max_concurrent_runs !== undefined && { max_concurrent_runs }),
      }
      return [id, limit]
    }),
  )
}

export const evolveLoop: Evolve = {
  'loop.created': (state, { loop, version, definitions, trigger_ids, secrets }) => ({
    ...state,
    record: loop,
    version,
    definitions,
    trigger_ids,
    secrets,
  }),
  'loop.updated': (state, { loop, derived, secrets, editor }) => {
    const { editor: _, ...before } = state
    return state.record
      ? {
          ...before,
          record: patch(state.record, loop),
          ...derived,
          ...(derived && { skips: {} }),
          ...(secrets && { secrets }),
          ...(editor !== undefined && { editor }),
        }
      : state
  },
  'loop.deleted': (state) => {
    const { record, active, leaving, line, places, watched, standing } = state
    return {
      ...initialLoop(),
      deleted: true,
      limits_at_deletion: {
        ...(record?.concurrency !== undefined && { concurrency: record.concurrency }),
        triggers: triggerLimits(state),
      },
      active,
      leaving,
      line,
      places,
      watched,
      standing,
    }
  },
  'loop.auto_paused': (state, { updated_at }) =>
    state.record ? { ...state, record: pausedLoop(state.record, updated_at), failures: 0 } : state,
  'run.admitted': (state, { run_id, trigger_id = '', fire, last_run_at }) => {
    state.active[run_id] = trigger_id
    noteReturn(state, run_id)
    remember(state, fire)
    return state.record ? Object.assign(state, { record: { ...state.record, last_run_at } }) : state
  },
  'run.lined_up': (state, { run_id, trigger_id, fire, reason, last_run_at }) => {
    state.line.push({ run_id, reason, ...(trigger_id !== undefined && { trigger_id }) })
    noteReturn(state, run_id)
    remember(state, fire)
    return state.record ? Object.assign(state, { record: { ...state.record, last_run_at } }) : state
  },
  'run.promoted': (state, { run_id }) => {
    const waiting = state.line.find((one) => one.run_id === run_id)
    dropped(state, run_id)
    state.active[run_id] = waiting?.trigger_id ?? ''
    noteReturn(state, run_id)
    return state
  },
  'run.displaced': (state, { run_id }) => {
    if (!Object.hasOwn(state.active, run_id)) return dropped(state, run_id)
    state.leaving[run_id] = true
    return state
  },
  'run.left': (state, { run_id, failures }) => Object.assign(dropped(state, run_id), { failures }),
  'trigger.skipped': (state, { trigger_id, fire, reason, source_event_id }, at) => {
    remember(state, fire)
    const last = {
      at: timestamp(at),
      reason,
      ...(source_event_id !== undefined && { source_event_id }),
    }
    return {
      ...state,
      skips: {
        ...state.skips,
        [trigger_id]: { count: (getOwn(state.skips ?? {}, trigger_id)?.count ?? 0) + 1, last },
      },
    }
  },
  'schedules.set': (state, { clocks }) => {
    for (const [id, clock] of Object.entries(clocks)) {
      if (clock) state.clocks[id] = clock
      else delete state.clocks[id]
    }
    return state
  },
  'credits.spent': (state, { at, milli }, now) => {
    const last = state.spent.at(-1)
    if (last?.[0] === at) state.spent[state.spent.length - 1] = [at, last[1] + milli]
    else state.spent.push([at, milli])
    state.spent = state.spent.filter(([from]) => from + DAY_MS > now)
    return state
  },
  'runs.halted': (state, { run_ids, until }) => ({
    ...state,
    halted: { ...state.halted, ...Object.fromEntries(run_ids.map((id) => [id, until])) },
  }),
  'loop.busy': (state, { more_at }) => {
    if (more_at === null) delete state.more_at
    else state.more_at = more_at
    return state
  },
  'triggers.watched': (state, { version }) => Object.assign(state, { watched: version }),
  'place.wanted': (state, { run_id }) => {
    state.places[run_id] = 'asked'
    return state
  },
  'place.taken': (state, { run_id }) => {
    state.places[run_id] = 'had'
    return state
  },
  'place.declined': (state, { run_id }) => {
    state.places[run_id] = 'declined'
    return state
  },
  'place.returned': same,
  'loop.stands': (state, { version, actions, organization }) =>
    Object.assign(state, { standing: { version, actions, organization } }),
  'handle.bound': same,
  'handle.freed': same,
  'child.answered': same,
  'firing.held': (state, { job_id, firing }) => ({
    ...state,
    firings: { ...state.firings, [job_id]: firing },
  }),
  'firing.ended': (state, { job_id }) => {
    const { [job_id]: _, ...firings } = state.firings ?? {}
    return { ...state, firings }
  },
  'firing.dropped': same,
}

/**
 * Returns the time of the next wake in Unix milliseconds, when a schedule is due, work that was
 * left to a later commit continues, or waiting runs may start because budget is available again.
 * Returns undefined if no wake is needed.
 */
export function deadline(state: LoopState): number | undefined {
  const first = Object.values(state.clocks).reduce(
    (least, { next }) => Math.min(least, next),
    state.more_at ?? Infinity,
  )
  return first === Infinity ? undefined : first
}
