/**
 * A step that waits for a signal or for a source event. An early signal is stored. A step consumes
 * the oldest stored signal that matches, and leaves the other signals for later steps. A signal
 * whose mapping fails is still consumed: a retry waits for the next signal instead of failing on
 * the same signal forever.
 *
 * Source events are not stored for later waits. A wait opens when the matcher of the project has
 * confirmed it. Events that are published while the wait is open are not missed.
 */
import { type JsonObject, timestamp } from '../../../protocol/common.ts'
import { fits } from '../../../protocol/events/matching.ts'
import type { Delivered } from '../../../protocol/internal.ts'
import { ExpressionError, evaluate } from '../../../protocol/rules/expressions/expression.ts'
import { renderNative, renderText } from '../../../protocol/rules/expressions/template.ts'
import type { Step } from '../../../protocol/workflows/spec.ts'
import { current, type Draft, emit } from '../draft.ts'
import { expressionScope, runRoot } from '../engine/expression-scope.ts'
import { catchExpressionFault, completeStep } from '../engine/outcome.ts'
import { waitingAt } from '../engine/places.ts'
import { endWait, resumeStep } from '../engine/resume.ts'
import { suspend } from '../engine/suspend.ts'
import { sourceOf } from '../outbound/source-events.ts'
import { isAsked, type OpenWait, type PendingSignal, type Wait } from '../state.ts'
import { dueOf } from './timeout.ts'

/** A `wait_for_event` step of a spec. */
export type WaitStep = Extract<Step, { kind: 'wait_for_event' }>
type EventWait = Extract<OpenWait, { kind: 'event' }>

/** Waits for an event, or continues immediately with a stored signal. */
export function executeWait(draft: Draft, step: WaitStep): void {
  const key = current(draft)?.key ?? ''
  const { event_type, match, source_id, condition } = step.config
  const roots = expressionScope(draft)
  const source = source_id === undefined ? undefined : String(renderText(source_id, roots))
  const wait: EventWait = {
    kind: 'event',
    step: key,
    id: draft.cause.mint('wait'),
    event_type,
    ...(source !== undefined && { source_id: source }),
    ...(match && { match: renderNative(match, roots) as JsonObject }),
    ...(condition !== undefined && { condition }),
  }
  if (!event_type.startsWith('signal.')) {
    emit(draft, 'wait.asked', { step: key, place: { wait: { ...wait, asked: true } } })
    return
  }
  const timed = timedOf(draft, step, wait)
  const early = draft.state.signals.find((signal) => answers(wait, signal, draft))
  if (!early) {
    suspendFor(draft, timed)
    return
  }
  emit(draft, 'wait.opened', {
    step: key,
    payload: { step: key, wait_id: wait.id, wait_kind: wait.kind, ...detailsOf(timed) },
    row: { wait_id: wait.id },
    place: { wait: timed },
  })
  consume(draft, early, step)
}

/**
 * Opens the wait of the current step after the matcher has confirmed it. The step's timeout begins
 * now.
 */
export function openWait(draft: Draft, { asked: _, ...wait }: EventWait): void {
  const step = current(draft)?.step
  if (step) suspendFor(draft, timedOf(draft, step, wait))
}
function timedOf(draft: Draft, step: Step, wait: EventWait): EventWait {
  const due = dueOf(draft, step)
  return due === undefined ? wait : { ...wait, due }
}
const detailsOf = ({ event_type, source_id, match, condition, due }: EventWait): JsonObject => ({
  event_type,
  subject: event_type,
  ...(source_id !== undefined && { source_id }),
  ...(match && { match }),
  ...(condition !== undefined && { condition }),
  ...(due !== undefined && { expires_at: timestamp(due) }),
})
function suspendFor(draft: Draft, wait: EventWait): void {
  const { event_type, due, step: step_key } = wait
  const until = due !== undefined && { until: timestamp(due) }
  suspend(draft, wait, detailsOf(wait), {
    waiting_on: {
      kind: event_type.startsWith('signal.') ? 'signal' : 'event',
      event_type,
      reason: `Waits for ${event_type}`,
      ...until,
      step_key,
    },
  })
}

/**
 * Delivers a stored signal to the first step that waits for it.
 * @returns whether a step waited for the signal.
 */
export function offer(draft: Draft, signal: PendingSignal): boolean {
  const found = waitingAt(
    draft.state,
    (wait) => wait.kind === 'event' && answers(wait, signal, draft),
  )
  if (!found) return false
  draft.at = found.at
  const step = current(draft)?.step
  if (step?.kind === 'wait_for_event') consume(draft, signal, step)
  return true
}

/**
 * Whether an open wait accepts this event. With `wait_ids` the matcher has selected the waits;
 * without them the run matches the event itself.
 */
export function isAwaited(wait: Wait | undefined, { wait_ids, ...event }: Delivered): boolean {
  if (wait?.kind !== 'event' || isAsked(wait)) return false
  return wait_ids ? wait_ids.includes(wait.id) : holds(wait, event)
}
function holds(wait: EventWait, event: Parameters<typeof fits>[1]): boolean {
  try {
    return fits(wait, event)
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error
    return false
  }
}
/** Continues the step that waits for an event. */
export function consumeEvent(draft: Draft, { event, meta }: Delivered): void {
  const step = current(draft)?.step
  if (step?.kind === 'wait_for_event') take(draft, { event, meta }, step)
}

const answers = (wait: EventWait, signal: PendingSignal, draft: Draft): boolean =>
  wait.event_type === `signal.${signal.name}` &&
  holds(wait, sourceOf(draft.state.record.id, signal))

function consume(draft: Draft, signal: PendingSignal, step: WaitStep): void {
  const { event, meta } = sourceOf(draft.state.record.id, signal)
  take(draft, { event, meta }, step, signal.id)
}

function take(
  draft: Draft,
  document: { event: JsonObject; meta: JsonObject },
  step: WaitStep,
  signal?: string,
): void {
  const waited = current(draft)?.row?.status === 'suspended'
  endWait(draft, 'wait.resumed', { payload: document }, signal)
  catchExpressionFault(draft, () => {
    const mapping = step.config.payload_mapping
    const run = runRoot(draft.state.record, draft.state.engine.attempt)
    const output = mapping
      ? Object.fromEntries(
          Object.entries(mapping).map(([name, source]) => [
            name,
            evaluate(source, { ...document, run }),
          ]),
        )
      : document
    if (waited) resumeStep(draft)
    completeStep(draft, output)
  })
}
