/**
 * The end of a run: first its cleanup, if it has one, then the event that ends it.
 *
 * Invariants:
 * N1. The event that ends a run is the run's last event in its commit. Clients recognize the end by
 *     the final `status` in its payload.
 * N2. Cleanup does not change the outcome of the run, which is decided before the cleanup begins.
 * N3. The commit that ends a run also notifies its loop, and the parent that waits for it. A
 *     failure may pause the loop, and the timeline shows the pause before the end of the run. A
 *     failed run therefore first notifies its loop, whose reply `run.end` ends the run in the same
 *     commit (`leaving`).
 * N4. The event that ends a run has an effect that notifies the run's own environment, whatever the
 *     outcome. The environment receives this message after the queue's messages about the jobs of
 *     the run, which are earlier effects of the same shard.
 */
import { type JsonObject, sizeOf } from '../../../protocol/common.ts'
import type { StopReason } from '../../../protocol/loops/run.ts'
import { patch } from '../../../protocol/patch.ts'
import { ExpressionError } from '../../../protocol/rules/expressions/expression.ts'
import { renderNative } from '../../../protocol/rules/expressions/template.ts'
import { extended } from '../../../protocol/rules/extended.ts'
import { sizes } from '../../../protocol/workers/socket.ts'
import {
  current,
  type Draft,
  emit,
  now,
  progressOf,
  tellInteraction,
  tellLoop,
  tellRun,
  withdraw,
} from '../draft.ts'
import { aboutOf, causeOf, publishedRun } from '../outbound/source-events.ts'
import type { Ending } from '../state.ts'
import { environmentEnds } from '../steps/environment.ts'
import { expressionScope, outputs } from './expression-scope.ts'
import { isActive, leaveBranches } from './leave-branches.ts'
import { endWait } from './resume.ts'

/** The reason why a step or a run failed. */
export interface RunFault {
  readonly error_type: string
  readonly error: string
}

/** Begins the cleanup, or ends the run if it has no cleanup. */
function end(draft: Draft, ending: Ending): void {
  draft.at = undefined
  const { ending: already, held } = draft.state.engine
  // A held run has executed nothing since it was created, or since the cleanup of its failure. It
  // must not work either, because its loop has not admitted it.
  if (already || !draft.state.spec.cleanup?.length || held) leave(draft, ending)
  else
    emit(draft, 'cleanup.begun', {
      note: { engine: { ending } },
      place: { position: 0, tries: 0, wait: null },
      // A suspended run resumes with its first step of cleanup, as with every other step.
      ...(draft.state.record.status !== 'suspended' && { run: { status: 'running' } }),
    })
}

/** Ends the run after its cleanup, with the outcome that was decided before the cleanup. */
export function concludeCleanup(draft: Draft): void {
  const { ending } = draft.state.engine
  if (ending) leave(draft, ending)
}

function leave(draft: Draft, ending: Ending): void {
  const { id: run_id, loop_id } = draft.state.record
  if (ending.type !== 'run.failed' || loop_id === undefined) {
    concludeRun(draft, ending)
    return
  }
  emit(draft, 'run.held', { note: { engine: { leaving: ending } } })
  tellLoop(draft, 'run.left', {
    run_id,
    status: 'failed',
    ...causeOf(draft.state),
    record: publishedRun(patch(draft.state.record, ending.run)),
  })
}

const ends = {
  'run.completed': 'completed',
  'run.failed': 'failed',
  'run.cancelled': 'cancelled',
} as const
/**
 * Emits the event that ends the run. Withdraws the open interactions of a completed run, and
 * notifies a waiting parent. Notifies the loop too, unless the run failed (N3).
 */
export function concludeRun(draft: Draft, { type, step, payload, run, position }: Ending): void {
  const { asked, ending, leaving, more_at } = draft.state.engine
  const status = ends[type]
  const changes = extended(run, { completed_at: now(draft) })
  const about = aboutOf(draft.state, extended(changes, { updated_at: now(draft) }))
  const engine = {
    ...(leaving && { leaving: null }),
    ...(ending && { ending: null, position }),
    ...(asked && type !== 'run.failed' && { asked: null }),
    ...(more_at !== undefined && { more_at: null }),
  }
  emit(draft, type, {
    payload,
    run: changes,
    note: {
      about,
      ...environmentEnds(draft.state, status),
      ...(Object.keys(engine).length > 0 && { engine }),
    },
    ...(step !== undefined && { step }),
  })
  // A completed run no longer needs its open interactions. A failed run keeps them, because it may
  // be retried.
  if (type === 'run.completed')
    for (const id of asked ?? [])
      tellInteraction(draft, id, 'interaction.withdraw', { reason: 'the run has completed' })
  settleParent(draft)
  const { id: run_id } = draft.state.record
  if (status === 'completed' || status === 'cancelled')
    tellLoop(draft, 'run.left', { run_id, status })
}

function settleParent(draft: Draft): void {
  const {
    record,
    engine: { parent },
  } = draft.state
  if (!parent?.waits) return
  const { id: run_id, status, result, error_type, error_message } = record
  tellRun(draft, parent.run_id, 'child.settled', {
    run_id,
    status,
    ...(result && { result }),
    ...(error_type !== undefined && { error_type, error_message }),
  })
}

/**
 * Ends the run as failed, after its cleanup.
 * @param step key of the step that failed.
 * @param stop_reason why the run ends.
 */
export function failRun(
  draft: Draft,
  fault: RunFault,
  step?: string,
  stop_reason: StopReason = 'step_failed',
): void {
  end(draft, {
    type: 'run.failed',
    position: draft.state.engine.position,
    ...(step !== undefined && { step }),
    payload: { status: 'failed', ...fault, ...(step !== undefined && { step }) },
    run: {
      status: 'failed',
      stop_reason,
      error_type: fault.error_type,
      error_message: fault.error,
    },
  })
}

/**
 * Ends the run as cancelled, after its cleanup. First closes its waits and cancels its active
 * steps. A step that has ended in an earlier attempt of the run stays as it is.
 */
export function cancelRun(draft: Draft): void {
  draft.at = undefined
  const reason = draft.state.engine.cancel_reason
  const why = reason ?? 'the run was cancelled'
  const because = reason !== undefined && { reason }
  leaveBranches(draft, why)
  withdraw(draft, why)
  for (const id of draft.state.engine.asked ?? [])
    tellInteraction(draft, id, 'interaction.withdraw', { reason: why })
  endWait(draft, 'wait.closed', { reason: 'cancelled' })
  draft.why = { reason: 'cancelled' }
  const at = current(draft)
  if (at?.row && isActive(at.row))
    emit(draft, 'step.cancelled', {
      step: at.key,
      payload: { step: at.key, kind: at.step.kind, ...because },
      row: { status: 'cancelled', completed_at: now(draft), waiting_on: null },
    })
  end(draft, {
    type: 'run.cancelled',
    position: progressOf(draft).position,
    payload: { status: 'cancelled', ...because },
    run: {
      status: 'cancelled',
      stop_reason: draft.state.engine.replaced ? 'replaced' : 'cancelled',
      ...(draft.state.record.queue_reason && { queue_reason: null }),
    },
  })
}

/**
 * Ends the run after its last step. The result is the rendered `output` block or, if the spec has
 * none, the outputs of all steps by key. A result that is too large or cannot be rendered fails the
 * run. The steps keep their outputs.
 */
export function completeRun(draft: Draft): void {
  const { state } = draft
  try {
    const output = state.spec.output
      ? (renderNative(state.spec.output, expressionScope(draft)) as JsonObject)
      : Object.fromEntries(outputs(state))
    const size = sizeOf(JSON.stringify(output), sizes.output)
    if (size > sizes.output)
      failRun(draft, {
        error_type: 'output_too_large',
        error:
          `The output has ${size} bytes; at most ${sizes.output} are allowed: ` +
          `select the required parts with the output block`,
      })
    else
      end(draft, {
        type: 'run.completed',
        position: state.engine.position,
        payload: { output, status: 'completed' },
        run: { status: 'completed', stop_reason: 'completed', result: output },
      })
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error
    failRun(draft, { error_type: 'expression_error', error: `output: ${error.message}` })
  }
}
