/**
 * A step that waits for a signal or for a source event. A signal that comes early is stored; a step
 * consumes stored ones in the order of their arrival, each at most once, and leaves those that do
 * not match for a later step. A signal whose mapping fails was consumed all the same: a retry waits
 * for the next one instead of failing on this one forever.
 *
 * Source events are not kept: the matcher of the project is told of the wait first, and the wait is
 * open when it has answered. Whoever sees it open and publishes then is not missed.
 */
import { timestamp, type JsonObject } from '../../../protocol/common.ts'
import { evaluate, ExpressionError } from '../../../protocol/rules/expressions/expression.ts'
import { renderNative, renderText } from '../../../protocol/rules/expressions/template.ts'
import type { Step } from '../../../protocol/workflows/spec.ts'
import { current, emit, type Draft } from '../draft.ts'
import type { Delivered } from '../../../protocol/internal.ts'
import { fits } from '../../../protocol/events/matching.ts'
import { attempting, completeStep, endWait, resumeStep } from '../engine/outcome.ts'
import { expressionScope, runRoot } from '../engine/expression-scope.ts'
import { waitingAt } from '../engine/places.ts'
import { isAsked, type OpenWait, type StoredSignal, type Wait } from '../state.ts'
import { suspend } from '../engine/suspend.ts'
import { sourceOf } from '../outbound/source-events.ts'
import { dueOf } from './timeout.ts'

/** The event step of the vocabulary. */
export type WaitStep = Extract<Step, { kind: 'wait_for_event' }>
type EventWait = Extract<OpenWait, { kind: 'event' }>

/** Wait for an event, or go on at once with a signal that came before. */
export function executeWait(on: Draft, step: WaitStep): void {
  const key = current(on)?.key ?? ''
  const { event_type, match, source_id, condition } = step.config
  const roots = expressionScope(on)
  const source = source_id === undefined ? undefined : String(renderText(source_id, roots))
  const wait: EventWait = {
    kind: 'event',
    step: key,
    id: on.cause.mint('wait'),
    event_type,
    ...(source !== undefined && { source_id: source }),
    ...(match && { match: renderNative(match, roots) as JsonObject }),
    ...(condition !== undefined && { condition }),
  }
  if (!event_type.startsWith('signal.')) {
    emit(on, 'wait.asked', { step: key, place: { wait: { ...wait, asked: true } } })
    return
  }
  const timed = timedOf(on, step, wait)
  const early = on.state.signals.find((signal) => answers(wait, signal, on))
  if (!early) {
    suspendFor(on, timed)
    return
  }
  emit(on, 'wait.opened', {
    step: key,
    payload: { step: key, wait_id: wait.id, wait_kind: wait.kind, ...detailsOf(timed) },
    row: { wait_id: wait.id },
    place: { wait: timed },
  })
  consume(on, early, step)
}

/** The matcher knows the wait of the current step: it is open now, and its time begins. */
export function openWait(on: Draft, { asked: _, ...wait }: EventWait): void {
  const step = current(on)?.step
  if (step) suspendFor(on, timedOf(on, step, wait))
}
function timedOf(on: Draft, step: Step, wait: EventWait): EventWait {
  const due = dueOf(on, step)
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
function suspendFor(on: Draft, wait: EventWait): void {
  const { event_type, due, step: step_key } = wait
  const until = due !== undefined && { until: timestamp(due) }
  suspend(on, wait, detailsOf(wait), {
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
 * Give a stored signal to the first step that waits for it, if there is one. Returns whether it was
 * consumed.
 */
export function offer(on: Draft, signal: StoredSignal): boolean {
  const found = waitingAt(on.state, (wait) => wait.kind === 'event' && answers(wait, signal, on))
  if (!found) return false
  on.at = found.at
  const step = current(on)?.step
  if (step?.kind === 'wait_for_event') consume(on, signal, step)
  return true
}

/**
 * Whether an open wait is for this event. The matcher has said which waits it fits, all others are
 * for events that came before them.
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
/** Go on with the step that waits for an event. */
export function consumeEvent(on: Draft, { event, meta }: Delivered): void {
  const step = current(on)?.step
  if (step?.kind === 'wait_for_event') take(on, { event, meta }, step)
}

const answers = (wait: EventWait, signal: StoredSignal, on: Draft): boolean =>
  wait.event_type === `signal.${signal.name}` && holds(wait, sourceOf(on.state.record.id, signal))

function consume(on: Draft, signal: StoredSignal, step: WaitStep): void {
  const { event, meta } = sourceOf(on.state.record.id, signal)
  take(on, { event, meta }, step, signal.id)
}

function take(
  on: Draft,
  document: { event: JsonObject; meta: JsonObject },
  step: WaitStep,
  signal?: string,
): void {
  const waited = current(on)?.row?.status === 'suspended'
  endWait(on, 'wait.resumed', { payload: document }, signal)
  attempting(on, () => {
    const mapping = step.config.payload_mapping
    const run = runRoot(on.state.record, on.state.engine.attempt)
    const output = mapping
      ? Object.fromEntries(
          Object.entries(mapping).map(([name, source]) => [
            name,
            evaluate(source, { ...document, run }),
          ]),
        )
      : document
    if (waited) resumeStep(on)
    completeStep(on, output)
  })
}
