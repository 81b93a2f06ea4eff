/**
 * A step that waits for a signal. A signal that comes early is stored; a step consumes stored ones in the order of their
 * arrival, each at most once, and leaves those that do not match for a later step. A signal whose mapping fails was consumed
 * all the same: a retry waits for the next one instead of failing on this one forever.
 */
import { timestamp, type Open } from '../../../protocol/common.ts'
import { evaluate } from '../../../protocol/language/expression.ts'
import { matches, renderNative, renderText } from '../../../protocol/language/template.ts'
import type { Step } from '../../../protocol/spec.ts'
import { current, emit, type Draft } from '../draft.ts'
import type { RunCommands } from '../../../protocol/internal.ts'
import { attempting, completeStep, endWait, resumeStep } from '../outcome.ts'
import { rootsOf } from '../roots.ts'
import { waitingAt } from '../places.ts'
import type { OpenWait, StoredSignal, Wait } from '../state.ts'
import { suspend } from '../suspend.ts'
import { dueOf } from './timeout.ts'

/** The event step of the vocabulary. */
export type WaitStep = Extract<Step, { kind: 'wait_for_event' }>
type EventWait = Extract<OpenWait, { kind: 'event' }>

/** Wait for an event, or go on at once with a signal that came before. */
export function executeWait(on: Draft, step: WaitStep): void {
  const key = current(on)?.key ?? ''
  const { event_type, match, source_id } = step.config
  const roots = rootsOf(on)
  const due = dueOf(on, step)
  const source = source_id === undefined ? undefined : String(renderText(source_id, roots))
  const wait: EventWait = { kind: 'event', step: key, id: on.cause.mint('wait'), event_type, ...(source !== undefined && { source_id: source }), ...(match && { match: renderNative(match, roots) as Open }), ...(due !== undefined && { due }) }
  const until = due !== undefined && { until: timestamp(due) }
  const details: Open = { event_type, subject: event_type, ...(source !== undefined && { source_id: source }), ...(wait.match && { match: wait.match }), ...(until && { expires_at: until.until }) }
  const early = on.state.signals.find((signal) => answers(wait, signal, on))
  if (!early) {
    suspend(on, wait, details, { waiting_on: { kind: event_type.startsWith('signal.') ? 'signal' : 'event', event_type, reason: `Waits for ${event_type}`, ...until, step_key: key } })
    return
  }
  emit(on, 'wait.opened', { step: key, payload: { step: key, wait_id: wait.id, wait_kind: wait.kind, ...details }, row: { wait_id: wait.id }, place: { wait } })
  consume(on, early, step)
}

/** Give a stored signal to the first step that waits for it, if there is one. Returns whether it was consumed. */
export function offer(on: Draft, signal: StoredSignal): boolean {
  const found = waitingAt(on.state, (wait) => wait.kind === 'event' && answers(wait, signal, on))
  if (!found) return false
  on.at = found.at
  const step = current(on)?.step
  if (step?.kind === 'wait_for_event') consume(on, signal, step)
  return true
}

type SourceEvent = RunCommands['event.deliver']['input']
/** Whether a wait is for this event. */
export const isAwaited = (wait: Wait | undefined, { event_type, source_id, event, meta }: SourceEvent): boolean =>
  wait?.kind === 'event' && wait.event_type === event_type && (wait.source_id === undefined || wait.source_id === source_id) && (!wait.match || matches(wait.match, { event, meta }))
/** Go on with the step that waits for an event. */
export function consumeEvent(on: Draft, { event, meta }: SourceEvent): void {
  const step = current(on)?.step
  if (step?.kind === 'wait_for_event') take(on, { event, meta }, step)
}

const documentOf = (signal: StoredSignal, on: Draft): { event: Open; meta: Open } => ({ event: signal.payload, meta: { run_id: on.state.record.id, signal_name: signal.name, source_event_id: signal.id } })
const answers = (wait: EventWait, signal: StoredSignal, on: Draft): boolean => wait.event_type === `signal.${signal.name}` && (!wait.match || matches(wait.match, documentOf(signal, on)))

const consume = (on: Draft, signal: StoredSignal, step: WaitStep): void => take(on, documentOf(signal, on), step, signal.id)

function take(on: Draft, document: { event: Open; meta: Open }, step: WaitStep, signal?: string): void {
  const waited = current(on)?.row?.status === 'suspended'
  endWait(on, 'wait.resumed', { payload: document }, signal)
  attempting(on, () => {
    const mapping = step.config.payload_mapping
    const output = mapping ? Object.fromEntries(Object.entries(mapping).map(([name, source]) => [name, evaluate(source, document)])) : document
    if (waited) resumeStep(on)
    completeStep(on, output)
  })
}
