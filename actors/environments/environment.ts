/**
 * The environment actor: one workspace, from its creation to its destruction. It decides which jobs
 * may use the workspace, requests the provider's work from hosts, and tracks its only worker. The
 * rules that depend only on the state and the time are in `advance.ts`, with their invariants.
 *
 *     provisioning → ready ⇄ running
 *          ↓
 *        failed
 *     ready | running → retained → running
 *     ready | running | retained → orphaned → ready, when its place reports it again
 *     any → destroying → destroyed; a failed teardown leads to `failed`, and is repeated
 */
import type { BindingCommands, BoundEvent } from '../../protocol/blueprints/stored.ts'
import type { EnvironmentCommands } from '../../protocol/environments/commands.ts'
import type { EnvironmentEvent, PinnedJob } from '../../protocol/environments/events.ts'
import type { environments } from '../../protocol/environments/rows.ts'
import type { Environment } from '../../protocol/environments/schema.ts'
import { refuse } from '../../protocol/errors.ts'
import type { Actor, Cause, Decision, Effect } from '../actor.ts'
import { managed, singleResource } from '../blueprints/managed.ts'
import { advance, deadline } from './advance.ts'
import { createdEvent, newEnvironment } from './creation.ts'
import { defaultEnvironmentSettings, type EnvironmentSettings, finish, newDraft } from './draft.ts'
import { done, use } from './jobs.ts'
import { type AddedLeaseInput, acquire, release } from './leases.ts'
import { claim, exited, progress, report, runEnded, seen } from './operations.ts'
import { remove, update } from './record.ts'
import { apply, type EnvironmentState, shownEnvironment } from './state.ts'
import { connect, connected, reattach, startWorker, workerGone } from './worker.ts'

type Rows = Pick<
  typeof environments,
  | 'environment.update'
  | 'environment.delete'
  | 'environment.start_worker'
  | 'environment.acquire'
  | 'environment.release'
>
interface Extra {
  /** `as_of`: `updated_at` of the record when the gateway reserved the new name. */
  readonly 'environment.update': { readonly as_of?: string }
  readonly 'environment.acquire': AddedLeaseInput
  readonly 'environment.release': AddedLeaseInput
}
type On<N extends EnvironmentEvent['type']> = Extract<EnvironmentEvent, { readonly type: N }>

/**
 * Returns effects that send a command for each of the given jobs to its queue. A command concerns
 * only one job, because the run that requested the job may react to its end with hundreds of events.
 */
const toQueues = (
  jobs: readonly PinnedJob[],
  name: string,
  input: Readonly<Record<string, unknown>>,
): readonly Effect[] =>
  jobs.map(({ queue, job_id }) => ({
    tell: { to: { kind: 'queue', id: queue }, name, input: { ...input, job_ids: [job_id] } },
  }))

function open(
  state: EnvironmentState,
  input: EnvironmentCommands['environment.open']['input'],
  cause: Cause,
  settings: EnvironmentSettings,
): Decision<EnvironmentEvent, undefined> {
  if (state) return { events: [], reply: undefined }
  const birth = createdEvent(input, cause.self.id)
  const born = apply(state, birth, cause.at)
  if (!born) throw new Error('an environment was not created')
  const draft = newDraft(born, cause, settings)
  draft.events.push(birth)
  advance(draft)
  return finish(draft, undefined)
}
/** Creates the environment of a run, an agent or a loop. */
function bind(
  state: EnvironmentState,
  { creation, fault }: EnvironmentCommands['environment.bind']['input'],
  cause: Cause,
  settings: EnvironmentSettings,
): Decision<EnvironmentEvent, Environment> {
  const { id } = cause.self
  if (state && state.record.status !== 'destroyed')
    return refuse('already_exists', { environment_id: id })
  if (fault) return fault
  const { name: _, ...unnamed } = creation
  const environment = newEnvironment(id, unnamed, cause.at)
  const birth = createdEvent({ environment, origin: {} }, id)
  const born = apply(state, birth, cause.at)
  if (!born) throw new Error('an environment was not created')
  const draft = newDraft(born, cause, settings)
  draft.events.push(birth)
  advance(draft)
  return finish(draft, shownEnvironment(draft.state))
}
function wake(
  state: EnvironmentState,
  _: unknown,
  cause: Cause,
  settings: EnvironmentSettings,
): Decision<EnvironmentEvent, undefined> {
  if (!state) return { events: [], reply: undefined }
  const draft = newDraft(state, cause, settings)
  advance(draft)
  return finish(draft, undefined)
}

type Decide<I, R> = (
  state: EnvironmentState,
  input: I,
  cause: Cause,
  settings: EnvironmentSettings,
) => Decision<EnvironmentEvent, R>

const existing = (state: EnvironmentState) =>
  state && state.record.status !== 'destroyed' ? state.record : undefined
const resource = singleResource<EnvironmentState>('environment', existing)

/** Creates the environment actor. */
export const environmentActor = ({
  environments: settings = defaultEnvironmentSettings,
}: {
  readonly environments?: EnvironmentSettings
}): Actor<
  EnvironmentState,
  EnvironmentEvent | BoundEvent,
  Rows,
  'environment',
  EnvironmentCommands & BindingCommands,
  Extra
> => {
  const set =
    <I, R>(decide: Decide<I, R>) =>
    (state: EnvironmentState, input: I, cause: Cause) =>
      decide(state, input, cause, settings)
  const folds = (state: EnvironmentState, event: EnvironmentEvent, at: number) =>
    apply(state, event, at)
  return {
    kind: 'environment',
    initial: () => null,
    decide: {
      'environment.open': managed(resource.managed, 'create', set(open)),
      'environment.bind': set(bind),
      'environment.reattach': set(reattach),
      'environment.update': managed(resource.managed, 'change', set(update)),
      'environment.delete': managed(resource.managed, 'delete', (state, _: object, cause) =>
        remove(state, cause, settings),
      ),
      ...resource.arms,
      'environment.remove': (state, _, cause) => {
        const decision = state ? remove(state, cause, settings) : { events: [], reply: undefined }
        return 'events' in decision ? { ...decision, reply: undefined } : decision
      },
      'environment.start_worker': set(startWorker),
      'environment.acquire': set(acquire),
      'environment.release': set(release),
      'environment.use': set(use),
      'environment.done': set(done),
      'environment.run_ended': set(runEnded),
      'environment.claim': set(claim),
      'environment.progress': set(progress),
      'environment.report': set(report),
      'environment.seen': set(seen),
      'environment.exited': set(exited),
      'environment.connect': set(connect),
      'environment.connected': set(connected),
      'environment.worker_gone': set(workerGone),
      'environment.terminal': (state, { terminal_id, state: now }) => ({
        events: state
          ? [{ type: `environment.terminal_${now}` as const, id: state.record.id, terminal_id }]
          : [],
        reply: undefined,
      }),
      wake: set(wake),
    },
    records: { 'environment.update': (state) => (state ? shownEnvironment(state) : undefined) },
    evolve: {
      'environment.created': folds,
      'environment.updated': folds,
      'environment.status_changed': folds,
      'environment.destroyed': folds,
      'environment.terminal_opened': folds,
      'environment.terminal_closed': folds,
      'environment.leased': folds,
      'environment.lease_ended': folds,
      'environment.lease_settled': folds,
      'environment.job_added': folds,
      'environment.jobs_admitted': folds,
      'environment.jobs_refused': folds,
      'environment.jobs_cancelled': folds,
      'environment.job_ended': folds,
      'environment.operation_requested': folds,
      'environment.operation_claimed': folds,
      'environment.operation_progressed': folds,
      'environment.operation_ended': folds,
      'environment.worker_requested': folds,
      'environment.worker_wanted': folds,
      'environment.worker_connecting': folds,
      'environment.worker_connected': folds,
      'environment.worker_ended': folds,
      'environment.heard': folds,
      'environment.teardown_delayed': folds,
      ...resource.evolve,
    },
    react: {
      'environment.created': ({ environment, notifies_run }: On<'environment.created'>) =>
        notifies_run && environment.run_id !== undefined
          ? [
              {
                tell: {
                  to: { kind: 'run', id: environment.run_id },
                  name: 'run.environment',
                  input: { environment_id: environment.id },
                },
              },
            ]
          : [],
      'environment.jobs_admitted': ({ jobs, fence }: On<'environment.jobs_admitted'>) =>
        toQueues(jobs, 'queue.admit', { fence }),
      'environment.jobs_refused': ({
        jobs,
        error_type,
        error_message,
      }: On<'environment.jobs_refused'>) =>
        toQueues(jobs, 'queue.unavailable', { error_type, error_message }),
      'environment.jobs_cancelled': ({ jobs, reason }: On<'environment.jobs_cancelled'>) =>
        toQueues(jobs, 'queue.cancel', { reason }),
      'environment.worker_ended': ({ jobs, session }: On<'environment.worker_ended'>) =>
        session === undefined ? [] : toQueues(jobs, 'queue.lose', { session }),
      'environment.operation_requested': (
        { operation, environment_id, provider, place }: On<'environment.operation_requested'>,
        { project },
      ) => [
        {
          host: {
            provider,
            ...(place !== undefined && { place }),
            request: {
              project,
              environment_id,
              operation: operation.number,
              kind: operation.kind,
            },
          },
        },
      ],
    },
    ask: {
      get: (state) => state && shownEnvironment(state),
      resource: (state) => resource.asked(state),
      standing: (state) =>
        state && {
          environment: shownEnvironment(state),
          worker: {
            state: state.worker.state,
            generation: state.worker.generation,
            ...(state.worker.session !== undefined && { session: state.worker.session }),
            ...(state.worker.instance !== undefined && { instance: state.worker.instance }),
          },
        },
      credential: (state, { token_hash }: { readonly token_hash: string }) =>
        state && state.worker.state !== 'stopped' && state.worker.token_hash === token_hash
          ? {
              environment_id: state.record.id,
              name: state.record.name,
              generation: state.worker.generation,
            }
          : null,
    },
    deadline: (state) => (state ? deadline(state, settings) : undefined),
    // A takeover loses the heartbeats of hosts, which are soft events. The timeouts that depend on
    // them therefore restart.
    recover: (state, at) =>
      state && {
        ...state,
        heard: at,
        ...(state.operation?.host !== undefined && {
          operation: { ...state.operation, progress: at },
        }),
      },
    ended: (state) =>
      state !== null && state.record.status === 'destroyed' && Object.keys(state.jobs).length === 0,
  }
}
