/**
 * The run actor: executes the steps of a spec one after another, and the steps of branches
 * concurrently. This file only lists commands, events, effects and queries. Decisions on commands
 * are in `commands/` and `inbound/`, the engine is in `engine/`, and the kinds of steps are in
 * `steps/`.
 *
 * A run advances only on a command, such as a signal, the end of a job or a timer. Between commands
 * it waits, is held by its loop, or has ended (engine/advance.ts, E1). A queued or suspended run
 * can also end directly.
 *
 *     queued → running → completed | failed | cancelled
 *                 ↕                    ↓ recovery
 *             suspended              queued
 */

import type { GateExtra, RecoverExtra, StartExtra } from '../../protocol/access/directory.ts'
import type { Api } from '../../protocol/api.ts'
import type { RunCommands } from '../../protocol/internal.ts'
import { shownRun } from '../../protocol/loops/record.ts'
import type { RunEvent } from '../../protocol/runs/events.ts'
import type { Actor, Tell } from '../actor.ts'
import { cancel, recover, resume, retry } from './commands/control.ts'
import { actionCall, type InvokeExtra, invoke, invoked } from './commands/invoke.ts'
import { beginHeldRun, displace, finish, open, wait } from './commands/loop-run.ts'
import { signal } from './commands/signal.ts'
import { start } from './commands/start.ts'
import { deadline } from './engine/deadline.ts'
import { jobSpec } from './engine/places.ts'
import { artifactPublished } from './inbound/artifacts.ts'
import { childCancel, childSettled, childStart } from './inbound/children.ts'
import { awaiting, deliver, watched } from './inbound/deliver.ts'
import { environmentBound } from './inbound/environments.ts'
import { opened, responded, settled } from './inbound/interactions.ts'
import { jobRetried, jobSettled } from './inbound/jobs.ts'
import { childAnswered } from './inbound/loops.ts'
import { turnDefined, turnSettled } from './inbound/turns.ts'
import { wake } from './inbound/wake.ts'
import {
  askToWatch,
  forwardCommand,
  publishEnd,
  publishSignal,
  publishVerdict,
  unwatch,
} from './outbound/source-events.ts'
import { halt, recordUsage } from './outbound/usage.ts'
import { apply, createState, hasEnded, type RunState } from './state.ts'
import { wantedTurn } from './steps/agent.ts'

/** The run actor. Its state is null before `run.created`. */
export const run: Actor<
  RunState | null,
  RunEvent,
  Api,
  'run',
  Pick<RunCommands, keyof RunCommands>,
  {
    'run.start': StartExtra
    'workflow.run': StartExtra
    'action.invoke': InvokeExtra
    'run.retry': RecoverExtra
    'run.recover': RecoverExtra & GateExtra
    'run.resume': GateExtra
    'run.signal': GateExtra
  }
> = {
  kind: 'run',
  initial: () => null,
  decide: {
    'run.start': start,
    'action.invoke': invoke,
    'workflow.run': start,
    'run.cancel': cancel,
    'run.resume': resume,
    'run.recover': recover,
    'run.retry': retry,
    'run.signal': signal,
    'job.settled': jobSettled,
    'job.retried': jobRetried,
    'interaction.opened': opened,
    'interaction.responded': responded,
    'interaction.settled': settled,
    'child.start': childStart,
    'child.cancel': childCancel,
    'child.settled': childSettled,
    'event.watched': watched,
    'event.deliver': deliver,
    wake,
    'run.artifact': artifactPublished,
    'run.environment': environmentBound,
    'run.open': open,
    'run.begin': beginHeldRun,
    'run.hold': wait,
    'run.displace': displace,
    'run.halt': halt,
    'run.end': finish,
    'child.answered': childAnswered,
    'usage.record': recordUsage,
    'turn.defined': turnDefined,
    'turn.settled': turnSettled,
  },
  evolve: {
    'run.created': createState,
    'run.started': apply,
    'run.suspended': apply,
    'run.resumed': apply,
    'run.completed': apply,
    'run.failed': apply,
    'run.cancelled': apply,
    'run.cancel_requested': apply,
    'step.started': apply,
    'step.suspended': apply,
    'step.resumed': apply,
    'step.completed': apply,
    'step.failed': apply,
    'step.retried': apply,
    'step.skipped': apply,
    'step.cancelled': apply,
    'wait.opened': apply,
    'wait.resumed': apply,
    'wait.timed_out': apply,
    'wait.closed': apply,
    'action.called': apply,
    'action.completed': apply,
    'action.failed': apply,
    'action.retried': apply,
    'signal.stored': apply,
    'limit.reached': apply,
    'interaction.requested': apply,
    'interaction.responded': apply,
    'interaction.settled': apply,
    'check.passed': apply,
    'check.failed': apply,
    'wait.asked': apply,
    'event.delivered': apply,
    'cleanup.begun': apply,
    'run.paused': apply,
    'branches.begun': apply,
    'branch.started': apply,
    'branch.completed': apply,
    'branch.failed': apply,
    'branch.cancelled': apply,
    'run.held': apply,
    'usage.recorded': apply,
    'run.budget_exceeded': apply,
    'loop.auto_paused': apply,
    'loop.asked': apply,
    'turn.asked': apply,
    'turn.opened': apply,
    'turn.stopped': apply,
    'run.progress_stalled': apply,
    'artifact.created': apply,
    'artifact.published': apply,
    'environment.bound': apply,
  },

  react: {
    'loop.asked': ({ private: ask }) => [{ tell: ask as unknown as Tell }],
    'run.budget_exceeded': publishVerdict('run.budget_exceeded'),
    'run.progress_stalled': publishVerdict('run.progress_stalled'),
    'artifact.created': forwardCommand,
    'artifact.published': forwardCommand,
    'environment.bound': forwardCommand,
    'turn.opened': forwardCommand,
    'turn.stopped': forwardCommand,
    'wait.asked': askToWatch,
    'wait.resumed': unwatch,
    'wait.timed_out': unwatch,
    'wait.closed': unwatch,
    'step.cancelled': unwatch,
    'signal.stored': publishSignal,
    'check.passed': publishVerdict('check.passed'),
    'check.failed': publishVerdict('check.failed'),
    'run.completed': publishEnd('run.completed'),
    'run.failed': publishEnd('run.failed'),
    'run.cancelled': publishEnd('run.cancelled'),
  },
  ask: {
    /**
     * The content of a job for its worker, or the turn that a lookup job resolves. Null if the run
     * no longer waits for the job.
     */
    job_spec: (state, input) => jobSpec(state, input) ?? wantedTurn(state, input),
    /**
     * The facts that an executor needs to make the call of a job. Null if the run no longer waits
     * for the job.
     */
    action_call: actionCall,
    /** The status and outcome of a direct call. */
    invoked,
    /** Types of the events that steps wait for, with the ids of the waits. */
    awaiting,
    /** The spec of a run without a stored definition; null for other runs. */
    inline_spec: (state) =>
      state && state.record.loop_id === undefined && state.record.definition_id === ''
        ? state.spec
        : null,
    /** The record as clients see it, or null if the run does not exist. */
    get: (state) => state && shownRun(state.record),
  },
  deadline,
  ended: (state) => state !== null && hasEnded(state),
  // A failed run is not final, because it may be recovered.
  final: (state) => state?.record.status === 'completed' || state?.record.status === 'cancelled',
}
