/**
 * Admission of runs. Two rules apply, first the rule of the trigger, then the rule of the loop.
 * Both use the active runs and the queue of waiting runs. Slots of the organization are requested
 * afterwards (slots.ts).
 *
 * Invariants:
 * A1. No run is admitted beyond a limit. With `queue`, `skip` and `replace`, a loop has at most one
 *     active run. A trigger has at most as many active runs as its limit. If a trigger sets no
 *     limit, its runs are unlimited with the policy `allow` or without a policy, and limited to one
 *     with every other policy. To displace a run means to request its cancellation, in favor of a
 *     newer run or because the loop was deleted. A displaced active run counts as active until it
 *     has ended.
 * A2. Waiting runs are admitted in FIFO order. A run overtakes only runs that wait for the limit of
 *     their own trigger.
 * A3. No run waits while there is capacity. Exceptions: the loop is not active, it was deleted and
 *     the run has not been recovered since, its daily budget is spent, the run waits for a slot in
 *     the organization, or its admission follows in the next commit.
 */

import type { QueueReason } from '../../protocol/loops/run.ts'
import type { ConcurrencyPolicy, Trigger } from '../../protocol/loops/schema.ts'
import { exhaustion } from './budget.ts'
import { continueAt, type Draft, emit, tellRun } from './draft.ts'
import { requestDeclinedSlots, requestSlot, waitsForSlot } from './slots.ts'
import { type LoopState, triggerLimits } from './state.ts'

/** Maximum number of active runs of one loop, regardless of its settings. */
const MAX_ACTIVE = 5000
/** Maximum number of waiting runs of one loop. Recovered runs may exceed the maximum. */
const MAX_WAITING = 1000
/** Maximum number of waiting runs that one commit admits. */
const MAX_ADMITTED = 10
/** Maximum number of runs that one commit displaces for one rule. */
const MAX_DISPLACED = 50

/**
 * Returns the rule of a trigger: the limit on its active runs, and the policy for a run beyond the
 * limit.
 */
export function ruleOf({
  concurrency_policy,
  max_concurrent_runs,
}: Pick<Trigger, 'concurrency_policy' | 'max_concurrent_runs'>): {
  readonly limit: number
  readonly policy: ConcurrencyPolicy
} {
  const bound = concurrency_policy !== undefined && concurrency_policy !== 'allow'
  return {
    limit: max_concurrent_runs ?? (bound ? 1 : Infinity),
    policy: bound ? concurrency_policy : 'queue',
  }
}

interface Capacity {
  /** Number of active runs of the loop. */
  total: number
  /** Maximum number of active runs of the loop. */
  readonly limit: number
  /** Returns the limit and the policy of a trigger. */
  readonly rule: (trigger: string) => ReturnType<typeof ruleOf>
  /** Returns the number of active runs of a trigger. */
  readonly of: (trigger: string) => number
  readonly enter: (trigger: string) => void
}
function capacityOf(state: LoopState): Capacity {
  const counts = new Map<string, number>()
  for (const trigger of Object.values(state.active))
    counts.set(trigger, (counts.get(trigger) ?? 0) + 1)
  const { record, limits_at_deletion } = state
  const concurrency = (record ?? limits_at_deletion)?.concurrency ?? 'allow'
  const rules = new Map(
    Object.entries(triggerLimits(state)).map(([id, trigger]) => [id, ruleOf(trigger)]),
  )
  const capacity: Capacity = {
    total: Object.keys(state.active).length,
    limit: concurrency === 'allow' ? MAX_ACTIVE : 1,
    rule: (trigger) => rules.get(trigger) ?? { limit: Infinity, policy: 'queue' },
    of: (trigger) => counts.get(trigger) ?? 0,
    enter: (trigger) => {
      capacity.total++
      counts.set(trigger, capacity.of(trigger) + 1)
    },
  }
  return capacity
}
const waitingOf = ({ line }: LoopState, trigger: string): number =>
  line.filter(({ trigger_id = '' }) => trigger_id === trigger).length
/**
 * Returns the reason why one more run of a trigger would have to wait, or undefined if both rules
 * allow the run. With an empty trigger, only the rule of the loop is checked.
 */
function obstacle(state: LoopState, capacity: Capacity, trigger: string): QueueReason | undefined {
  if (
    trigger !== '' &&
    capacity.of(trigger) + waitingOf(state, trigger) >= capacity.rule(trigger).limit
  )
    return 'trigger_concurrency'
  const ahead = state.line.some(({ reason }) => reason !== 'trigger_concurrency')
  return capacity.total >= capacity.limit || ahead ? 'loop_policy' : undefined
}

/** The decision on a run: it begins, or it waits for one of the limits. */
type Admission = { readonly begins: true } | { readonly waits: QueueReason }
/** The decision on one more run: it begins, waits, or is rejected by one of the limits. */
export type Verdict = Admission | { readonly left_out: 'loop' | 'trigger' | 'full' }

const admissionOf = (state: LoopState, capacity: Capacity, trigger: string): Admission => {
  const waits = obstacle(state, capacity, trigger)
  return waits ? { waits } : { begins: true }
}

/**
 * Applies both rules to one more run, and displaces the runs that it replaces.
 * @param trigger id of the run's trigger; empty: the run has no trigger.
 */
export function judge(draft: Draft, trigger = ''): Verdict {
  // A displaced run counts as active until it has ended, so these counts stay valid.
  const capacity = capacityOf(draft.state)
  const { policy, limit } = capacity.rule(trigger)
  const rule = draft.state.record?.concurrency ?? 'allow'
  if (obstacle(draft.state, capacity, trigger) === 'trigger_concurrency') {
    if (policy === 'skip') return { left_out: 'trigger' }
    if (policy === 'replace')
      displace(draft, { matches: (of) => of === trigger, remaining: Math.max(0, limit - 1) })
  }
  if (obstacle(draft.state, capacity, '') === 'loop_policy') {
    if (rule === 'skip') return { left_out: 'loop' }
    if (rule === 'replace') displace(draft, { remaining: 0 })
  }
  const admission = admissionOf(draft.state, capacity, trigger)
  return 'waits' in admission && draft.state.line.length >= MAX_WAITING
    ? { left_out: 'full' }
    : admission
}
/**
 * Applies both rules to a run that returns because it is recovered. It is never rejected and
 * displaces no run.
 * @param trigger id of the run's trigger; empty: the run has no trigger.
 */
export const judgeReturning = ({ state }: Draft, trigger = ''): Admission =>
  admissionOf(state, capacityOf(state), trigger)

interface Displacement {
  /** Selects the runs by the id of their trigger or of the run. By default, all are selected. */
  readonly matches?: (trigger: string, run_id: string) => boolean
  /** Maximum number of the selected active runs that remain. */
  readonly remaining: number
  /**
   * Whether the selected runs that wait remain too, including those that wait for a slot of the
   * organization. By default, all of them are displaced first.
   */
  readonly keepsWaiting?: boolean
}
/**
 * Displaces the selected runs, oldest first. Displacements beyond the limit of one commit follow in
 * the next commit.
 */
function displace(
  draft: Draft,
  { matches = () => true, remaining, keepsWaiting = false }: Displacement,
): void {
  const { line, active, leaving } = draft.state
  const inside = Object.entries(active)
    .filter(([run_id, trigger]) => matches(trigger, run_id) && !leaving[run_id])
    .map(([run_id]) => run_id)
  const waiting = keepsWaiting
    ? []
    : [
        ...line
          .filter(({ trigger_id = '', run_id }) => matches(trigger_id, run_id))
          .map(({ run_id }) => run_id),
        ...inside.filter((run_id) => waitsForSlot(draft.state, run_id)),
      ]
  const staying = keepsWaiting
    ? inside
    : inside.filter((run_id) => !waitsForSlot(draft.state, run_id))
  const going = [...waiting, ...staying.slice(0, Math.max(0, staying.length - remaining))]
  for (const run_id of going.slice(0, MAX_DISPLACED)) {
    emit(draft, { type: 'run.displaced', run_id })
    tellRun(draft, run_id, 'run.displace', draft.state.deleted ? { deleted: true } : {})
  }
  if (going.length > MAX_DISPLACED) continueAt(draft, draft.cause.at + 1)
}
/**
 * Displaces all waiting runs, because their loop was deleted. Runs that were recovered afterwards
 * stay.
 */
export const dismiss = (draft: Draft): void =>
  displace(draft, { remaining: Infinity, matches: (_, run_id) => !draft.state.returned?.[run_id] })
/**
 * Continues to displace active runs in favor of waiting runs, for each rule with the policy
 * `replace`.
 */
export function continueDisplacing(draft: Draft): void {
  const { record, line } = draft.state
  if (!record || line.length === 0) return
  if (record.concurrency === 'replace') displace(draft, { remaining: 0, keepsWaiting: true })
  for (const trigger of new Set(line.map(({ trigger_id = '' }) => trigger_id))) {
    const { policy, limit } = capacityOf(draft.state).rule(trigger)
    if (trigger !== '' && policy === 'replace')
      displace(draft, {
        matches: (of) => of === trigger,
        remaining: Math.max(0, limit - waitingOf(draft.state, trigger)),
        keepsWaiting: true,
      })
  }
}

/**
 * Admits waiting runs in order while there is capacity; of a deleted loop, only the runs that were
 * recovered since. While the daily budget is spent, all runs keep waiting. Runs beyond the limit of
 * one commit follow in the next commit.
 */
export function admitWaiting(draft: Draft): void {
  requestDeclinedSlots(draft)
  const { record, deleted, returned } = draft.state
  const line = deleted
    ? draft.state.line.filter(({ run_id }) => returned?.[run_id])
    : draft.state.line
  if (line.length === 0 || (!deleted && record?.status !== 'active')) return
  const spent = exhaustion(draft.state, draft.cause.at)
  if (spent) {
    continueAt(draft, spent.until)
    return
  }
  const capacity = capacityOf(draft.state)
  let count = 0
  for (const { run_id, trigger_id = '' } of [...line]) {
    if (capacity.total >= capacity.limit) return
    if (trigger_id !== '' && capacity.of(trigger_id) >= capacity.rule(trigger_id).limit) continue
    if (++count > MAX_ADMITTED) {
      continueAt(draft, draft.cause.at + 1)
      return
    }
    capacity.enter(trigger_id)
    emit(draft, { type: 'run.promoted', run_id })
    if (requestSlot(draft, run_id))
      tellRun(draft, run_id, 'run.hold', { queue_reason: 'plan_concurrency' })
    else tellRun(draft, run_id, 'run.begin', { later: true })
  }
}
