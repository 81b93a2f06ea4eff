/**
 * The transitions of an environment that both commands and the rules of `advance.ts` cause: its
 * operations, its worker, its lease and its destruction. A transition does not decide whether it is
 * due.
 */
import { timestamp } from '../../protocol/common.ts'
import type { OperationKind } from '../../protocol/environments/commands.ts'
import type { PinnedJob } from '../../protocol/environments/events.ts'
import { change, type Draft, emit } from './draft.ts'
import { isUsable, jobsWhere } from './state.ts'

/** The error type of jobs that no worker of their environment can execute. */
export const UNAVAILABLE = 'environment_worker_unavailable'

/** Refuses jobs that the environment cannot execute. Without jobs, this function does nothing. */
export function refuseJobs(draft: Draft, jobs: readonly PinnedJob[], error_message: string): void {
  if (jobs.length > 0)
    emit(draft, {
      type: 'environment.jobs_refused',
      jobs,
      error_type: UNAVAILABLE,
      error_message,
    })
}
/**
 * Requests an operation. If it is the current operation, repeats the request.
 * @param replacesWorker whether a repeated start is the start of another worker.
 */
export function request(draft: Draft, kind: OperationKind, replacesWorker = false): void {
  const { operation, operations, record, worker } = draft.state
  const { at } = draft.cause
  const again = operation?.kind === kind ? operation : undefined
  emit(draft, {
    type: 'environment.operation_requested',
    environment_id: record.id,
    provider: record.provider,
    ...(record.place !== undefined && { place: record.place }),
    operation: again
      ? { ...again, asked: at, requests: again.requests + 1 }
      : { number: operations + 1, kind, since: at, asked: at, requests: 1 },
    ...(kind === 'start' && { generation: worker.generation + (again && !replacesWorker ? 0 : 1) }),
  })
}
/**
 * Ends the current operation, if any.
 * @param displaced whether the environment also loses its place.
 */
export function endOperation(draft: Draft, outcome: 'done' | 'failed', displaced = false): void {
  const { operation } = draft.state
  if (operation)
    emit(draft, {
      type: 'environment.operation_ended',
      number: operation.number,
      outcome,
      at: draft.cause.at,
      ...(displaced && { displaced: true }),
    })
}
/**
 * Records the end of the worker. Its job leases end too, because the worker has stopped or may no
 * longer change anything.
 * @param end a failed worker is started again only after a pause.
 */
export function endWorker(draft: Draft, end: 'stopped' | 'failed'): void {
  const { session, state } = draft.state.worker
  if (state === 'stopped') return
  emit(draft, {
    type: 'environment.worker_ended',
    at: draft.cause.at,
    ...(end === 'failed' && { failed: true }),
    ...(session !== undefined && { session }),
    jobs: session === undefined ? [] : jobsWhere(draft.state, ({ admitted }) => admitted === true),
  })
  if (draft.state.record.current_worker_session_id !== undefined)
    change(draft, { current_worker_session_id: null, worker_state: 'stopped' })
}

/** Ends the current lease, if any. */
export function endLease(draft: Draft, end: 'released' | 'expired'): void {
  const { record, lease_until } = draft.state
  if (lease_until === undefined) return
  emit(draft, {
    type: 'environment.lease_ended',
    id: record.id,
    record: { lease: null, updated_at: timestamp(draft.cause.at) },
    ...(end === 'expired' && { expired: true }),
  })
}

/** Begins the destruction of the environment. Waiting jobs fail, and running jobs are cancelled. */
export function destroy(draft: Draft): void {
  const { record } = draft.state
  if (record.status === 'destroyed' || record.status === 'destroying') return
  const reason = 'The environment is being destroyed.'
  refuseJobs(
    draft,
    jobsWhere(draft.state, (job) => !job.admitted && !job.refused),
    reason,
  )
  const running = jobsWhere(draft.state, ({ admitted }) => admitted === true)
  if (running.length > 0) emit(draft, { type: 'environment.jobs_cancelled', jobs: running, reason })
  endLease(draft, 'released')
  change(draft, { status: 'destroying', cleanup_status: 'pending' })
  endOperation(draft, 'failed')
}
/** Records that the environment no longer exists. */
export function recordDestruction(draft: Draft, cleanup: 'succeeded' | 'skipped'): void {
  endOperation(draft, 'done')
  endWorker(draft, 'stopped')
  const { record, origin } = draft.state
  emit(draft, {
    type: 'environment.destroyed',
    id: record.id,
    record: {
      status: 'destroyed',
      cleanup_status: cleanup,
      error: null,
      place: null,
      isolation: null,
      current_worker_session_id: null,
      updated_at: timestamp(draft.cause.at),
    },
  })
  if (origin.holder !== undefined)
    draft.tells.push({
      to: { kind: 'environment_name', id: origin.holder },
      name: 'environment_name.keep',
      input: { environment_id: record.id },
    })
}

/**
 * Retains or destroys the environment according to its retention policy, after its use has ended.
 */
export function applyPolicy(draft: Draft, succeeded: boolean): void {
  const { retention_policy } = draft.state.record
  const keeps =
    retention_policy === 'manual' ||
    retention_policy === 'retain_always' ||
    (retention_policy === 'retain_on_failure' && !succeeded)
  if (!keeps) destroy(draft)
  else if (isUsable(draft.state) && draft.state.record.status !== 'retained')
    change(draft, { status: 'retained' })
}
