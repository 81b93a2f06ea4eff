/**
 * The rules of environments that depend only on the state and the time, not on the command. Each
 * decision that may cause a rule to apply calls `advance` at its end, so each rule is implemented
 * only once.
 *
 * Invariants:
 * V1. At most one operation is requested at a time, and only its host may report its outcome.
 * V2. A job is admitted only while the environment is usable and not leased to another holder.
 * V3. If no worker connects within `wake_ms` after a worker is first needed, the waiting jobs fail,
 *     except passive jobs.
 * V4. The sequence numbers of operations, workers and leases only increase, even when a destroyed
 *     environment is created again.
 */
import { timestamp } from '../../protocol/common.ts'
import type { OperationKind } from '../../protocol/environments/commands.ts'
import type {
  EnvironmentJob,
  ExistingEnvironment,
  Operation,
  PinnedJob,
} from '../../protocol/environments/events.ts'
import { environmentLimits } from '../../protocol/environments/schema.ts'
import { change, type Draft, emit, STALE_MS } from './draft.ts'
import { hasJob, isAttached, isSameHolder, isUsable, jobsWhere } from './state.ts'

/** The error type of jobs that no worker of their environment can execute. */
export const UNAVAILABLE = 'environment_worker_unavailable'
/** Maximum pause in milliseconds between two requests for the same operation. */
const MAX_REQUEST_MS = 30_000
/** Maximum pause in milliseconds between two requests for the same teardown. */
const MAX_TEARDOWN_MS = 600_000
/** Maximum pause in milliseconds before a worker that failed is started again. */
const MAX_BACKOFF_MS = 60_000

const doubling = (first: number, times: number, longest: number): number =>
  Math.min(first * 2 ** Math.max(0, times), longest)
/**
 * Returns the time of the next request for an operation, in Unix milliseconds. Only the pauses of a
 * teardown that no host has claimed become long.
 */
const askAgainAt = ({ kind, asked, requests, host }: Operation): number =>
  asked +
  doubling(
    2000,
    requests - 1,
    kind === 'destroy' && host === undefined ? MAX_TEARDOWN_MS : MAX_REQUEST_MS,
  )
const startableAt = ({ worker: { since, failures } }: ExistingEnvironment): number =>
  failures === 0 ? 0 : since + doubling(1000, failures - 1, MAX_BACKOFF_MS)

/**
 * Returns the time until which the policy retains the environment of a run, in Unix milliseconds.
 * Returns undefined if the environment is not retained, or is retained without a limit.
 */
const retainedUntil = (
  { record, retained_at }: ExistingEnvironment,
  { retain_ms }: Draft['settings'],
): number | undefined =>
  retained_at !== undefined &&
  retain_ms > 0 &&
  record.status === 'retained' &&
  record.mode === 'run' &&
  record.retention_policy !== 'manual'
    ? retained_at + retain_ms
    : undefined

const isBusy = (state: ExistingEnvironment): boolean =>
  hasJob(state, ({ admitted }) => admitted === true)
const waitsForWorker = ({ status }: ExistingEnvironment['record'], job: EnvironmentJob): boolean =>
  !job.passive && !job.refused && (job.admitted === true || status === 'orphaned')
const wantsWorker = (state: ExistingEnvironment): boolean =>
  state.worker.requested === true || hasJob(state, (job) => waitsForWorker(state.record, job))

function refuseJobs(
  on: Draft,
  jobs: readonly PinnedJob[],
  error_message: string,
  error_type = UNAVAILABLE,
): void {
  if (jobs.length > 0)
    emit(on, { type: 'environment.jobs_refused', jobs, error_type, error_message })
}
/**
 * Requests an operation. If it is the current operation, repeats the request.
 * @param replacesWorker whether a repeated start is the start of another worker.
 */
export function request(on: Draft, kind: OperationKind, replacesWorker = false): void {
  const { operation, operations, record, worker } = on.state
  const { at } = on.cause
  const again = operation?.kind === kind ? operation : undefined
  emit(on, {
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
export function endOperation(on: Draft, outcome: 'done' | 'failed', displaced = false): void {
  const { operation } = on.state
  if (operation)
    emit(on, {
      type: 'environment.operation_ended',
      number: operation.number,
      outcome,
      at: on.cause.at,
      ...(displaced && { displaced: true }),
    })
}
/**
 * Records the end of the worker. Its job leases end too, because the worker has stopped or may no
 * longer change anything.
 * @param end a failed worker is started again only after a pause.
 */
export function endWorker(on: Draft, end: 'stopped' | 'failed'): void {
  const { session, state } = on.state.worker
  if (state === 'stopped') return
  emit(on, {
    type: 'environment.worker_ended',
    at: on.cause.at,
    ...(end === 'failed' && { failed: true }),
    ...(session !== undefined && { session }),
    jobs: session === undefined ? [] : jobsWhere(on.state, ({ admitted }) => admitted === true),
  })
  if (on.state.record.current_worker_session_id !== undefined)
    change(on, { current_worker_session_id: null, worker_state: 'stopped' })
}

/** Ends the current lease, if any. */
export function endLease(on: Draft, end: 'released' | 'expired'): void {
  const { record, lease_until } = on.state
  if (lease_until === undefined) return
  emit(on, {
    type: 'environment.lease_ended',
    id: record.id,
    record: { lease: null, updated_at: timestamp(on.cause.at) },
    ...(end === 'expired' && { expired: true }),
  })
}

/** Begins the destruction of the environment. Waiting jobs fail, and running jobs are cancelled. */
export function destroy(on: Draft): void {
  const { record } = on.state
  if (record.status === 'destroyed' || record.status === 'destroying') return
  const reason = 'The environment is being destroyed.'
  refuseJobs(
    on,
    jobsWhere(on.state, (job) => !job.admitted && !job.refused),
    reason,
  )
  const running = jobsWhere(on.state, ({ admitted }) => admitted === true)
  if (running.length > 0) emit(on, { type: 'environment.jobs_cancelled', jobs: running, reason })
  endLease(on, 'released')
  change(on, { status: 'destroying', cleanup_status: 'pending' })
  endOperation(on, 'failed')
}
/** Records that the environment no longer exists. */
export function recordDestruction(on: Draft, cleanup: 'succeeded' | 'skipped'): void {
  endOperation(on, 'done')
  endWorker(on, 'stopped')
  const { record, origin } = on.state
  emit(on, {
    type: 'environment.destroyed',
    id: record.id,
    record: {
      status: 'destroyed',
      cleanup_status: cleanup,
      error: null,
      place: null,
      isolation: null,
      current_worker_session_id: null,
      updated_at: timestamp(on.cause.at),
    },
  })
  if (origin.holder !== undefined)
    on.tells.push({
      to: { kind: 'environment_name', id: origin.holder },
      name: 'environment_name.keep',
      input: { environment_id: record.id },
    })
}

/**
 * Retains or destroys the environment according to its retention policy, after its use has ended.
 */
export function applyPolicy(on: Draft, succeeded: boolean): void {
  const { retention_policy } = on.state.record
  const keeps =
    retention_policy === 'manual' ||
    retention_policy === 'retain_always' ||
    (retention_policy === 'retain_on_failure' && !succeeded)
  if (!keeps) destroy(on)
  else if (isUsable(on.state) && on.state.record.status !== 'retained')
    change(on, { status: 'retained' })
}

function upkeepLease(on: Draft): void {
  const { lease_until, lease_over, record } = on.state
  if (lease_until !== undefined && on.cause.at >= lease_until) endLease(on, 'expired')
  if (lease_over === undefined && on.state.lease_over === undefined) return
  if (record.lifetime !== 'lease') {
    emit(on, { type: 'environment.lease_settled' })
    return
  }
  if (Object.keys(on.state.jobs).length > 0 || !isUsable(on.state)) return
  const released = on.state.lease_over === 'released'
  emit(on, { type: 'environment.lease_settled' })
  applyPolicy(on, released)
}

/**
 * Repeats the request for an operation, also for a claimed one, because its host may have been
 * restarted. Ends a preparation or a start that no host claims in time, and any operation whose
 * host stops reporting progress. There is no time limit for an unclaimed teardown.
 */
function upkeepOperation(on: Draft): void {
  const { operation } = on.state
  if (!operation) return
  const { at } = on.cause
  const { kind, host, since, progress = since } = operation
  if (host !== undefined) {
    if (at < progress + STALE_MS) {
      if (at >= askAgainAt(operation)) request(on, kind)
      return
    }
    endOperation(on, 'failed', kind === 'provision')
    if (kind === 'start') endWorker(on, 'failed')
    return
  }
  const limit =
    kind === 'provision'
      ? on.settings.provision_ms
      : kind === 'start'
        ? on.settings.wake_ms
        : Infinity
  if (at < since + limit) {
    if (at >= askAgainAt(operation)) request(on, kind)
    return
  }
  endOperation(on, 'failed')
  if (kind === 'start') endWorker(on, 'failed')
  else
    change(on, {
      status: 'failed',
      error:
        `No host of the provider "${on.state.record.provider}" prepared the environment within ` +
        `${limit / 1000} s; start a node with the role "hosts" that has this provider.`,
    })
}

/**
 * Marks an environment as orphaned if its place has stopped reporting. Destroys an attached
 * environment that is orphaned, and any environment that is retained, after the respective time
 * limit. Repeats a failed teardown.
 */
function upkeepPlace(on: Draft): void {
  const { record, heard, worker, teardown_at } = on.state
  const { at } = on.cause
  if (isAttached(on.state)) {
    if (record.status === 'orphaned' && at >= worker.since + environmentLimits.orphaned)
      recordDestruction(on, 'skipped')
    return
  }
  if (isUsable(on.state) && record.place !== undefined && at >= heard + STALE_MS)
    change(on, { status: 'orphaned' })
  if (teardown_at !== undefined && at >= teardown_at && record.status === 'failed') {
    change(on, { status: 'destroying', cleanup_status: 'pending' })
  }
  const until = retainedUntil(on.state, on.settings)
  if (until !== undefined && at >= until) destroy(on)
}

/** Statuses in which waiting jobs are refused. */
const gone: ReadonlySet<string> = new Set(['failed', 'destroying', 'destroyed'])
function admit(on: Draft): void {
  const { record, lease_until } = on.state
  const waiting = ({ admitted, refused }: EnvironmentJob) => !admitted && !refused
  if (gone.has(record.status)) {
    const why = record.error ?? `The environment is ${record.status}.`
    refuseJobs(on, jobsWhere(on.state, waiting), why)
  }
  if (!isUsable(on.state)) return
  const holder = lease_until === undefined ? undefined : record.lease?.holder
  const jobs = jobsWhere(
    on.state,
    (job) => waiting(job) && (!holder || isSameHolder(holder, job.holder)),
  )
  if (jobs.length > 0) emit(on, { type: 'environment.jobs_admitted', jobs, fence: on.state.fence })
  const busy = isBusy(on.state)
  if (busy && record.status !== 'running') change(on, { status: 'running' })
  if (!busy && record.status === 'running' && lease_until === undefined)
    change(on, { status: 'ready' })
}

/** Records when a worker was first needed, and fails the waiting jobs if none connects in time. */
function upkeepWorker(on: Draft): void {
  const { at } = on.cause
  const { worker, record } = on.state
  const wanted = wantsWorker(on.state) && worker.state !== 'connected'
  if (!wanted) {
    if (worker.wanted !== undefined || (worker.requested && worker.state === 'connected'))
      emit(on, { type: 'environment.worker_wanted' })
    return
  }
  // The worker cannot start until the environment has been provisioned.
  if (record.status === 'provisioning') return
  if (worker.wanted === undefined) emit(on, { type: 'environment.worker_wanted', since: at })
  const since = on.state.worker.wanted ?? at
  if (at < since + on.settings.wake_ms) return
  refuseJobs(
    on,
    jobsWhere(on.state, (job) => waitsForWorker(record, job)),
    record.error === undefined
      ? `No worker of the environment connected within ${on.settings.wake_ms / 1000} s.`
      : `No worker of the environment connected: ${record.error}`,
  )
  emit(on, { type: 'environment.worker_wanted' })
  if (on.state.operation?.kind === 'start') endOperation(on, 'failed')
  if (on.state.worker.state === 'starting') endWorker(on, 'failed')
}

function operate(on: Draft): void {
  const { operation, record, worker } = on.state
  if (operation || isAttached(on.state)) {
    if (record.status === 'destroying' && isAttached(on.state)) recordDestruction(on, 'skipped')
    return
  }
  if (record.status === 'provisioning') request(on, 'provision')
  else if (record.status === 'destroying') {
    if (record.place === undefined) recordDestruction(on, 'succeeded')
    else request(on, 'destroy')
  } else if (
    isUsable(on.state) &&
    worker.state === 'stopped' &&
    worker.wanted !== undefined &&
    on.cause.at >= startableAt(on.state)
  )
    request(on, 'start')
}

/** Applies all rules that follow from the state and the time of the command. */
export function advance(on: Draft): void {
  if (on.state.record.status === 'destroyed') {
    admit(on)
    return
  }
  upkeepOperation(on)
  upkeepPlace(on)
  upkeepLease(on)
  admit(on)
  upkeepWorker(on)
  operate(on)
  admit(on)
}

/**
 * Returns the earliest time, in Unix milliseconds, at which a rule may apply although no command
 * has arrived. Returns undefined if there is no such time.
 */
export function deadline(
  state: ExistingEnvironment,
  settings: Draft['settings'],
): number | undefined {
  const { record, operation, worker, heard, lease_until, teardown_at } = state
  if (record.status === 'destroyed') return undefined
  const times: (number | undefined)[] = [lease_until, teardown_at]
  if (operation) {
    const { host, since, progress = since, kind } = operation
    times.push(
      host === undefined
        ? Math.min(
            askAgainAt(operation),
            kind === 'destroy'
              ? Infinity
              : since + (kind === 'provision' ? settings.provision_ms : settings.wake_ms),
          )
        : Math.min(askAgainAt(operation), progress + STALE_MS),
    )
  }
  if (worker.wanted !== undefined) {
    times.push(worker.wanted + settings.wake_ms)
    if (worker.state === 'stopped' && !operation && isUsable(state) && !isAttached(state))
      times.push(startableAt(state))
  }
  if (isAttached(state)) {
    if (record.status === 'orphaned') times.push(worker.since + environmentLimits.orphaned)
  } else if (isUsable(state) && record.place !== undefined) times.push(heard + STALE_MS)
  times.push(retainedUntil(state, settings))
  const due = Math.min(...times.filter((time): time is number => time !== undefined))
  return due === Infinity ? undefined : due
}
