/**
 * Gateways that apply blueprints to real actors and a real view, in memory. A test controls the
 * order in which the gateways' calls proceed, and can let a gateway die at any of them.
 *
 * Each call to a port is two steps: one before and one after it takes effect. A dead gateway
 * receives no answers and its timers do not run, but a command that it had already sent is decided.
 */

import assert from 'node:assert/strict'
import { actorKinds } from '../../../actors/kinds.ts'
import { blueprintQueries } from '../../../gateway/blueprints/queries.ts'
import type { Call, Edge } from '../../../gateway/call.ts'
import { callParts, runCommand } from '../../../gateway/command.ts'
import { openDirectory } from '../../../gateway/directory.ts'
import type { World } from '../../../gateway/ports.ts'
import type { Membership } from '../../../nodes/host/cluster/membership.ts'
import { envelopeText, parseEnvelope } from '../../../nodes/host/memory/codec.ts'
import { createWorld } from '../../../nodes/world.ts'
import { permissions } from '../../../protocol/access/schema.ts'
import { api } from '../../../protocol/api.ts'
import { type Row, routeOf } from '../../../protocol/contract.ts'
import type { Event } from '../../../protocol/entry.ts'
import { isRefusal, type Refusal } from '../../../protocol/errors.ts'
import { makeId } from '../../../protocol/ids.ts'
import { faultsOf } from '../../../protocol/rules/schema-faults/faults.ts'
import { subjects } from '../../../protocol/subjects.ts'
import { defaultTiming } from '../../../protocol/workers/timing.ts'
import { View } from '../../../views/view.ts'
import { ToyWorld } from '../../host/support/toy.ts'
import { fake, fakeParts, fakeWorld } from '../../support/fake-world.ts'
import { type ManualClock, MemoryBus, seeded, settleAll } from '../../support/memory.ts'

const bytesOf = (n: number) => new Uint8Array(10).fill(n)
const ORGANIZATION = makeId('organization', 0, bytesOf(1), 0)
export const PROJECT = makeId('project', 0, bytesOf(2), 1)
const kinds = actorKinds({ brand: 'Service', timing: defaultTiming })
const settings = {
  brand: 'Service',
  shards: 2,
  deadline: 15_000,
}

class SeededWorld extends ToyWorld {
  override readonly random
  constructor(seed: number) {
    super(undefined, kinds)
    this.random = seeded(seed)
  }
}
/**
 * Called before and after each call to a port, and before each timer runs. The gateway waits for
 * the returned promise. A promise that never resolves stops the gateway.
 */
export type Step = (name: string) => Promise<void> | undefined
/** A deliberate fault in gateways. The tests ensure that the properties detect it. */
export interface Plant {
  readonly name: string
  /** Changes the ports of each gateway. */
  ports?(world: World): World
  /** Changes the program. Returns a function that undoes the change. */
  install?(): () => void
}

type Body = Readonly<Record<string, unknown>>
export type Answer = { readonly body: Body } | Refusal
export interface Gateway {
  readonly edge: Edge
  command(
    name: keyof typeof api,
    body?: object,
    slots?: Readonly<Record<string, string>>,
    query?: object,
  ): Promise<Answer>
  query(name: string, input?: object): Promise<Answer>
}
export interface Store {
  readonly clock: ManualClock
  gateway(step?: Step): Gateway
  /** Answers a query from a view that has applied the whole journal. */
  view<T>(name: string, input: object): T
  /**
   * Returns the events committed since the journal had this length, each with the kind of its
   * actor.
   */
  eventsSince(length: number): readonly (Event & { readonly kind: string })[]
  readonly length: () => number
  /** Returns a copy of the store that continues independently. */
  fork(seed: number): Promise<Store>
  close(): void
}

async function open(seed: number, plant?: Plant, from?: ToyWorld): Promise<Store> {
  const world = new SeededWorld(seed)
  const bus = new MemoryBus()
  if (from) {
    world.journal.messages.push(...from.journal.messages)
    await world.clock.advance(from.clock.elapsed())
  }
  for (const shard of [0, 1]) await world.owner(shard, world.deps(bus))
  const view = View.open(':memory:', { now: world.clock.now, organization: () => ORGANIZATION })
  const ask = (name: string, project: string, input: unknown): unknown => {
    const position = view.position()
    view.apply(
      world.journal.messages
        .filter(({ sequence }) => sequence > position)
        .map((message) => ({ ...message, data: parseEnvelope(envelopeText(message.data), false) })),
    )
    return view.ask(name, project, input)
  }
  bus.subscribe(subjects.view(0), (sent) => {
    const { name, project, input } = sent as { name: string; project: string; input: unknown }
    return ask(name, project, input)
  })
  const closers: (() => void)[] = []
  const gateway = (step: Step = () => undefined): Gateway => {
    const base = createWorld(
      fakeParts({
        settings,
        organization: ORGANIZATION,
        bus,
        clock: world.clock,
        random: world.random,
        membership: fake<Membership>('membership', {
          refresh: async () => {},
          members: () => [],
          fresh: () => true,
          endedGateways: () => 0,
        }),
        unreachable: async () => undefined,
      }),
    )
    const port =
      <A extends unknown[], R>(call: (...args: A) => Promise<R>, nameOf: (...args: A) => string) =>
      async (...args: A): Promise<R> => {
        const name = nameOf(...args)
        await step(name)
        const result = await call(...args)
        await step(name)
        return result
      }
    const named = ({ name }: { readonly name: string }) => name
    const ported = fakeWorld({
      ...base,
      command: port(base.command as World['commandRow'], named),
      commandRow: port(base.commandRow, named),
      ask: port(base.ask as (...args: never[]) => Promise<unknown>, (_, name) => name),
      view: port(base.view as (...args: never[]) => Promise<unknown>, (_, name) => name),
      forget: port(
        async (id: string) => directory.forget(id),
        () => 'forget',
      ),
      later: (ms: number, run: () => void) =>
        base.later(ms, () => {
          const turn = step('timer')
          if (turn) void turn.then(run)
          else run()
        }),
    })
    const planted = plant?.ports?.(ported) ?? ported
    const directory = openDirectory(planted)
    closers.push(() => directory.close())
    const caller = {
      principal: { type: 'user', id: 'user_1' },
      credential: { type: 'api_key', id: 'key_1' },
      scope: { kind: 'organization', role: 'owner' },
      permissions: new Set(Object.keys(permissions)),
      proof: { hash: '', tag: '' },
    }
    const edge = fake<Edge>('edge', {
      world: planted,
      directory,
      parts: callParts,
      authentication: { again: () => caller },
      becomesFresh: () => true,
    })
    return {
      edge,
      async command(name, body = {}, slots = {}, query = {}) {
        const row = api[name] as Row
        const faults = row.shape.body ? faultsOf(row.shape.body, body) : []
        assert.deepEqual(faults, [], `the request of ${name} is valid`)
        const call = {
          name,
          row,
          slots: { project: PROJECT, ...slots },
          query,
          body,
          caller,
          project: { id: PROJECT },
          request_id: 'req_1',
          incoming: {
            method: routeOf(row).method,
            path: '',
            ip: '',
            header: () => undefined,
            further: () => undefined,
          },
        } as unknown as Call
        return (await runCommand(edge, call)) as Answer
      },
      async query(name, input = {}) {
        const run = blueprintQueries[name]
        assert(run, `${name} is a query of blueprints`)
        const found = await run({ ...edge, caller, project: PROJECT, input } as never)
        return isRefusal(found) ? found : { body: found as Body }
      },
    }
  }
  const store: Store = {
    clock: world.clock,
    gateway,
    view: <T>(name: string, input: object) => ask(name, PROJECT, input) as T,
    length: () => world.journal.messages.length,
    eventsSince: (length) =>
      world.journal.messages.slice(length).flatMap(({ data }) => {
        const { entries } = parseEnvelope(envelopeText(data))
        return entries.flatMap(({ kind, events }) => events.map((event) => ({ ...event, kind })))
      }),
    fork: (next) => open(next, plant, world),
    close() {
      for (const close of closers) close()
      view.close()
    },
  }
  if (!from) {
    const base = gateway().edge.world
    await base.commandRow({
      project: ORGANIZATION,
      kind: 'organization',
      id: ORGANIZATION,
      command_id: 'init',
      name: 'organization.init',
      origin: { at: base.now(), principal: { type: 'system', id: 'test' } },
      input: {
        name: 'Acme',
        project_id: PROJECT,
        root_key: { id: makeId('key', 0, bytesOf(3), 0), hash: 'h', key_prefix: 'p' },
      },
    })
    await settleAll()
  }
  return store
}
/** Opens an empty project. The same seed gives the same ids. */
export const openStore = (seed: number, plant?: Plant): Promise<Store> => open(seed, plant)
