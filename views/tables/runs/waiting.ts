/**
 * The reasons why work does not progress, computed on request. They are derived from the step's own
 * record (timers, signals, retries), from the job that the step waits for, and from the connected
 * workers.
 */

import { parseTimestamp } from '../../../protocol/common.ts'
import type { Job } from '../../../protocol/jobs/rows.ts'
import { type RunStep, terminal, type WorkflowRun } from '../../../protocol/runs/schema.ts'
import type { WaitingOn } from '../../../protocol/runs/waiting.ts'
import type { Filters } from '../../../protocol/workers/socket.ts'

/** The filters of a connected worker that accepts jobs. */
export type WorkerFilters = Required<Pick<Filters, 'queues' | 'action_names' | 'models'>> &
  Pick<Filters, 'environment_id'>

/**
 * A stored job. `workers_only`: the service itself does not execute the job. `gated`: the
 * environment of the job has not admitted it yet. These fields are not part of any API record.
 */
export type InternalJob = Job & { readonly workers_only?: true; readonly gated?: true }

/**
 * The inputs for computing the reasons: the time of the query in Unix milliseconds, the connected
 * workers, and the actions that the service itself calls.
 */
export interface Watch {
  readonly now: number
  readonly workers: () => readonly WorkerFilters[]
  /** Whether the project has an action with this name that the service itself calls. */
  readonly served?: (action: string) => boolean
}

/**
 * Whether a worker may claim a job, by the same rule that applies to claims. A worker that lists
 * only models claims no actions.
 */
export function mayClaim(worker: WorkerFilters, job: Job): boolean {
  if (job.environment_id !== undefined && job.environment_id !== worker.environment_id) return false
  if (job.kind === 'llm_generation')
    return worker.models.some(
      ({ provider, model }) => provider === job.provider && model === job.model,
    )
  if (worker.queues.length > 0 && !worker.queues.includes(job.queue)) return false
  return worker.action_names.length > 0
    ? worker.action_names.includes(job.action_name ?? '')
    : worker.models.length === 0
}

/** Returns the reason why a job waits; undefined if the job has ended. */
export function waitingOfJob(job: InternalJob, watch: Watch): WaitingOn | undefined {
  if (job.status === 'claimed') return held(job, watch.now)
  if (job.status !== 'queued') return undefined
  const about = {
    job_id: job.id,
    queue: job.queue,
    ...(job.action_name !== undefined && { action_name: job.action_name }),
    ...(job.environment_id !== undefined && { environment_id: job.environment_id }),
  }
  if (job.gated)
    return {
      kind: 'worker',
      cause: 'environment',
      reason:
        `waiting until its environment ${job.environment_id} admits it: the environment may be ` +
        'in preparation, orphaned or leased to another holder',
      ...about,
    }
  if (
    job.executor_kind === 'server_worker' ||
    (job.action_name !== undefined &&
      job.environment_id === undefined &&
      !job.workers_only &&
      watch.served?.(job.action_name))
  )
    return {
      kind: 'worker',
      cause: 'executor',
      reason: 'waiting for a free slot of an executor of the service',
      ...about,
    }
  const able = watch.workers().filter((worker) => mayClaim(worker, job)).length
  return able > 0
    ? {
        kind: 'worker',
        cause: 'slot',
        able_workers: able,
        reason: `waiting for a free slot: ${able} ${able === 1 ? 'worker' : 'workers'} can take it`,
        ...about,
      }
    : { kind: 'worker', cause: 'no_worker', reason: `no worker ${wanted(job)}`, ...about }
}
// Renewals are not in the journal, but losses are. If the lease of a claimed job seems to have
// expired, either it was renewed, or its loss is not committed yet. The reason then says that the
// lease is being renewed.
function held(job: Job, now: number): WaitingOn {
  const { worker_instance_id, lease_expires_at } = job
  const worker = worker_instance_id === undefined ? 'a worker' : `worker ${worker_instance_id}`
  const until =
    lease_expires_at !== undefined && (parseTimestamp(lease_expires_at) ?? 0) > now
      ? lease_expires_at
      : undefined
  const about = {
    job_id: job.id,
    ...(worker_instance_id !== undefined && { worker_instance_id }),
    ...(until !== undefined && { until }),
  }
  if (job.cancel_requested)
    return {
      kind: 'cancel',
      reason: `cancellation was requested; ${worker} has not stopped yet`,
      ...about,
    }
  const lease = until === undefined ? 'is being renewed' : `lasts until ${until} unless renewed`
  return {
    kind: 'lease',
    reason: `${worker} works on it; its lease ${lease}`,
    ...about,
  }
}
function wanted(job: Job): string {
  const place = job.environment_id === undefined ? '' : ` in environment "${job.environment_id}"`
  return job.kind === 'llm_generation'
    ? `${place.slice(1)}${place && ' '}takes model "${job.provider ?? ''}/${job.model ?? ''}"`
    : `for queue "${job.queue}"${place} takes action "${job.action_name ?? ''}"`
}

/**
 * Returns the reason why a step waits. If the step is suspended and has a job that has not ended,
 * this is the reason why the job waits. Otherwise, it is the reason in the step's record.
 */
export function waitingOfStep(
  step: RunStep,
  jobs: (id: string) => InternalJob | undefined,
  watch: Watch,
): WaitingOn | undefined {
  const job =
    step.status === 'suspended' && step.job_id !== undefined ? jobs(step.job_id) : undefined
  const waiting = job && waitingOfJob(job, watch)
  return waiting ? { ...waiting, step_key: step.step_key } : step.waiting_on
}

/**
 * Returns the reason why a run waits: its admission, its cancellation, or the reason of its current
 * step.
 */
export function waitingOfRun(
  run: WorkflowRun,
  steps: readonly RunStep[],
  jobs: (id: string) => InternalJob | undefined,
  watch: Watch,
): WaitingOn | undefined {
  if (terminal.has(run.status)) return undefined
  const current = steps.find(({ status }) => status === 'suspended')
  const waiting = current && waitingOfStep(current, jobs, watch)
  if (run.cancel_requested)
    return waiting?.kind === 'cancel'
      ? waiting
      : {
          kind: 'cancel',
          reason: 'cancellation was requested; the run ends when its work has stopped',
          ...(current && { step_key: current.step_key }),
        }
  if (run.status === 'queued')
    return {
      kind: 'concurrency',
      reason: 'the run is queued and starts as soon as a slot is free',
      queue: run.queue,
    }
  return waiting && { step_key: current.step_key, ...waiting }
}
