/**
 * Signals, in two forms. A signal by name is stored durably, and at most one step that waits for
 * the name, now or later, consumes it. A signal by step completes a suspended step with the given
 * result, whatever the step waits for.
 */
import type { GateExtra } from '../../../protocol/access/directory.ts'
import type { Api } from '../../../protocol/api.ts'
import { bodyKey, type JsonObject } from '../../../protocol/common.ts'
import type { Input } from '../../../protocol/contract.ts'
import { refuse, refuseFields } from '../../../protocol/errors.ts'
import { shownRun } from '../../../protocol/loops/record.ts'
import type { RunEvent } from '../../../protocol/runs/events.ts'
import type { Run, RunStep } from '../../../protocol/runs/schema.ts'
import type { Cause, Decided, Decision } from '../../actor.ts'
import { emit, newDraft, tellQueue, tellRun, withdraw, withoutReply } from '../draft.ts'
import { advance } from '../engine/advance.ts'
import { leaveBranches } from '../engine/leave-branches.ts'
import { completeStep } from '../engine/outcome.ts'
import { waitingAt } from '../engine/places.ts'
import { endWait, resumeStep } from '../engine/resume.ts'
import {
  hasEnded,
  isAsked,
  keyOf,
  type PendingSignal,
  type RunState,
  rowOf,
  signalKey,
} from '../state.ts'
import { overriddenVerdict, refuseGate } from '../steps/check.ts'
import { offer } from '../steps/wait.ts'

type Signal = Input<Api['run.signal']>
type Answer = { source_event_id: string } | Run

/** Maximum number of stored signals. */
export const MAX_STORED = 1000
/** Maximum total size of the stored signals, in characters of JSON. */
const MAX_SIGNALS_LENGTH = 16 * 1024 * 1024

/** Returns a new signal in its stored form. */
export const storedSignal = (
  cause: Cause,
  name: string,
  payload: JsonObject,
  key?: string,
): PendingSignal => ({
  id: cause.mint('source_event'),
  name,
  payload,
  size: JSON.stringify(payload).length,
  ...(key !== undefined && { key }),
})
/**
 * Returns the total size of the stored signals in characters of JSON. Signals that older releases
 * stored have no size and count as 0.
 */
const held = ({ signals }: RunState): number => signals.reduce((sum, { size = 0 }) => sum + size, 0)
/**
 * Whether the run can store `more` additional signals. The check of the number includes the
 * additional signals. The check of the size includes only the signals that are already stored.
 */
export const hasRoom = (state: RunState, more = 1): boolean =>
  state.signals.length + more <= MAX_STORED && held(state) <= MAX_SIGNALS_LENGTH

/** Handles a signal of either form. */
export function signal(
  state: RunState | null,
  input: Signal & GateExtra,
  cause: Cause,
): Decision<RunEvent, Answer> {
  if (!state) return refuse('not_found')
  return input.step_key !== undefined
    ? complete(state, { ...input, step_key: input.step_key }, cause)
    : send(state, input, cause)
}

function send(
  state: RunState,
  { name = '', payload = {}, idempotency_key }: Signal,
  cause: Cause,
): Decision<RunEvent, Answer> {
  const key = bodyKey({ idempotency_key })
  const known = key === undefined ? undefined : state.keys[signalKey(name, key)]
  if (known !== undefined) return { events: [], reply: { source_event_id: known } }
  if (hasEnded(state))
    return refuse(
      'conflict',
      { status: state.record.status },
      'The run has ended and accepts no signals.',
    )
  if (state.signals.length >= MAX_STORED)
    return refuse(
      'conflict',
      { limit: MAX_STORED },
      `${MAX_STORED} signals wait to be consumed; the run accepts no more until a step consumes one.`,
    )
  if (!hasRoom(state))
    return refuse(
      'conflict',
      { limit: MAX_SIGNALS_LENGTH },
      `The signals that wait to be consumed are larger than ${MAX_SIGNALS_LENGTH} characters; ` +
        `the run accepts no more until a step consumes one.`,
    )
  const stored = storedSignal(cause, name, payload, key)
  const draft = newDraft(state, cause)
  emit(draft, 'signal.stored', { note: { store: stored } })
  draft.why = { reason: 'signal', signal_name: name }
  if (!state.record.cancel_requested && offer(draft, stored)) advance(draft)
  return { ...withoutReply(draft), reply: { source_event_id: stored.id } }
}

/**
 * Completes a suspended step by hand. If the step waits for the gate of a check, a principal that
 * could not answer the gate is refused as an answer would be. Without a result, the output of such
 * a step is its verdict.
 */
function complete(
  state: RunState,
  { step_key: key, result, responds }: Signal & GateExtra & { readonly step_key: string },
  cause: Cause,
): Decision<RunEvent, Answer> {
  const found = waitingAt(
    state,
    (wait) => wait.step === key && wait.kind !== 'pause' && !isAsked(wait),
  )
  if (!found && !isKnown(state, key))
    return refuse('not_found', { step_key: key }, `The run has no step ${key}.`)
  const { status, cancel_requested } = state.record
  if (hasEnded(state) || cancel_requested) return refuse('conflict', { status, cancel_requested })
  const wait = found?.progress.wait
  if (!wait)
    return refuseFields({
      field: 'step_key',
      message: 'the step is not suspended',
      expected: 'suspended',
      actual: recordOf(state, key)?.status ?? 'pending',
    })
  const refused = refuseGate(state, found.at, wait, responds, cause)
  if (refused) return refused
  const draft = newDraft(state, cause)
  const why = 'the step was completed by a signal'
  if (found.at === undefined) leaveBranches(draft, why)
  draft.at = found.at
  if (wait.kind === 'run') tellRun(draft, wait.run_id, 'child.cancel', { reason: why })
  if (wait.kind === 'worker')
    tellQueue(draft, 'queue.cancel', {
      job_ids: [wait.job_id],
      reason: why,
    })
  const verdict = overriddenVerdict(draft, why)
  const output = result ?? verdict ?? {}
  withdraw(draft, why)
  draft.why = { reason: 'signal' }
  endWait(draft, 'wait.resumed', {
    payload: output,
    ...(verdict && { overridden_by: cause.principal.id }),
  })
  resumeStep(draft)
  completeStep(draft, output, verdict && { verdict_detail: verdict })
  advance(draft)
  return {
    ...withoutReply(draft),
    reply: (after: RunState) => ({ ...shownRun(after.record), status_code: 200 }),
  } satisfies Decided<RunEvent, Answer>
}

/**
 * Returns the record of a step of the run itself, or of one of its active branches. Returns
 * undefined if the step has not been reached.
 */
const recordOf = (state: RunState, key: string): RunStep | undefined => {
  const branch = (state.branches ?? []).find(({ key: at }) => key.startsWith(`${at}.`))
  return branch ? rowOf(state, key, branch.key) : rowOf(state, key)
}
/** Whether the run has a step with this key, or an active branch has reached it. */
const isKnown = (state: RunState, key: string): boolean =>
  state.spec.steps.some((step, index) => keyOf(step, index) === key) ||
  recordOf(state, key) !== undefined
