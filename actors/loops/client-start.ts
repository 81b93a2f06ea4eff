/** Runs that a client starts: runs of a loop, and test runs of one of its triggers. */

import { actorOf } from '../../protocol/actions/invocation.ts'
import { type JsonObject, timestamp } from '../../protocol/common.ts'
import { refuse } from '../../protocol/errors.ts'
import { getOwn } from '../../protocol/lookup.ts'
import { milliOf } from '../../protocol/loops/credits.ts'
import type { LoopEvent } from '../../protocol/loops/events.ts'
import { type FireTrigger, type StartLoopRun, startKeyOf } from '../../protocol/loops/rows.ts'
import type { Run } from '../../protocol/runs/schema.ts'
import type { Cause, Decision } from '../actor.ts'
import { type Draft, type LoopOptions, newDraft, withReply } from './draft.ts'
import { type Outcome, openRun, whyLeftOut } from './start.ts'
import { isExisting, type KnownTrigger, type LoopState, triggersOf } from './state.ts'

/**
 * Starts a run for a client. The gateway completes the reply, because only the run itself stores
 * its status. While the run is active or waits, a repeated request with its idempotency key changes
 * nothing.
 */
export function start(
  options: LoopOptions,
  state: LoopState,
  input: StartLoopRun & { readonly run_id: string },
  cause: Cause,
): Decision<LoopEvent, Run> {
  const { run_id, event = {}, meta = {}, config = {}, source } = input
  const known = { events: [], reply: { id: run_id } as Run }
  if (
    startKeyOf(input) !== undefined &&
    (getOwn(state.active, run_id) !== undefined ||
      state.line.some((waiting) => waiting.run_id === run_id))
  )
    return known
  const { credential } = cause
  const label = labelOf(cause)
  const budget = milliOf(input)
  const draft = newDraft(state, cause, options)
  const outcome = openRun(draft, {
    run_id,
    event,
    meta,
    config,
    depth: 0,
    actor: actorOf(cause.principal),
    ...(budget !== undefined && { budget }),
    source: {
      type: source?.type ?? 'api',
      ...(source?.id !== undefined ? { id: source.id } : credential && { id: credential.id }),
      ...(source?.label !== undefined ? { label: source.label } : label !== undefined && { label }),
    },
  })
  return answered(draft, outcome, known.reply)
}

/**
 * Starts a run as if a trigger had fired, for a client that tests the trigger. The trigger may be
 * disabled. Its condition is not evaluated, and its next firing does not change. The gateway
 * completes the reply, as for `start`.
 */
export function fireAsTest(
  options: LoopOptions,
  state: LoopState,
  {
    run_id,
    trigger_id,
    event,
  }: FireTrigger & { readonly run_id: string; readonly trigger_id: string },
  cause: Cause,
): Decision<LoopEvent, Run> {
  const trigger = isExisting(state)
    ? triggersOf(state.record, state.trigger_ids).find(
        ({ id, key }) => id === trigger_id || key === trigger_id,
      )
    : undefined
  if (!trigger)
    return refuse(
      'not_found',
      { resource: 'trigger' },
      'The loop has no trigger with this id or key.',
    )
  const label = labelOf(cause)
  const draft = newDraft(state, cause, options)
  const outcome = openRun(draft, {
    run_id,
    trigger,
    event: event ?? defaultEvent(trigger, cause.at),
    config: {},
    meta: { event_type: 'trigger.test', test: true },
    depth: 0,
    actor: actorOf(cause.principal),
    source: {
      type: 'trigger',
      trigger_id: trigger.id,
      ...(label !== undefined && { label }),
    },
  })
  return answered(draft, outcome, { id: run_id } as Run)
}
const defaultEvent = ({ key, trigger }: KnownTrigger, at: number): JsonObject =>
  trigger.kind === 'schedule' ? { scheduled_at: timestamp(at), trigger_key: key } : {}
const labelOf = ({ credential, principal }: Cause): string | undefined =>
  (principal.type === 'user' ? principal.name : undefined) ?? credential?.name ?? principal.name
/**
 * Returns the decision on a client's request to start a run. Refuses with `conflict` if a rule or
 * limit of the loop rejected the run.
 */
function answered(draft: Draft, outcome: Outcome, reply: Run): Decision<LoopEvent, Run> {
  if ('refused' in outcome) return outcome
  if ('left_out' in outcome)
    return refuse(
      'conflict',
      {
        concurrency: draft.state.record?.concurrency,
        reason: outcome.left_out === 'full' ? 'line_full' : 'skipped',
      },
      whyLeftOut[outcome.left_out],
    )
  return withReply(draft, reply)
}
