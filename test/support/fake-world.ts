/**
 * Ports and other large objects of which a test provides only some members. When the program reads
 * another member, it gets an exception that names the member, instead of `undefined`.
 */
import type { Counters, GatewaySettings, World } from '../../gateway/ports.ts'
import type { Membership } from '../../nodes/host/cluster/membership.ts'
import type { Bus, Clock, Random } from '../../nodes/host/ports.ts'
import type { WorldParts } from '../../nodes/world.ts'
import { silentLog } from './memory.ts'

type OptionalKey<T> = { [K in keyof T]-?: object extends Pick<T, K> ? K : never }[keyof T]
/** The optional members of a type. An object of it lists all of them, or it does not compile. */
type Optional<T> = Readonly<Record<OptionalKey<T>, true>>

/** Ports whose types depend on a name in the arguments. A test scripts them for some names. */
type ScriptedPort = 'ask' | 'command' | 'commandRow' | 'view' | 'viewRow' | 'everywhere'
/** Members of which a test provides only some members. */
type Nested = 'settings' | 'count' | 'log' | 'logs' | 'terminals'
export type WorldMembers = {
  readonly [K in keyof World]?: K extends ScriptedPort
    ? (...args: never[]) => unknown
    : K extends Nested
      ? Partial<NonNullable<World[K]>>
      : World[K]
}

const optionalOfWorld: Optional<World> = {
  clientAddress: true,
  unreachable: true,
  unreachableRepository: true,
  repositoryToken: true,
  definitions: true,
  provider: true,
  files: true,
  logs: true,
  embedder: true,
  endedGateways: true,
  storage: true,
  cluster: true,
}
const optionalOfSettings: Optional<GatewaySettings> = {
  run_list: true,
  job_logs: true,
  metrics: true,
  anonymous_worker: true,
  public_url: true,
  environments: true,
  console: true,
  inbox_domain: true,
  inbound_mail: true,
}
const optionalOfCounters: Optional<Counters> = { refused: true }

/** Creates a `World` with these members. */
export function fakeWorld(members: WorldMembers): World {
  const { settings, count, log, logs, terminals } = members
  return fake<World>(
    'world',
    {
      ...members,
      ...(settings && { settings: fake('world.settings', settings, optionalOfSettings) }),
      ...(count && { count: fake('world.count', count, optionalOfCounters) }),
      ...(log && { log: fake('world.log', log) }),
      ...(logs && { logs: fake('world.logs', logs) }),
      ...(terminals && { terminals: fake('world.terminals', terminals) }),
    },
    optionalOfWorld,
  )
}

type GivenParts = Partial<Omit<WorldParts, 'settings'>> & {
  readonly settings?: Partial<GatewaySettings>
}
/**
 * Creates the parts of a `World` with these members: by default those of a gateway over one
 * partition with two shards.
 */
export function fakeParts({ settings = {}, ...members }: GivenParts): WorldParts {
  const missing = (name: string) => () => {
    throw new Error(`the test does not provide parts.${name}`)
  }
  return {
    node: 'g',
    settings: fake<GatewaySettings>('parts.settings', settings, optionalOfSettings),
    partitions: 1,
    shards: 2,
    secret: new Uint8Array(32),
    organization: 'org_1',
    bus: fake<Bus>('parts.bus', {}),
    clock: fake<Clock>('parts.clock', {}),
    random: fake<Random>('parts.random', {}),
    membership: fake<Membership>('parts.membership', {}),
    log: silentLog,
    count: fake<Counters>('parts.count', {}, optionalOfCounters),
    unreachable: missing('unreachable'),
    unreachableRepository: missing('unreachableRepository'),
    unready: missing('unready'),
    metrics: missing('metrics'),
    ...members,
  }
}

/**
 * Creates an object with these members.
 * @param name the name of the object in exceptions.
 * @param optional the members that are `undefined` if the test does not provide them.
 */
export function fake<T extends object>(
  name: string,
  members: { readonly [K in keyof T]?: unknown },
  optional: Readonly<Record<string, true>> = {},
): T {
  return new Proxy(members, {
    get(target, member) {
      if (typeof member === 'symbol' || member in target || Object.hasOwn(optional, member))
        return Reflect.get(target, member) as unknown
      throw new Error(`the test does not provide ${name}.${member}`)
    },
  }) as T
}
