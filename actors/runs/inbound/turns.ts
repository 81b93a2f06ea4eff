/**
 * Messages to a run about the agent turns of its steps. The run accepts them only for turns that it
 * waits for: late, repeated and misdirected messages change nothing.
 *
 * Invariants:
 * U1. Commands to the session are effects of events of this run, and are sent in the order of these
 *     events. A turn is therefore opened before it is stopped.
 * U2. After cancellation was requested, a run waits until its open turns have ended. A turn that is
 *     not open yet is never opened.
 */
import type { ActorOf } from '../../../protocol/actions/invocation.ts'
import { refuse } from '../../../protocol/errors.ts'
import type { RunCommands } from '../../../protocol/internal.ts'
import { getOwn } from '../../../protocol/lookup.ts'
import type { RunEvent } from '../../../protocol/runs/events.ts'
import { isSameBundle } from '../../../protocol/runs/turns.ts'
import type { TurnWork } from '../../../protocol/sessions/bookkeeping.ts'
import type { TurnOpening } from '../../../protocol/sessions/commands.ts'
import type { Cause, Decision } from '../../actor.ts'
import {
  type AgentWait,
  current,
  type Draft,
  emit,
  emptyDecision,
  newDraft,
  withoutReply,
} from '../draft.ts'
import { advance } from '../engine/advance.ts'
import { cancelRun } from '../engine/ending.ts'
import { leaveBranch } from '../engine/leave-branches.ts'
import { completeWork, failStep } from '../engine/outcome.ts'
import { holdsWork, isCancelling, waitingAt } from '../engine/places.ts'
import { endWait, resumeStep } from '../engine/resume.ts'
import { aboutOf, causeOf } from '../outbound/source-events.ts'
import { hasEnded, type RunState } from '../state.ts'
import { askAgain, turnWait } from '../steps/agent.ts'
import { recordVerdict, VERDICT } from '../steps/check.ts'

type Told<N extends keyof RunCommands> = RunCommands[N]['input']
type Report = Omit<Told<'turn.settled'>, 'turn_id' | 'session_id'>

/**
 * Begins a decision for the step that waits for a turn. Returns undefined if no step waits for it.
 */
function waitingFor(
  state: RunState | null,
  holds: (wait: AgentWait) => boolean,
  cause: Cause,
): { readonly draft: Draft; readonly wait: AgentWait } | undefined {
  const found =
    state && !hasEnded(state) && waitingAt(state, (wait) => wait.kind === 'agent' && holds(wait))
  if (!state || !found) return undefined
  const draft = newDraft(state, cause)
  draft.at = found.at
  const wait = turnWait(draft)
  return wait && { draft, wait }
}
const types: Readonly<Record<ActorOf['principal_type'], TurnWork['asker']['type']>> = {
  human: 'user',
  agent: 'agent',
  service: 'service_account',
  system: 'system',
}
/**
 * Returns the asker of the run's turns: the principal on whose behalf the run acts, or the system
 * if there is no such principal.
 */
const askerOf = ({ engine: { actor } }: RunState): TurnWork['asker'] =>
  actor
    ? { id: actor.principal_id, type: types[actor.principal_type] }
    : { id: 'system', type: 'system' }

/**
 * Opens the turn after its definition has been looked up. Refuses with `conflict` if the run has
 * stored a different definition of the agent for another turn in the meantime. The lookup is then
 * repeated with the stored definition.
 */
export function turnDefined(
  state: RunState | null,
  { turn_id, session_id, bundle, ...defined }: Told<'turn.defined'>,
  cause: Cause,
): Decision<RunEvent, undefined> {
  const found = waitingFor(
    state,
    (wait) => wait.turn_id === turn_id && wait.job_id !== undefined,
    cause,
  )
  if (!found || (found.draft.state.record.cancel_requested && !found.draft.state.engine.ending))
    return emptyDecision
  const {
    draft,
    wait: { job_id: _, ...wait },
  } = found
  const kept = bundle && getOwn(draft.state.bundles ?? {}, bundle.agent_id)
  if (kept && !isSameBundle(kept, bundle))
    return refuse('conflict', { agent_id: bundle.agent_id }, 'The run keeps another definition.')
  const { step, row } = current(draft) ?? {}
  const {
    record: { id: run_id, loop_id },
  } = draft.state
  const { agent_id } = defined.definition
  const output_schema =
    step?.kind === 'check'
      ? VERDICT
      : step?.kind === 'agent'
        ? step.config.output_schema
        : undefined
  const opening: TurnOpening = {
    ...defined,
    turn_id,
    owner: { run_id, step_key: wait.step },
    ...(loop_id !== undefined && { loop_id }),
    attempt: row?.attempt ?? 1,
    content: [{ type: 'text', text: String(row?.inputs?.['instructions'] ?? '') }],
    asker: askerOf(draft.state),
    causation: causeOf(draft.state),
    ...(output_schema && { output_schema }),
  }
  emit(draft, 'turn.opened', {
    step: wait.step,
    payload: { step: wait.step, agent_id, session_id, turn_id, attempt: opening.attempt },
    row: { agent_id, session_id },
    place: { wait: { ...wait, session_id } },
    note: {
      tell: { to: { kind: 'session', id: session_id }, name: 'turn.open', input: opening },
      ...(bundle && !kept && { bundle }),
    },
  })
  return withoutReply(draft)
}

/**
 * Handles a lookup of a turn definition that ended without a turn: the turn counts as failed.
 * Returns undefined if the job is not such a lookup.
 */
export function openingSettled(
  state: RunState | null,
  { job_id, outcome, error_type, error_message }: Told<'job.settled'>,
  cause: Cause,
): Decision<RunEvent, undefined> | undefined {
  const found = waitingFor(state, (wait) => wait.job_id === job_id, cause)
  if (!found) return undefined
  settle(found.draft, found.wait, {
    status: 'failed',
    error_type: outcome === 'failed' ? (error_type ?? 'agent_unavailable') : 'agent_unavailable',
    error: error_message ?? 'The definition of the turn could not be loaded',
  })
  advance(found.draft)
  return withoutReply(found.draft)
}

/**
 * Handles the end of a turn. If cancellation was requested, the run ends when all of its jobs,
 * children and turns have ended, whatever their outcomes. A completed step stays completed.
 */
export function turnSettled(
  state: RunState | null,
  { turn_id, session_id, ...report }: Told<'turn.settled'>,
  cause: Cause,
): Decision<RunEvent, undefined> {
  const found = waitingFor(
    state,
    (wait) => wait.turn_id === turn_id && wait.session_id === session_id,
    cause,
  )
  if (!found) return emptyDecision
  const { draft, wait } = found
  const { cancel_reason } = draft.state.engine
  if (!isCancelling(draft.state)) {
    if (report.again) askAgain(draft, wait)
    else {
      settle(draft, wait, report)
      advance(draft)
    }
    return withoutReply(draft)
  }
  if (report.status === 'completed' && current(draft)?.step.kind === 'agent')
    settle(draft, wait, report)
  else if (draft.at === undefined) endWait(draft, 'wait.closed', { reason: 'cancelled' })
  if (draft.at !== undefined) leaveBranch(draft, cancel_reason ?? 'the run was cancelled')
  if (!holdsWork(draft.state)) {
    cancelRun(draft)
    advance(draft)
  }
  return withoutReply(draft)
}

function settle(draft: Draft, wait: AgentWait, report: Report): void {
  const { status, output, text = '' } = report
  const { step, row } = current(draft) ?? {}
  draft.why = { reason: `turn ${status}`, turn_id: wait.turn_id }
  endWait(draft, status === 'completed' ? 'wait.resumed' : 'wait.closed', {
    turn_id: wait.turn_id,
    status,
  })
  resumeStep(draft)
  const fault = {
    error_type: report.error_type ?? (status === 'cancelled' ? 'turn_cancelled' : 'turn_failed'),
    error: report.error ?? `The turn ${status === 'cancelled' ? 'was cancelled' : 'failed'}`,
  }
  if (report.stalled)
    emit(draft, 'run.progress_stalled', {
      step: wait.step,
      payload: { step: wait.step, ...report.stalled, attempt: row?.attempt ?? 1 },
      note: { about: aboutOf(draft.state) },
    })
  if (step?.kind === 'check')
    recordVerdict(draft, step, wait, status === 'completed' ? (output ?? {}) : fault)
  else if (status === 'completed') completeWork(draft, output ?? { text })
  else failStep(draft, fault, false, {}, report.stalled ? 'progress_stalled' : undefined)
}
