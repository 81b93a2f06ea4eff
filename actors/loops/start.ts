/**
 * Starts of runs by a trigger, a schedule, or a step of another run. Starts by clients are in
 * client-start.ts. All starts pass the same admission (admit.ts).
 */

import { type JsonObject, timestamp } from '../../protocol/common.ts'
import {
  errors,
  type FieldError,
  type Refusal,
  refuse,
  refuseFields,
} from '../../protocol/errors.ts'
import { type Chain, MAX_CHAIN_DEPTH, type SourceEvent } from '../../protocol/events/sources.ts'
import type { LoopCommands, LoopEvent, RunOpening } from '../../protocol/loops/events.ts'
import { specOf } from '../../protocol/loops/schema.ts'
import { latestFire, nextFire } from '../../protocol/rules/schedule.ts'
import { applyDefaults } from '../../protocol/rules/workflow-check/declared.ts'
import type { Cause, Decision } from '../actor.ts'
import { judge, type Verdict } from './admit.ts'
import { spentBudget } from './budget.ts'
import {
  type Draft,
  emit,
  emptyDecision,
  type LoopOptions,
  newDraft,
  tellRun,
  withReply,
} from './draft.ts'
import { awaitsReadCheck, holdFiring } from './firings.ts'
import { requestSlot } from './slots.ts'
import {
  type ExistingLoop,
  isExisting,
  type KnownTrigger,
  type LoopState,
  liveTrigger,
} from './state.ts'
import { derivedEvents } from './triggers.ts'

const TOO_DEEP = `The event was caused by a chain of more than ${MAX_CHAIN_DEPTH} runs.`

/** The parameters of a start. */
interface Wanted
  extends Pick<
    RunOpening,
    'source' | 'actor' | 'initiated_by' | 'parent' | 'depth' | 'chain' | 'later'
  > {
  readonly run_id: string
  readonly trigger?: KnownTrigger
  /** Key of the firing that this start settles. */
  readonly fire?: string
  readonly event: JsonObject
  readonly config: JsonObject
  readonly meta: JsonObject
  readonly budget?: number
}
export type Outcome =
  | { readonly run_id: string }
  | { readonly left_out: Extract<Verdict, { left_out: unknown }>['left_out'] }
  | Refusal

/**
 * Refuses a start if the loop does not exist, is not active, has no steps, or has spent its daily
 * budget.
 */
function closed(state: LoopState, at: number): Refusal | undefined {
  if (!isExisting(state))
    return refuse('not_found', { resource: 'loop' }, 'There is no such loop in this project.')
  if (state.record.status === 'paused') return refuse('loop_paused', { status: 'paused' })
  if (state.record.status !== 'active' || !state.record.steps?.length)
    return refuse('loop_not_runnable', { status: state.record.status })
  const spent = spentBudget(state, at)
  return spent && refuse('budget_exhausted', { ...spent })
}

/** Opens a run, or returns the reason why no run was opened. */
export function openRun(draft: Draft, wanted: Wanted): Outcome {
  const refused = closed(draft.state, draft.cause.at)
  if (refused) return refused
  const { record, version, definitions } = draft.state as ExistingLoop
  const {
    run_id,
    trigger,
    fire,
    source,
    actor,
    initiated_by,
    parent,
    depth,
    chain,
    budget,
    later,
  } = wanted
  const event = applyDefaults(record.event, wanted.event, 'event')
  const config = applyDefaults(
    record.config,
    { ...record.default_config, ...wanted.config },
    'config',
  )
  const faults: FieldError[] = [event, config].flatMap((applied) =>
    'faults' in applied ? applied.faults : [],
  )
  if ('faults' in event || 'faults' in config) return refuseFields(...faults)
  const verdict = judge(draft, trigger?.id)
  if ('left_out' in verdict) return verdict
  const of = {
    run_id,
    ...(trigger && { trigger_id: trigger.id }),
    ...(fire !== undefined && { fire }),
    last_run_at: timestamp(draft.cause.at),
  }
  emit(
    draft,
    'waits' in verdict
      ? { type: 'run.lined_up', ...of, reason: verdict.waits }
      : { type: 'run.admitted', ...of },
  )
  const queue_reason =
    'waits' in verdict
      ? verdict.waits
      : requestSlot(draft, run_id)
        ? ('plan_concurrency' as const)
        : undefined
  const { plan_concurrency } = draft.options
  tellRun(draft, run_id, 'run.open', {
    loop: { id: record.id, version_id: version.id, version: version.number, name: record.name },
    spec: specOf(record),
    ...(record.repositories?.length && { repositories: record.repositories }),
    ...(record.agent_id && { agent_id: record.agent_id }),
    definitions,
    event: event.values,
    config: config.values,
    meta: {
      ...wanted.meta,
      ...(trigger && { trigger: { id: trigger.id, key: trigger.key, kind: trigger.trigger.kind } }),
    },
    source,
    depth,
    ...(chain && { chain }),
    ...(actor && { actor }),
    ...(initiated_by !== undefined && { initiated_by }),
    ...(budget !== undefined && { budget }),
    ...(queue_reason && { queue_reason }),
    ...(plan_concurrency !== undefined && { plan_concurrency_limit: plan_concurrency }),
    ...(later && { later }),
    ...(parent && { parent }),
  })
  return { run_id }
}
export const whyLeftOut = {
  loop: 'A run of the loop is active, and its concurrency is skip.',
  trigger: 'A run of the trigger is active, and its policy is skip.',
  full: 'The loop has the maximum number of waiting runs.',
} as const

/**
 * Starts a run for an event that a trigger watches. If the same event arrives again while its
 * firing is remembered, it starts no second run.
 */
export function fire(
  options: LoopOptions,
  state: LoopState,
  firing: LoopCommands['trigger.fire']['input'],
  cause: Cause,
): Decision<LoopEvent, undefined> {
  const { trigger_id, source } = firing
  const trigger = liveTrigger(state, trigger_id)
  const key = `${trigger_id} ${source.id}`
  if (!trigger || state.fired.includes(key)) return emptyDecision
  if (awaitsReadCheck(state, firing)) return holdFiring(state, firing, cause)
  const draft = newDraft(state, cause, options)
  const outcome =
    source.depth > MAX_CHAIN_DEPTH
      ? refuse('conflict', undefined, TOO_DEEP)
      : openRun(draft, {
          run_id: cause.mint('run'),
          trigger,
          fire: key,
          event: source.event,
          config: {},
          depth: source.depth,
          chain: chainOf(source, cause.self.id),
          source: { type: 'trigger', trigger_id, id: source.source_id },
          meta: { ...source.meta, event_type: source.event_type, source_event_id: source.id },
        })
  skipped(draft, trigger_id, key, outcome, source.id)
  return withReply(draft, undefined)
}
/** Maximum number of loops that a stored chain contains. Only the latest loops are kept. */
const MAX_CHAIN_LOOPS = 2 * MAX_CHAIN_DEPTH
const extended = ({ root, loops }: Chain, loop_id: string): Chain => ({
  root,
  loops: [...loops, loop_id].slice(-MAX_CHAIN_LOOPS),
})
/** Returns the causal chain of the run that an event starts in this loop. */
const chainOf = ({ id, chain = { root: id, loops: [] } }: SourceEvent, loop_id: string): Chain =>
  extended(chain, loop_id)

/**
 * Pauses the loop because its triggers would exceed a limit of actors/events/budget.ts. Records the
 * reason for each of these triggers.
 */
export function stop(
  options: LoopOptions,
  state: LoopState,
  { trigger_ids, source, reason }: LoopCommands['loop.stop']['input'],
  cause: Cause,
): Decision<LoopEvent, undefined> {
  const draft = newDraft(state, cause, options)
  for (const id of trigger_ids) {
    const key = `${id} ${source.id}`
    if (liveTrigger(state, id) && !state.fired.includes(key))
      skipped(draft, id, key, refuse('conflict', undefined, reason), source.id)
  }
  if (draft.events.length === 0) return emptyDecision
  const { run_id } = source.meta
  emit(draft, {
    type: 'loop.auto_paused',
    id: cause.self.id,
    run_id: typeof run_id === 'string' ? run_id : '',
    reason,
    // The depth is capped, so that the event can still start another loop, for instance one that
    // notifies people about the pause. The chain ends anyway, because a paused loop is not paused
    // again.
    depth: Math.min(source.depth + 1, MAX_CHAIN_DEPTH),
    updated_at: timestamp(cause.at),
  })
  for (const event of derivedEvents(state, draft.state, '', cause)) emit(draft, event)
  return withReply(draft, undefined)
}
function skipped(
  draft: Draft,
  trigger_id: string,
  key: string,
  outcome: Outcome,
  source_event_id?: string,
): void {
  if ('run_id' in outcome) return
  const reason =
    'left_out' in outcome
      ? whyLeftOut[outcome.left_out]
      : (outcome.message ?? errors[outcome.refused].message)
  emit(draft, {
    type: 'trigger.skipped',
    trigger_id,
    fire: key,
    reason,
    ...(source_event_id !== undefined && { source_event_id }),
  })
}

/** Fires each due schedule once, for the latest time at which it was due. */
export function fireSchedules(draft: Draft): void {
  const { at } = draft.cause
  for (const [trigger_id, { next, anchor }] of Object.entries(draft.state.clocks)) {
    if (next > at) continue
    const trigger = liveTrigger(draft.state, trigger_id)
    if (trigger?.trigger.kind !== 'schedule') {
      emit(draft, { type: 'schedules.set', clocks: { [trigger_id]: null } })
      continue
    }
    const { config } = trigger.trigger
    const scheduled_at = timestamp(latestFire(config, next, at, anchor))
    const following = nextFire(config, at, anchor)
    emit(draft, {
      type: 'schedules.set',
      clocks: { [trigger_id]: following === undefined ? null : { next: following, anchor } },
    })
    const source_event_id = draft.cause.mint('source_event')
    const key = `${trigger_id} ${scheduled_at}`
    skipped(
      draft,
      trigger_id,
      key,
      openRun(draft, {
        run_id: draft.cause.mint('run'),
        trigger,
        fire: key,
        event: { scheduled_at, trigger_key: trigger.key },
        config: {},
        depth: 0,
        later: true,
        source: { type: 'trigger', trigger_id },
        meta: { event_type: 'schedule.tick', source_event_id, scheduled_at },
      }),
    )
  }
}

/** Starts a run for a step of another run, and reports the outcome to that run. */
export function answerStep(
  options: LoopOptions,
  state: LoopState,
  {
    from,
    event,
    config,
    depth,
    chain,
    actor,
    initiated_by,
    source,
  }: LoopCommands['loop.ask']['input'],
  cause: Cause,
): Decision<LoopEvent, undefined> {
  const draft = newDraft(state, cause, options)
  const outcome = openRun(draft, {
    run_id: cause.mint('run'),
    event,
    config,
    meta: {},
    depth,
    ...(chain && { chain: extended(chain, cause.self.id) }),
    source: source ?? { type: 'api', id: from.run_id },
    ...(actor && { actor }),
    ...(initiated_by !== undefined && { initiated_by }),
    parent: {
      run_id: from.run_id,
      step: from.step,
      ...(from.loop_id !== undefined && { loop_id: from.loop_id }),
    },
  })
  const about = { type: 'child.answered', to: from.run_id, wait_id: from.wait_id } as const
  if ('run_id' in outcome) emit(draft, { ...about, run_id: outcome.run_id })
  else if ('left_out' in outcome)
    emit(draft, { ...about, fault: { error_type: 'skipped', error: whyLeftOut[outcome.left_out] } })
  else
    emit(draft, {
      ...about,
      fault: {
        error_type:
          outcome.refused === 'not_found'
            ? 'loop_not_found'
            : outcome.refused === 'bad_request'
              ? 'child_input_invalid'
              : outcome.refused,
        error: outcome.message ?? 'The loop accepts no runs now',
      },
    })
  return withReply(draft, undefined)
}
