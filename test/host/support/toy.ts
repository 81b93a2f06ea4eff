/**
 * A minimal actor for tests of the shard host, and in-memory stores for it. The actor counts,
 * forwards messages and sets timers. It stands in for the actors of all kinds that the tests use.
 */
import type { AnyActor } from '../../../actors/actor.ts'
import type { HostDeps, ShardAnswer } from '../../../nodes/host/deps.ts'
import { ActorCache } from '../../../nodes/host/memory/actor-cache.ts'
import { Shard } from '../../../nodes/host/shard.ts'
import type { OwnerContext } from '../../../nodes/host/shard-context.ts'
import { ShardTime } from '../../../nodes/host/shard-time.ts'
import type { Command, Kind } from '../../../protocol/entry.ts'
import { refuse } from '../../../protocol/errors.ts'
import { makeId } from '../../../protocol/ids.ts'
import { defaultTiming } from '../../../protocol/workers/timing.ts'
import {
  ManualClock,
  MemoryBlobs,
  MemoryBus,
  MemoryJournal,
  MemorySnapshots,
  seeded,
  silentLog,
  type Tick,
} from '../../support/memory.ts'

export interface Count {
  count: number
  told: number
  wake: number
  broken?: boolean
}
interface Counted {
  type: 'counted'
  by: number
  sibling?: string
  abroad?: string
}
export const counter: AnyActor = {
  kind: 'run',
  initial: (): Count => ({ count: 0, told: 0, wake: 0 }),
  decide: {
    add: ((
      state: Count,
      input: { by: number; sibling?: string; abroad?: string; text?: string },
    ) => ({
      events: [
        {
          type: 'counted',
          by: input.by,
          ...(input.abroad && { abroad: input.abroad }),
          ...(input.text && { text: input.text }),
        },
      ],
      reply: { count: state.count + input.by },
      ...(input.sibling && {
        tells: [{ to: { kind: 'run', id: input.sibling }, name: 'hear', input: {} }],
      }),
    })) as never,
    hear: (() => ({ events: [{ type: 'heard' }], reply: undefined })) as never,
    nap: ((_: Count, { at, broken }: { at: number; broken?: boolean }) => ({
      events: [{ type: 'napped', at, ...(broken !== undefined && { broken }) }],
      reply: null,
    })) as never,
    nap_for: ((_: Count, { ms }: { ms: number }, cause: { at: number }) => ({
      events: [{ type: 'napped', at: cause.at + ms }],
      reply: null,
    })) as never,
    wake: ((state: Count, _: unknown, cause: { at: number }) => ({
      events: state.wake > 0 && cause.at >= state.wake ? [{ type: 'woken' }] : [],
      reply: undefined,
      ...(state.broken && {
        tells: [{ to: { kind: 'run', id: 'unknown' }, name: 'hear', input: {} }],
      }),
    })) as never,
    refuse: (() => refuse('conflict')) as never,
    bug: (() => {
      throw new Error('bug')
    }) as never,
    repeat: ((_: Count, { times }: { times: number }) => ({
      events: Array.from({ length: times }, () => ({ type: 'counted', by: 1 })),
      reply: undefined,
    })) as never,
    tear: (() => ({
      events: [{ type: 'counted', by: 1 }],
      reply: 1,
      tells: [{ to: { kind: 'run', id: 'unknown' }, name: 'hear', input: {} }],
    })) as never,
    halve: (() => ({
      events: [{ type: 'counted', by: 1 }, { type: 'fatal' }],
      reply: 1,
    })) as never,
  },
  evolve: {
    fatal: (() => {
      throw new Error('an event cannot be applied')
    }) as never,
    counted: ((state: Count, event: Counted) => ({
      ...state,
      count: state.count + event.by,
    })) as never,
    heard: ((state: Count) => ({ ...state, told: state.told + 1 })) as never,
    napped: ((state: Count, { at, broken }: { at: number; broken?: boolean }) => ({
      ...state,
      wake: at,
      ...(broken !== undefined && { broken }),
    })) as never,
    woken: ((state: Count) => ({ ...state, wake: 0, count: state.count + 1000 })) as never,
  },
  react: {
    counted: ((event: Counted) =>
      event.abroad
        ? [{ tell: { to: { kind: 'run', id: event.abroad }, name: 'hear', input: {} } }]
        : []) as never,
  },
  ask: { get: ((state: Count) => state) as never },
  deadline: ((state: Count) => (state.wake > 0 ? state.wake : undefined)) as never,
}
export const kinds = Object.fromEntries(
  ['organization', 'project', 'run', 'queue', 'worker', 'channel', 'channel_name', 'memory'].map(
    (kind) => [kind, { ...counter, kind: kind as Kind }],
  ),
) as unknown as Record<Kind, AnyActor>

interface Ending extends Count {
  over?: boolean
}
const isOver = (state: Ending): boolean => state.over === true
/** The toy actors. Runs also have an `end` command, which ends them. Ended runs still count. */
export const endingKinds: HostDeps['kinds'] = {
  ...kinds,
  run: {
    ...counter,
    decide: {
      ...counter.decide,
      end: ((state: Ending) => ({
        events: [{ type: 'over' }],
        reply: { end: state.count },
      })) as never,
    },
    evolve: { ...counter.evolve, over: ((state: Ending) => ({ ...state, over: true })) as never },
    ended: isOver as never,
    final: isOver as never,
  },
}

/** Journal, storage and clock in memory, which outlive the nodes started on them. */
export class ToyWorld {
  readonly clock = new ManualClock()
  readonly journal: MemoryJournal
  readonly snapshots: MemorySnapshots
  readonly blobs = new MemoryBlobs()
  readonly random = seeded(7)
  readonly tick: Tick
  readonly kinds: HostDeps['kinds']
  #nodes = 0
  /**
   * @param tick called at each step of the journal, the snapshots and the bus.
   * @param actors the toy actors, unless a test supplies real ones.
   */
  constructor(tick: Tick = () => {}, actors: HostDeps['kinds'] = kinds) {
    this.tick = tick
    this.kinds = actors
    this.journal = new MemoryJournal(tick)
    this.snapshots = new MemorySnapshots(tick)
  }
  deps(bus = new MemoryBus(this.tick)): HostDeps {
    return {
      node: `n${++this.#nodes}`,
      kinds: this.kinds,
      partitions: 1,
      shards: 2,
      timing: defaultTiming,
      journal: this.journal,
      snapshots: this.snapshots,
      blobs: this.blobs,
      bus,
      clock: this.clock,
      random: this.random,
      log: silentLog,
      measure: { commit() {}, command() {}, offer() {} },
      fresh: () => true,
    }
  }
  /** Returns the context of an owner of shard 0, for tests of one part of a shard. */
  context(deps = this.deps()): OwnerContext {
    const instances = new ActorCache(deps, 0, {
      confirm: async () => {},
      ended: async () => [],
      isWanted: () => true,
      onRead: () => {},
    })
    const position = { epoch: 1, sequence: 1 }
    const time = new ShardTime(deps.clock)
    return { deps, partition: 0, shard: 0, name: '0.0', position, instances, time }
  }
  /**
   * Starts an owner of a shard.
   * @param lost collects the reasons why the owner drops the shard.
   */
  async owner(shard = 0, deps = this.deps(), lost: string[] = []): Promise<Shard> {
    const owner = new Shard(deps, 0, shard, (reason) => lost.push(reason))
    await owner.start(1)
    return owner
  }
}
export const runId = (n: number, shard = 0): string =>
  makeId('run', 0, new Uint8Array(10).fill(n), shard)
let commands = 0
export const command = (
  id: string,
  name: string,
  input: object = {},
  command_id = `c${++commands}`,
  fingerprint?: string,
): Command => ({
  project: 'prj_1',
  kind: 'run',
  id,
  name,
  input,
  command_id,
  ...(fingerprint !== undefined && { fingerprint }),
  origin: { at: 0, principal: { type: 'system', id: 'test' } },
})
export const reply = (answer: ShardAnswer): unknown => ('reply' in answer ? answer.reply : answer)
