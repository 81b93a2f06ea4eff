/**
 * A stand-in for the environment actor, for tests of hosts. It implements only the protocol with
 * hosts. It requests one operation at a time, repeats the request until a host claims it, and
 * reassigns the operation after a period of silence.
 */
import type { AnyActor, Decision, Effect } from '../../actors/actor.ts'
import type { Event } from '../../protocol/entry.ts'
import type {
  EnvironmentCommands,
  HostRequest,
  HostTask,
} from '../../protocol/environments/commands.ts'
import { environmentLimits } from '../../protocol/environments/schema.ts'
import { refuse } from '../../protocol/errors.ts'

export const PROJECT = 'prj_1'
/** Milliseconds before a request is repeated. */
const RETRY_EVERY_MS = 100

interface Operation {
  readonly number: number
  readonly kind: HostRequest['kind']
  readonly host?: string
  /**
   * The time at which the request is repeated or, if a host has claimed it, the operation is
   * reassigned.
   */
  readonly due: number
}
export interface StandIn {
  readonly status: 'none' | 'provisioning' | 'ready' | 'destroying' | 'destroyed'
  readonly operations: number
  readonly operation?: Operation
  readonly place?: string
  readonly error?: string
  readonly generation: number
  readonly worker?: number
  readonly token_hash?: string
  /** The host that last reported which environments its place has. */
  readonly seen_by?: string
  readonly idle?: boolean
}
interface Changed extends Event {
  readonly type: 'changed'
  readonly state: StandIn
}
type Commands = Omit<EnvironmentCommands, 'wake'>
type Arms = {
  readonly [N in keyof Commands]?: (
    state: StandIn,
    input: Commands[N]['input'],
    at: number,
    id: string,
  ) => { readonly next?: StandIn; readonly reply?: Commands[N]['reply'] } | { refused: 'conflict' }
}

const begin = (state: StandIn, kind: Operation['kind'], at: number): StandIn => ({
  ...state,
  operations: state.operations + 1,
  operation: { number: state.operations + 1, kind, due: at + RETRY_EVERY_MS },
  ...(kind === 'start' && { generation: state.generation + 1 }),
})
const without = <K extends keyof StandIn>(state: StandIn, name: K): StandIn => {
  const { [name]: _, ...rest } = state
  return rest as StandIn
}
const armsOf = (silence: number): Arms => ({
  // The first use creates the environment. A later one starts its worker.
  'environment.use': (state, _, at) => {
    if (state.status === 'none')
      return { next: begin({ ...state, status: 'provisioning' }, 'provision', at) }
    return state.status === 'ready' && !state.operation ? { next: begin(state, 'start', at) } : {}
  },
  'environment.run_ended': (state, _, at) =>
    state.status === 'ready' || state.status === 'provisioning'
      ? { next: begin(without({ ...state, status: 'destroying' }, 'worker'), 'destroy', at) }
      : {},
  'environment.claim': (state, { operation, host, place, token_hash }, at, id) => {
    const current = state.operation
    if (current?.number !== operation || (current.host ?? host) !== host)
      return { refused: 'conflict' }
    if (state.place !== undefined && state.place !== place) return { refused: 'conflict' }
    const reply: HostTask = {
      operation,
      kind: current.kind,
      project: PROJECT,
      environment_id: id,
      name: 'one',
      provider: 'memory',
      repositories: [],
      ...(current.kind === 'start' && { worker: { generation: state.generation } }),
    }
    const next = {
      ...state,
      operation: { ...current, host, due: at + silence },
      place,
      ...(token_hash !== undefined && { token_hash }),
    }
    return { next, reply }
  },
  'environment.progress': (state, { operation, host }, at) => {
    const current = state.operation
    return current?.number === operation && current.host === host
      ? {
          next: { ...state, operation: { ...current, due: at + silence } },
          reply: { current: true },
        }
      : { reply: { current: false } }
  },
  'environment.report': (state, { operation, host, error }, at) => {
    const current = state.operation
    if (current?.number !== operation || current.host !== host) return {}
    const next = without(state, 'operation')
    if (error !== undefined)
      return {
        next:
          current.kind === 'start'
            ? { ...next, error }
            : begin(current.kind === 'provision' ? without(next, 'place') : next, current.kind, at),
      }
    if (current.kind === 'provision') return { next: { ...next, status: 'ready' } }
    return current.kind === 'start'
      ? { next: { ...next, worker: state.generation } }
      : { next: { ...next, status: 'destroyed' } }
  },
  'environment.seen': (state, { place, host }) => ({
    next: { ...state, seen_by: host },
    reply: {
      expected: place === state.place && state.status !== 'none' && state.status !== 'destroyed',
    },
  }),
  'environment.exited': (state, { generation, idle }) =>
    state.worker === generation ? { next: { ...without(state, 'worker'), idle } } : {},
})

/**
 * Returns an environment actor that handles only the commands of hosts, `environment.use`,
 * `environment.run_ended` and `wake`.
 * @param seen is called with each new state of an environment.
 * @param silence milliseconds without progress after which another host may perform an operation.
 */
export const standIn = (
  seen: (id: string, state: StandIn) => void,
  silence: number = environmentLimits.stale,
): AnyActor => ({
  kind: 'environment',
  initial: (): StandIn => ({ status: 'none', operations: 0, generation: 0 }),
  decide: {
    ...Object.fromEntries(
      Object.entries(armsOf(silence)).map(([name, arm]) => [
        name,
        ((state: StandIn, input: never, cause: { at: number; self: { id: string } }) => {
          const decided = arm(state, input, cause.at, cause.self.id)
          if ('refused' in decided) return refuse(decided.refused)
          return {
            events: decided.next ? [{ type: 'changed', state: decided.next }] : [],
            reply: decided.reply,
          } satisfies Decision<Changed, unknown>
        }) as never,
      ]),
    ),
    wake: ((state: StandIn, _: unknown, { at }: { at: number }) => {
      const { operation } = state
      if (!operation || at < operation.due) return { events: [], reply: undefined }
      const silent = operation.host !== undefined
      const lapsed = operation.kind === 'provision' && silent ? without(state, 'place') : state
      const next = silent
        ? begin(lapsed, operation.kind, at)
        : { ...state, operation: { ...operation, due: at + RETRY_EVERY_MS } }
      return { events: [{ type: 'changed', state: next }], reply: undefined }
    }) as never,
  },
  evolve: { changed: ((_: StandIn, event: Changed) => event.state) as never },
  react: {
    changed: (({ state }: Changed, self: { id: string }): readonly Effect[] => {
      seen(self.id, state)
      const { operation, place } = state
      return operation && operation.host === undefined
        ? [
            {
              host: {
                provider: 'memory',
                ...(place !== undefined && { place }),
                request: {
                  project: PROJECT,
                  environment_id: self.id,
                  operation: operation.number,
                  kind: operation.kind,
                },
              },
            },
          ]
        : []
    }) as never,
  },
  deadline: ((state: StandIn) => state.operation?.due) as never,
})
