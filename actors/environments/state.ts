/** The state of an environment, and how events change it. */
import type {
  EnvironmentEvent,
  EnvironmentJob,
  ExistingEnvironment,
  Operation,
  PinnedJob,
  WorkerOfEnvironment,
} from '../../protocol/environments/events.ts'
import { recordPatch } from '../../protocol/environments/record.ts'
import type { Environment, EnvironmentStatus, Holder } from '../../protocol/environments/schema.ts'
import { patch } from '../../protocol/patch.ts'

/** The state of an environment, or null if it was never created. */
export type EnvironmentState = ExistingEnvironment | null

type On<N extends EnvironmentEvent['type']> = Extract<EnvironmentEvent, { readonly type: N }>

const NO_WORKER: WorkerOfEnvironment = {
  generation: 0,
  state: 'stopped',
  since: 0,
  failures: 0,
  launch: {},
}

/**
 * Returns the state of a new environment. If a destroyed environment is created again, the sequence
 * numbers of its operations, workers and leases continue to increase.
 */
const created = (
  before: EnvironmentState,
  { environment, origin }: On<'environment.created'>,
  at: number,
): ExistingEnvironment => ({
  record: environment,
  origin,
  jobs: before?.jobs ?? {},
  fence: before?.fence ?? 0,
  operations: before?.operations ?? 0,
  worker: { ...NO_WORKER, generation: before?.worker.generation ?? 0, since: at },
  heard: at,
  teardowns: 0,
})

const without = <T extends object, K extends keyof T>(whole: T, ...keys: K[]): Omit<T, K> => {
  const rest = { ...whole }
  for (const key of keys) delete rest[key]
  return rest
}
const marked = (
  { jobs }: ExistingEnvironment,
  chosen: readonly PinnedJob[],
  mark: Partial<EnvironmentJob>,
): ExistingEnvironment['jobs'] => {
  const next = { ...jobs }
  for (const { job_id } of chosen) {
    const job = next[job_id]
    if (job) next[job_id] = { ...job, ...mark }
  }
  return next
}
const operating = (state: ExistingEnvironment, change: Partial<Operation>): ExistingEnvironment =>
  state.operation ? { ...state, operation: { ...state.operation, ...change } } : state
const working = (
  state: ExistingEnvironment,
  change: Partial<WorkerOfEnvironment>,
): ExistingEnvironment => ({ ...state, worker: { ...state.worker, ...change } })

function requested(
  state: ExistingEnvironment,
  { operation, generation }: On<'environment.operation_requested'>,
): ExistingEnvironment {
  const next = { ...without(state, 'teardown_at'), operation, operations: operation.number }
  if (generation === undefined || generation === state.worker.generation) return next
  const worker = without(state.worker, 'token_hash', 'instance', 'session')
  return { ...next, worker: { ...worker, generation, state: 'starting', since: operation.asked } }
}

function ended(
  state: ExistingEnvironment,
  { outcome, at, displaced }: On<'environment.operation_ended'>,
): ExistingEnvironment {
  const next: ExistingEnvironment = { ...without(state, 'operation'), heard: at }
  const kind = state.operation?.kind
  if (displaced) return next
  if (kind === 'destroy' && outcome === 'failed') return { ...next, teardowns: next.teardowns + 1 }
  return next
}

type Arms = {
  readonly [N in EnvironmentEvent['type']]: (
    state: ExistingEnvironment,
    event: On<N>,
    at: number,
  ) => ExistingEnvironment
}
const arms: Omit<Arms, 'environment.created'> = {
  'environment.updated': (state) => state,
  'environment.status_changed': (state, { record }, at) => ({
    ...state,
    ...(record.status === 'retained' && { retained_at: at }),
  }),
  'environment.destroyed': (state) => ({
    ...without(state, 'operation', 'teardown_at', 'lease_until', 'lease_over', 'binding'),
    teardowns: 0,
  }),
  'environment.leased': (state, { fence, until }) => ({
    ...without(state, 'lease_over'),
    fence,
    lease_until: until,
  }),
  'environment.lease_ended': (state, { expired }) => ({
    ...without(state, 'lease_until'),
    lease_over: expired ? 'expired' : 'released',
  }),
  'environment.terminal_opened': (state) => state,
  'environment.terminal_closed': (state) => state,
  'environment.lease_settled': (state) => without(state, 'lease_over'),
  'environment.job_added': (state, { job_id, job }) => ({
    ...state,
    jobs: { ...state.jobs, [job_id]: job },
  }),
  'environment.jobs_admitted': (state, { jobs }) => ({
    ...state,
    jobs: marked(state, jobs, { admitted: true }),
  }),
  'environment.jobs_refused': (state, { jobs }) => ({
    ...state,
    jobs: marked(state, jobs, { refused: true }),
  }),
  'environment.jobs_cancelled': (state, { jobs }) => ({
    ...state,
    jobs: marked(state, jobs, { refused: true }),
  }),
  'environment.job_ended': (state, { job_id }) => ({
    ...state,
    jobs: without(state.jobs, job_id),
  }),
  'environment.operation_requested': requested,
  'environment.operation_claimed': (state, { host, token_hash, at }) => {
    const claimed = operating(
      { ...state, heard: at },
      {
        host,
        progress: at,
      },
    )
    return token_hash === undefined ? claimed : working(claimed, { token_hash })
  },
  'environment.operation_progressed': (state, { at }) =>
    operating({ ...state, heard: at }, { progress: at }),
  'environment.operation_ended': ended,
  'environment.worker_requested': (state, { launch }) =>
    working(state, { launch, requested: true }),
  'environment.worker_wanted': (state, { since }) =>
    since === undefined
      ? { ...state, worker: without(state.worker, 'wanted', 'requested') }
      : working(state, { wanted: since }),
  'environment.worker_connecting': (state, { instance, generation, at }) =>
    working(state, { instance, generation, since: at, state: 'starting' }),
  'environment.worker_connected': (state, { session, at }) =>
    working(state, { session, state: 'connected', since: at, failures: 0 }),
  'environment.worker_ended': (state, { at, failed }) => ({
    ...state,
    worker: {
      ...without(state.worker, 'session', 'instance', 'token_hash'),
      state: 'stopped',
      since: at,
      failures: failed ? state.worker.failures + 1 : 0,
    },
  }),
  'environment.heard': (state, { at }) => ({ ...state, heard: at }),
  'environment.teardown_delayed': (state, { until }) => ({ ...state, teardown_at: until }),
}

/**
 * Returns the state after an event. The given state is not changed.
 * @param at time of the event in Unix milliseconds.
 */
export function apply(
  state: EnvironmentState,
  event: EnvironmentEvent,
  at: number,
): EnvironmentState {
  if (event.type === 'environment.created') return created(state, event, at)
  if (!state) return state
  const arm = arms[event.type] as (
    state: ExistingEnvironment,
    event: EnvironmentEvent,
    at: number,
  ) => ExistingEnvironment
  const change = recordPatch(event)
  return arm(change ? { ...state, record: patch(state.record, change) } : state, event, at)
}

/** Returns the record as clients see it. */
export const shownEnvironment = ({ record, jobs, worker }: ExistingEnvironment): Environment => ({
  ...record,
  worker_state: worker.state,
  jobs_in_progress: Object.keys(jobs).length,
})

const usable: ReadonlySet<EnvironmentStatus> = new Set(['ready', 'running', 'retained'])
/** Whether jobs may currently be executed in the environment. */
export const isUsable = ({ record }: ExistingEnvironment): boolean => usable.has(record.status)
/** Whether a worker attached the environment, so that no provider manages it. */
export const isAttached = ({ record }: ExistingEnvironment): boolean => record.provider === 'worker'
export const isSameHolder = (a: Holder, b: Holder): boolean => a.kind === b.kind && a.id === b.id

/** Returns the jobs for which `holds` returns true. */
export const jobsWhere = (
  { jobs }: ExistingEnvironment,
  holds: (job: EnvironmentJob) => boolean,
): readonly PinnedJob[] =>
  Object.entries(jobs)
    .filter(([, job]) => holds(job))
    .map(([job_id, { queue }]) => ({ job_id, queue }))
export const hasJob = (
  { jobs }: ExistingEnvironment,
  holds: (job: EnvironmentJob) => boolean,
): boolean => Object.values(jobs).some(holds)
