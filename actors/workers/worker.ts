/**
 * The registry entry of one worker instance of a project: its session, its gateway connection, and
 * whether it should stop claiming jobs. Leases belong to the session, so they survive a reconnect.
 * The queues store the leases.
 *
 * Invariants:
 * W1. At most one session exists at a time, and only one of its connections is current: the one
 *     with the highest generation.
 * W2. A second process with the same instance name is refused while the first process was seen
 *     recently and is connected or may still hold jobs. A process that presents the session's token
 *     is never refused, because workers exit when they are refused.
 * W3. A drain stays in force across reconnects, until a new session begins.
 * W4. Most heartbeats update `seen` by soft events, so a new owner of the shard treats a connected
 *     worker as just seen, unless it is stale.
 * W5. When a session that serves an environment ends, its environment is notified once, unless the
 *     next session of the instance registers for the same environment. A session ends when it is
 *     stale, when another session replaces it, and when it has drained and left.
 */

import type { Address } from '../../protocol/entry.ts'
import { isManagedEnvironment } from '../../protocol/environments/commands.ts'
import { refuse } from '../../protocol/errors.ts'
import type { WorkerCommands } from '../../protocol/workers/commands.ts'
import type { GatewayMessage } from '../../protocol/workers/messages.ts'
import type { workers } from '../../protocol/workers/rows.ts'
import type { Registration, ServedEnvironment, WorkerEvent } from '../../protocol/workers/socket.ts'
import type { WorkerTiming } from '../../protocol/workers/timing.ts'
import type { Actor, Effect } from '../actor.ts'

export interface WorkerState {
  registration?: Registration
  connected: boolean
  /** Time of the last registration, heartbeat or disconnection, in Unix milliseconds. */
  seen: number
  /** Number of jobs that the session held when it was last seen. */
  leases: number
  stale: boolean
  /** Whether an operator requested a drain, or the worker announced a drain. */
  draining: boolean
  /** Whether the environment of the session was notified of the session's end. */
  ended?: boolean
}
type Change = Extract<WorkerEvent, { readonly instance: string }>
type Taken = Pick<Registration, 'queues' | 'action_names' | 'models'>
interface Held {
  readonly session: string
  readonly generation: number
}

const toGateway = (gateway: string, message: GatewayMessage) => [
  { push: { gateway, message: { ...message } } },
]
const isCurrent = ({ registration }: WorkerState, { session, generation }: Held): boolean =>
  registration?.session === session && registration.generation === generation

/**
 * Returns the session and its environment, or undefined if the session serves no environment that
 * the service manages.
 */
const served = ({ session, environment_id }: Registration): ServedEnvironment | undefined =>
  environment_id !== undefined && isManagedEnvironment(environment_id)
    ? { session, environment_id }
    : undefined
const leave = ({ session, environment_id }: ServedEnvironment, drained = false): Effect => ({
  tell: {
    to: { kind: 'environment', id: environment_id },
    name: 'environment.worker_gone',
    input: { session, ...(drained && { drained }) },
  },
})
/** Returns the registration of a session that no longer serves the environment that it attached. */
function detached(registration: Registration): Registration {
  const { attached, environment_id: _, ...rest } = registration
  return attached ? rest : registration
}
/**
 * Returns the environment that a session has attached and keeps, because its next registration
 * specifies no environment. Returns undefined if the session keeps none.
 */
const carriedOver = (
  { attached, environment_id }: Registration,
  asked: Pick<Registration, 'environment_id'>,
): Pick<Registration, 'environment_id' | 'attached'> | undefined =>
  attached && environment_id !== undefined && asked.environment_id === undefined
    ? { environment_id, attached }
    : undefined

/**
 * Whether the given queues, actions and models are the same as those that the worker registered.
 */
const same = ({ queues, action_names, models }: Registration, takes: Taken): boolean =>
  JSON.stringify([queues, action_names, models]) ===
  JSON.stringify([takes.queues, takes.action_names, takes.models])

/**
 * Creates the worker actor.
 * @param timing seconds without a heartbeat until a worker counts as stale, and until another
 * process may take over its instance name.
 */
export function workerActor(
  timing: WorkerTiming,
): Actor<WorkerState, WorkerEvent, typeof workers, 'worker', WorkerCommands> {
  const change = (state: WorkerState, changes: Partial<WorkerState>): WorkerState =>
    Object.assign(state, changes)
  const end = ({ registration }: WorkerState): Partial<WorkerState> => ({
    ended: true,
    ...(registration && { registration: detached(registration) }),
  })
  const gone = (state: WorkerState, at: number): boolean =>
    at - state.seen > timing.takeover * 1000 || (!state.connected && state.leases === 0)
  return {
    kind: 'worker',
    initial: () => ({ connected: false, seen: 0, leases: 0, stale: false, draining: false }),
    decide: {
      'worker.register': (state, { given_token_hash, ...asked }, cause) => {
        const old = state.registration
        const resumed = old !== undefined && given_token_hash === old.token_hash
        if (old && !resumed && !gone(state, cause.at)) {
          return refuse(
            'conflict',
            { worker_instance_id: asked.instance, project: cause.self.project },
            `A worker with the instance id ${asked.instance} is already connected to project ` +
              `${cause.self.project}; give every process a unique instance id.`,
          )
        }
        const registration: Registration = {
          ...asked,
          generation: (old?.generation ?? 0) + 1,
          connected_at: cause.at,
          ...(resumed && { session: old.session, token_hash: old.token_hash }),
          ...(resumed && carriedOver(old, asked)),
        }
        const before = old && !state.ended ? served(old) : undefined
        const left = before?.environment_id === registration.environment_id ? undefined : before
        const replaced = old &&
          (!resumed || state.connected) && {
            replaced: { session: old.session, gateway: old.gateway },
          }
        const released = state.draining && !resumed
        return {
          events: [
            ...(released
              ? [{ type: 'worker.drain_cleared' as const, instance: asked.instance, at: cause.at }]
              : []),
            { type: 'worker.registered', registration, ...replaced, ...(left && { left }) },
          ],
          reply: { registration, resumed, draining: state.draining && !released, ...replaced },
        }
      },
      'worker.seen': (state, { leases, takes, ...held }, cause) => {
        const { registration } = state
        if (!registration || !isCurrent(state, held))
          return { events: [], reply: { current: false } }
        const seen = [{ type: 'worker.seen' as const, at: cause.at, leases }]
        if (takes && state.connected && !same(registration, takes))
          return {
            events: [
              { type: 'worker.registered', registration: { ...registration, ...takes } },
              ...seen,
            ],
            reply: { current: true },
          }
        return {
          ...(state.stale ? { events: seen } : { events: [], soft: seen }),
          reply: { current: true },
        }
      },
      'worker.closed': (state, { leases, ...held }, cause) => {
        const { registration, connected, draining, stale } = state
        const isRepeat = !connected && (stale || leases >= state.leases)
        if (!registration || isRepeat || !isCurrent(state, held))
          return { events: [], reply: undefined }
        const left = draining && leases === 0 ? served(registration) : undefined
        return {
          events: [
            { type: 'worker.seen', at: cause.at, leases },
            ...(connected || left
              ? [
                  {
                    type: 'worker.disconnected' as const,
                    instance: registration.instance,
                    at: cause.at,
                    ...(left && { left }),
                  },
                ]
              : []),
          ],
          reply: undefined,
        }
      },
      'worker.attach': (state, { session, environment_id, replaces }) => {
        const { registration, connected, stale } = state
        if (registration?.session !== session || !connected || stale)
          return refuse('not_found', { resource: 'worker' }, 'The worker is not connected.')
        if (registration.environment_id === environment_id) return { events: [], reply: undefined }
        const served = registration.environment_id
        if (served !== undefined && served !== replaces)
          return refuse(
            'conflict',
            { environment_id: served },
            'The worker serves another environment.',
          )
        return {
          events: [
            {
              type: 'worker.attached',
              registration: { ...registration, environment_id, attached: true },
            },
          ],
          reply: undefined,
        }
      },
      'worker.drained': ({ registration, draining }, { session }, cause) => ({
        events:
          registration?.session === session && !draining
            ? [{ type: 'worker.draining', instance: registration.instance, at: cause.at }]
            : [],
        reply: undefined,
      }),
      'worker.drain': ({ registration, connected }, _input, cause) => {
        if (!registration) return refuse('not_found')
        const { instance, gateway, session } = registration
        return {
          events: [
            {
              type: 'worker.drain_requested',
              instance,
              at: cause.at,
              ...(connected && { gateway, session }),
            },
          ],
          reply: { worker_instance_id: instance, state: 'draining' },
        }
      },
      wake: ({ registration, connected, stale, seen, ended }, _input, cause) => {
        if (!registration || stale || cause.at < seen + timing.stale * 1000)
          return { events: [], reply: undefined }
        const { instance, gateway, generation } = registration
        const left = ended ? undefined : served(registration)
        return {
          events: [
            {
              type: 'worker.stale',
              instance,
              at: cause.at,
              ...(left && { left }),
              ...(left && connected && { expelled: { gateway, generation } }),
            },
          ],
          reply: undefined,
        }
      },
    },
    evolve: {
      'worker.registered': (state, { registration }, at) =>
        change(state, {
          registration,
          connected: true,
          seen: at,
          stale: false,
          ended: false,
          ...(state.registration?.session !== registration.session && { leases: 0 }),
        }),
      'worker.seen': (state, { at, leases }) => change(state, { seen: at, leases, stale: false }),
      'worker.attached': (state, { registration }) => change(state, { registration }),
      'worker.disconnected': (state, { left }) =>
        change(state, { connected: false, ...(left ? end(state) : {}) }),
      'worker.stale': (state, { left }) =>
        change(state, { stale: true, ...(left ? end(state) : {}) }),
      'worker.draining': (state) => change(state, { draining: true }),
      'worker.drain_requested': (state) => change(state, { draining: true }),
      'worker.drain_cleared': (state) => change(state, { draining: false }),
    },
    react: {
      'worker.registered': (
        { registration, replaced, left }: Extract<WorkerEvent, { type: 'worker.registered' }>,
        self: Address,
      ) => [
        ...(replaced
          ? toGateway(replaced.gateway, {
              type: 'supersede',
              project: self.project,
              session: replaced.session,
              generation: registration.generation,
            })
          : []),
        ...(left ? [leave(left)] : []),
      ],
      'worker.attached': (
        { registration }: Extract<WorkerEvent, { type: 'worker.attached' }>,
        self: Address,
      ) =>
        toGateway(registration.gateway, {
          type: 'attach',
          project: self.project,
          session: registration.session,
          environment_id: registration.environment_id ?? '',
        }),
      'worker.disconnected': ({ left }: Change) => (left ? [leave(left, true)] : []),
      'worker.stale': ({ left, expelled }: Change, self: Address) => [
        ...(left ? [leave(left)] : []),
        ...(left && expelled
          ? toGateway(expelled.gateway, {
              type: 'supersede',
              project: self.project,
              session: left.session,
              generation: expelled.generation + 1,
            })
          : []),
      ],
      'worker.drain_requested': ({ gateway, session }: Change, self: Address) =>
        gateway !== undefined && session !== undefined
          ? toGateway(gateway, { type: 'drain', project: self.project, session })
          : [],
    },
    ask: {
      /** Whether a connection is the current one. */
      current: (state, held: Held) => isCurrent(state, held),
      registration: ({ registration, connected, stale }) =>
        connected && !stale ? (registration ?? null) : null,
    },
    deadline: ({ registration, stale, seen }) =>
      registration && !stale ? seen + timing.stale * 1000 : undefined,
    recover: (state, at) => (state.connected && !state.stale ? change(state, { seen: at }) : state),
  }
}
