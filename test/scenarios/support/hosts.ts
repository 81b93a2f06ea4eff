/**
 * Hosts on real connections to NATS, with a stand-in for the actor of environments that follows
 * their protocol and nothing else: it requests one operation at a time, repeats the request until a
 * host claims it, and gives it to another host after a silence. It runs in the real shard host, so
 * that its requests, and the commands of hosts, go through NATS.
 */
import type { AnyActor, Decision, Effect } from '../../../actors/actor.ts'
import type { GatewaySettings, Log, World } from '../../../gateway/ports.ts'
import type { Bus, Clock } from '../../../nodes/host/ports.ts'
import { startHost } from '../../../nodes/hosts/host.ts'
import { createBus } from '../../../nodes/nats/bus.ts'
import type { Access } from '../../../nodes/nats/server/access.ts'
import { connectNats } from '../../../nodes/nats/server/connect.ts'
import { systemClock, systemRandom } from '../../../nodes/system.ts'
import { createWorld, type WorldParts } from '../../../nodes/world.ts'
import type { Event } from '../../../protocol/entry.ts'
import type {
  EnvironmentCommands,
  HostRequest,
  HostTask,
} from '../../../protocol/environments/commands.ts'
import { refuse } from '../../../protocol/errors.ts'
import { makeId } from '../../../protocol/ids.ts'
import { kinds, ToyWorld } from '../../host/support/toy.ts'
import { silent } from '../../support/memory.ts'
import type { MemoryPlace } from '../../support/memory-provider.ts'

export const PROJECT = 'prj_1'
/** Milliseconds before a request is repeated, and of silence before another host may work. */
const REPEAT = 100
const SILENCE = 1000

interface Operation {
  readonly number: number
  readonly kind: HostRequest['kind']
  readonly host?: string
  /** When the request is repeated, or the operation is given to another host. */
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
  /** The host that reported last what it has. */
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
  operation: { number: state.operations + 1, kind, due: at + REPEAT },
  ...(kind === 'start' && { generation: state.generation + 1 }),
})
const without = <K extends keyof StandIn>(state: StandIn, name: K): StandIn => {
  const { [name]: _, ...rest } = state
  return rest as StandIn
}
const arms: Arms = {
  // The first use creates the environment; a later one starts its worker.
  'environment.use': (state, _, at) => ({
    next:
      state.status === 'none'
        ? begin({ ...state, status: 'provisioning' }, 'provision', at)
        : begin(state, 'start', at),
  }),
  'environment.run_ended': (state, _, at) => ({
    next: begin({ ...state, status: 'destroying' }, 'destroy', at),
  }),
  'environment.claim': (state, { operation, host, place, token_hash }, at, id) => {
    const current = state.operation
    if (current?.number !== operation || (current.host ?? host) !== host)
      return { refused: 'conflict' }
    if (state.place !== undefined && state.place !== place) return { refused: 'conflict' }
    const reply: HostTask = {
      operation,
      kind: current.kind,
      project: PROJECT,
      project_handle: 'default',
      environment_id: id,
      name: 'one',
      provider: 'memory',
      repositories: [],
      ...(current.kind === 'start' && { worker: { generation: state.generation } }),
    }
    const next = {
      ...state,
      operation: { ...current, host, due: at + SILENCE },
      place,
      ...(token_hash !== undefined && { token_hash }),
    }
    return { next, reply }
  },
  'environment.progress': (state, { operation, host }, at) => {
    const current = state.operation
    return current?.number === operation && current.host === host
      ? {
          next: { ...state, operation: { ...current, due: at + SILENCE } },
          reply: { current: true },
        }
      : { reply: { current: false } }
  },
  'environment.report': (state, { operation, host, error }) => {
    const current = state.operation
    if (current?.number !== operation || current.host !== host) return {}
    const next = without(state, 'operation')
    if (error !== undefined) return { next: { ...next, error } }
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
}

/** Starts owners of environments on a connection of their own. */
export async function startOwner(access: Access, log: Log = silent) {
  const watching = new Set<() => void>()
  const states = new Map<string, StandIn>()
  const actor: AnyActor = {
    kind: 'environment',
    initial: (): StandIn => ({ status: 'none', operations: 0, generation: 0 }),
    decide: {
      ...Object.fromEntries(
        Object.entries(arms).map(([name, arm]) => [
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
          ? begin({ ...lapsed, generation: state.generation }, operation.kind, at)
          : { ...state, operation: { ...operation, due: at + REPEAT } }
        return { events: [{ type: 'changed', state: next }], reply: undefined }
      }) as never,
    },
    evolve: { changed: ((_: StandIn, event: Changed) => event.state) as never },
    react: {
      changed: (({ state }: Changed, self: { id: string }): readonly Effect[] => {
        states.set(self.id, state)
        for (const look of watching) look()
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
  }
  const nats = await connectNats({ access, name: 'owner', role: 'shards', log })
  const bus = createBus(nats)
  const toy = new ToyWorld(undefined, { ...kinds, environment: actor })
  const deps = { ...toy.deps(), bus, clock: systemClock }
  const shards = [await toy.owner(0, deps), await toy.owner(1, deps)]
  await bus.flush()
  const world = worldOn(bus, 'owner', systemClock)
  let ids = 0
  return {
    /** A new id of an environment. */
    id: () => makeId('environment', ++ids, new Uint8Array(9).fill(ids), ids),
    /** Sends a command as a queue or a run does. */
    async send<N extends 'environment.use' | 'environment.run_ended'>(id: string, name: N) {
      const input = name === 'environment.use' ? { job_id: 'job_1' } : { run_id: 'run_1' }
      const answer = await world.command({
        project: PROJECT,
        kind: 'environment',
        id,
        command_id: `${name}/${++ids}`,
        name,
        input: input as never,
        origin: { at: Date.now(), principal: { type: 'system', id: 'test' } },
      })
      if ('refused' in answer) throw new Error(answer.refused)
    },
    stateOf: (id: string) => states.get(id),
    /** Resolves with the state of the environment once it matches. */
    until: (id: string, matches: (state: StandIn) => unknown) =>
      new Promise<StandIn>((resolve, reject) => {
        const cancel = systemClock.later(15_000, () => {
          watching.delete(look)
          reject(new Error(`the state is still ${JSON.stringify(states.get(id))}`))
        })
        const look = () => {
          const state = states.get(id)
          if (!state || !matches(state)) return
          watching.delete(look)
          cancel()
          resolve(state)
        }
        watching.add(look)
        look()
      }),
    async stop() {
      for (const shard of shards) await shard.stop()
      await nats.close()
    },
  }
}

/** The gateway's ports over a bus. */
export function worldOn(bus: Bus, node: string, clock: Clock): World {
  const parts: Partial<WorldParts> = {
    node,
    settings: { deadline: 5000 } as GatewaySettings,
    partitions: 1,
    shards: 2,
    secret: new Uint8Array(32),
    organization: 'org_1',
    bus,
    clock,
    random: systemRandom(),
    log: silent,
  }
  return createWorld(parts as WorldParts)
}

/** Starts a host of a place on a connection of its own. */
export async function startTestHost(
  access: Access,
  place: MemoryPlace,
  node: string,
  log: Log = silent,
) {
  const nats = await connectNats({ access, name: node, role: 'hosts', log })
  const timers = new Set<() => void>()
  let killed = false
  // A killed process runs no timers.
  const clock: Clock = {
    ...systemClock,
    later: (ms, run) => {
      if (killed) return () => {}
      const cancel = systemClock.later(ms, () => {
        timers.delete(cancel)
        run()
      })
      timers.add(cancel)
      return cancel
    },
  }
  const bus = createBus(nats)
  const stop = startHost({
    world: worldOn(bus, node, clock),
    bus,
    providers: [place.provider()],
    limits: { environments: 10, operations: 4 },
    launch: { brand: 'Service', gateway_url: 'http://gateway', log_level: 'info' },
    credential: (id, random) => `batenv_${id}_${Buffer.from(random).toString('hex')}`,
  })
  await bus.flush()
  return {
    async stop() {
      if (killed) return
      await stop()
      await nats.close()
    },
    /** Ends the host as `kill -9` does: nothing is finished, reported or closed. */
    async kill() {
      killed = true
      for (const cancel of timers) cancel()
      await nats.connection.close()
    },
  }
}
