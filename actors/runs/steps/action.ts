/**
 * An action step: a job for a worker, or the run of a published workflow. The run stores the
 * parameters. The queue receives the header of a job and manages its attempts. The job enters the
 * queue in the commit that suspends the run, so neither exists without the other.
 *
 * The retry policy of the step bounds both failed attempts and lost leases. Without a policy, the
 * first failure or lost lease ends the job. If there is no policy and the action is annotated as
 * safe to repeat, the limit on lost leases is raised to three when the job is claimed.
 */

import { type JsonObject, sizeOf } from '../../../protocol/common.ts'
import { usedEnvironment } from '../../../protocol/environments/commands.ts'
import type { Job, JobHeader } from '../../../protocol/jobs/rows.ts'
import { publishedHandle } from '../../../protocol/naming.ts'
import { isLiteral, renderText } from '../../../protocol/rules/expressions/template.ts'
import type { TurnEnvironment } from '../../../protocol/sessions/turns/definition.ts'
import { sizes } from '../../../protocol/workers/socket.ts'
import type { Step } from '../../../protocol/workflows/spec.ts'
import { current, type Draft, emit, now, progressOf, tellQueue, tellRun } from '../draft.ts'
import type { RunFault } from '../engine/ending.ts'
import { expressionScope } from '../engine/expression-scope.ts'
import { attemptsOf, failStep } from '../engine/outcome.ts'
import { specOf } from '../engine/places.ts'
import { suspend } from '../engine/suspend.ts'
import type { OpenWait } from '../state.ts'
import { childOf, isDeepest, startChild, tooDeep } from './child.ts'
import { actionEnvironment, ownUse, preparationAt } from './environment.ts'
import { dueOf } from './timeout.ts'

/** An action step of a spec. */
export type ActionStep = Extract<Step, { kind: 'action' }>

/** The longest member that the queue can add to the content of a job in an environment. */
const FENCED = { environment: { fence: Number.MAX_SAFE_INTEGER } }

/** Requests the action, and waits for its result. */
export function executeAction(draft: Draft, step: ActionStep): void {
  const prepared = preparationAt(draft)
  if (prepared && 'fault' in prepared) {
    failStep(draft, { error_type: 'repository_unknown', error: prepared.fault }, true)
    return
  }
  const environment = actionEnvironment(draft.state, step.config)
  if (environment && 'error' in environment) {
    failStep(draft, environment, true)
    return
  }
  const declared = step.config.parameters ?? {}
  const parameters = prepared
    ? { ...prepared }
    : draft.state.engine.invoked || isLiteral(declared)
      ? declared
      : (renderText(declared, expressionScope(draft)) as JsonObject)
  const spec = { ...specOf(step, parameters), ...(environment && FENCED) }
  const size = sizeOf(JSON.stringify(spec), sizes.spec)
  if (size <= sizes.spec)
    if (environment || publishedHandle(step.config.action_name) === undefined)
      call(draft, step, parameters, environment)
    else callWorkflow(draft, step, parameters)
  else
    failStep(
      draft,
      {
        error_type: 'job_spec_too_large',
        error: `The job has ${size} bytes with its rendered parameters; at most ${sizes.spec} are allowed`,
      },
      true,
    )
}

/**
 * Runs the published workflow that the action refers to as a child run, whose result becomes the
 * result of the step.
 */
function callWorkflow(draft: Draft, step: ActionStep, parameters: JsonObject): void {
  const { key, row } = current(draft) ?? {}
  const action = step.config.action_name
  const child = isDeepest(draft) ? tooDeep : childOf(draft, action, parameters, {})
  if ('error' in child) {
    failStep(draft, child, true)
    return
  }
  const run_id = draft.cause.mint('run')
  emit(draft, 'action.called', {
    ...(key !== undefined && { step: key }),
    payload: { action, step: key, parameters, run_id, attempt: row?.attempt ?? 1 },
  })
  startChild(draft, child, true, dueOf(draft, step), run_id)
}

function call(
  draft: Draft,
  step: ActionStep,
  parameters: JsonObject,
  environment: TurnEnvironment | undefined,
): void {
  const at = current(draft)
  if (!at?.row) return
  const { key, row } = at
  const job_id = draft.cause.mint('job')
  const action = step.config.action_name
  const due = dueOf(draft, step)
  const note = ownUse(draft.state, environment)
  emit(draft, 'action.called', {
    step: key,
    payload: { action, step: key, parameters, job_id, attempt: row.attempt },
    ...(note.engine && { note }),
  })
  const wait: OpenWait = {
    kind: 'worker',
    step: key,
    id: draft.cause.mint('wait'),
    job_id,
    base: row.attempt - 1,
    ...(due !== undefined && { due }),
  }
  suspend(
    draft,
    wait,
    { job_id, action, queue: draft.state.record.queue, subject: job_id },
    { job_id, inputs: parameters, waiting_on: null },
  )
  tellQueue(draft, 'queue.enqueue', jobOf(draft, step, key, job_id, environment))
}

function jobOf(
  draft: Draft,
  step: ActionStep,
  key: string,
  id: string,
  environment: TurnEnvironment | undefined,
): { job: JobHeader; record: Job } {
  const { record: run, engine } = draft.state
  const attempts = attemptsOf(step) - progressOf(draft).tries + 1
  const { action_name, execution_location } = step.config
  const { priority, fairness_key } = engine
  const origin = engine.invoked ? 'direct_action_invoke' : 'loop_action_step'
  const step_id = `${run.id}:${key}`
  // Both objects are written out for speed: every action creates both, and merging objects takes
  // several times as long.
  const job: Writable<JobHeader> = {
    id,
    kind: 'action_execution',
    origin,
    executor_kind: 'customer_worker',
    action_name,
    run_id: run.id,
    step_id,
    step_key: key,
    priority,
    max_attempts: attempts,
    fairness_key: fairness_key ?? '',
    enqueued_at: draft.cause.at,
    max_losses: attempts,
  }
  const record: Writable<Job> = {
    id,
    kind: 'action_execution',
    origin,
    executor_kind: 'customer_worker',
    action_name,
    run_id: run.id,
    step_id,
    step_key: key,
    priority,
    max_attempts: attempts,
    queue: run.queue,
    status: 'queued',
    claim_attempt: 0,
    cancel_requested: false,
    created_at: now(draft),
    updated_at: now(draft),
  }
  if (environment) {
    job.environment_id = record.environment_id = environment.id
    const used = usedEnvironment(environment)
    if (used) job.environment = used
  }
  if (execution_location === 'managed') job.executor_kind = record.executor_kind = 'server_worker'
  if (execution_location === 'worker') job.workers_only = true
  if (step.retry?.max_attempts !== undefined) job.strict = true
  if (fairness_key !== undefined) record.fairness_key = fairness_key
  return { job, record }
}
type Writable<T> = { -readonly [K in keyof T]: T[K] }

/**
 * Stops the job or the child run that the current step waits for, if any. The caller ends the wait.
 */
export function abandonWork(draft: Draft, fault: RunFault): void {
  const at = current(draft)
  const { wait } = progressOf(draft)
  if (wait?.kind === 'run')
    tellRun(draft, wait.run_id, 'child.cancel', { reason: fault.error_type })
  if (wait?.kind !== 'worker' || at?.step.kind !== 'action') return
  tellQueue(draft, 'queue.cancel', { job_ids: [wait.job_id], reason: fault.error_type })
  emit(draft, 'action.failed', {
    step: wait.step,
    payload: {
      action: at.step.config.action_name,
      step: wait.step,
      job_id: wait.job_id,
      ...(at.row && { attempt: at.row.attempt }),
      ...fault,
    },
  })
}
