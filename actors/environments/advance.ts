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
import type {
  EnvironmentJob,
  ExistingEnvironment,
  Operation,
} from '../../protocol/environments/events.ts'
import { environmentLimits } from '../../protocol/environments/schema.ts'
import { change, type Draft, emit, STALE_MS } from './draft.ts'
import { hasJob, isAttached, isSameHolder, isUsable, jobsWhere } from './state.ts'
import {
  applyPolicy,
  destroy,
  endLease,
  endOperation,
  endWorker,
  recordDestruction,
  refuseJobs,
  request,
} from './transitions.ts'

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

function upkeepLease(draft: Draft): void {
  const { lease_until, lease_over, record } = draft.state
  if (lease_until !== undefined && draft.cause.at >= lease_until) endLease(draft, 'expired')
  if (lease_over === undefined && draft.state.lease_over === undefined) return
  if (record.lifetime !== 'lease') {
    emit(draft, { type: 'environment.lease_settled' })
    return
  }
  if (Object.keys(draft.state.jobs).length > 0 || !isUsable(draft.state)) return
  const released = draft.state.lease_over === 'released'
  emit(draft, { type: 'environment.lease_settled' })
  applyPolicy(draft, released)
}

/**
 * Repeats the request for an operation, also for a claimed one, because its host may have been
 * restarted. Ends a preparation or a start that no host claims in time, and any operation whose
 * host stops reporting progress. There is no time limit for an unclaimed teardown.
 */
function upkeepOperation(draft: Draft): void {
  const { operation } = draft.state
  if (!operation) return
  const { at } = draft.cause
  const { kind, host, since, progress = since } = operation
  if (host !== undefined) {
    if (at < progress + STALE_MS) {
      if (at >= askAgainAt(operation)) request(draft, kind)
      return
    }
    endOperation(draft, 'failed', kind === 'provision')
    if (kind === 'start') endWorker(draft, 'failed')
    return
  }
  const limit =
    kind === 'provision'
      ? draft.settings.provision_ms
      : kind === 'start'
        ? draft.settings.wake_ms
        : Infinity
  if (at < since + limit) {
    if (at >= askAgainAt(operation)) request(draft, kind)
    return
  }
  endOperation(draft, 'failed')
  if (kind === 'start') endWorker(draft, 'failed')
  else
    change(draft, {
      status: 'failed',
      error:
        `No host of the provider "${draft.state.record.provider}" prepared the environment within ` +
        `${limit / 1000} s; start a node with the role "hosts" that has this provider.`,
    })
}

/**
 * Marks an environment as orphaned if its place has stopped reporting. Destroys an attached
 * environment that is orphaned, and any environment that is retained, after the respective time
 * limit. Repeats a failed teardown.
 */
function upkeepPlace(draft: Draft): void {
  const { record, heard, worker, teardown_at } = draft.state
  const { at } = draft.cause
  if (isAttached(draft.state)) {
    if (record.status === 'orphaned' && at >= worker.since + environmentLimits.orphaned)
      recordDestruction(draft, 'skipped')
    return
  }
  if (isUsable(draft.state) && record.place !== undefined && at >= heard + STALE_MS)
    change(draft, { status: 'orphaned' })
  if (teardown_at !== undefined && at >= teardown_at && record.status === 'failed') {
    change(draft, { status: 'destroying', cleanup_status: 'pending' })
  }
  const until = retainedUntil(draft.state, draft.settings)
  if (until !== undefined && at >= until) destroy(draft)
}

/** Statuses in which waiting jobs are refused. */
const gone: ReadonlySet<string> = new Set(['failed', 'destroying', 'destroyed'])
function admit(draft: Draft): void {
  const { record, lease_until } = draft.state
  const waiting = ({ admitted, refused }: EnvironmentJob) => !admitted && !refused
  if (gone.has(record.status)) {
    const why = record.error ?? `The environment is ${record.status}.`
    refuseJobs(draft, jobsWhere(draft.state, waiting), why)
  }
  if (!isUsable(draft.state)) return
  const holder = lease_until === undefined ? undefined : record.lease?.holder
  const jobs = jobsWhere(
    draft.state,
    (job) => waiting(job) && (!holder || isSameHolder(holder, job.holder)),
  )
  if (jobs.length > 0)
    emit(draft, { type: 'environment.jobs_admitted', jobs, fence: draft.state.fence })
  const busy = isBusy(draft.state)
  if (busy && record.status !== 'running') change(draft, { status: 'running' })
  if (!busy && record.status === 'running' && lease_until === undefined)
    change(draft, { status: 'ready' })
}

/** Records when a worker was first needed, and fails the waiting jobs if none connects in time. */
function upkeepWorker(draft: Draft): void {
  const { at } = draft.cause
  const { worker, record } = draft.state
  const wanted = wantsWorker(draft.state) && worker.state !== 'connected'
  if (!wanted) {
    if (worker.wanted !== undefined || (worker.requested && worker.state === 'connected'))
      emit(draft, { type: 'environment.worker_wanted' })
    return
  }
  // The worker cannot start until the environment has been provisioned.
  if (record.status === 'provisioning') return
  if (worker.wanted === undefined) emit(draft, { type: 'environment.worker_wanted', since: at })
  const since = draft.state.worker.wanted ?? at
  if (at < since + draft.settings.wake_ms) return
  refuseJobs(
    draft,
    jobsWhere(draft.state, (job) => waitsForWorker(record, job)),
    record.error === undefined
      ? `No worker of the environment connected within ${draft.settings.wake_ms / 1000} s.`
      : `No worker of the environment connected: ${record.error}`,
  )
  emit(draft, { type: 'environment.worker_wanted' })
  if (draft.state.operation?.kind === 'start') endOperation(draft, 'failed')
  if (draft.state.worker.state === 'starting') endWorker(draft, 'failed')
}

function operate(draft: Draft): void {
  const { operation, record, worker } = draft.state
  if (operation || isAttached(draft.state)) {
    if (record.status === 'destroying' && isAttached(draft.state))
      recordDestruction(draft, 'skipped')
    return
  }
  if (record.status === 'provisioning') request(draft, 'provision')
  else if (record.status === 'destroying') {
    if (record.place === undefined) recordDestruction(draft, 'succeeded')
    else request(draft, 'destroy')
  } else if (
    isUsable(draft.state) &&
    worker.state === 'stopped' &&
    worker.wanted !== undefined &&
    draft.cause.at >= startableAt(draft.state)
  )
    request(draft, 'start')
}

/** Applies all rules that follow from the state and the time of the command. */
export function advance(draft: Draft): void {
  if (draft.state.record.status === 'destroyed') {
    admit(draft)
    return
  }
  upkeepOperation(draft)
  upkeepPlace(draft)
  upkeepLease(draft)
  admit(draft)
  upkeepWorker(draft)
  operate(draft)
  admit(draft)
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
