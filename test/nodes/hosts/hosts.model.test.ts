/**
 * Hosts that are killed, stopped and started at any moment of slow operations, against a stand-in
 * for the actor of environments. When all of them run again, each environment is where it belongs,
 * nothing else is left, and every operation has ended.
 */
import fc from 'fast-check'
import t from 'tap'
import type { World } from '../../../gateway/ports.ts'
import { sleep } from '../../../gateway/timing.ts'
import type { Clock } from '../../../nodes/host/ports.ts'
import { startHost } from '../../../nodes/hosts/host.ts'
import { type Provider, ProviderFault } from '../../../nodes/hosts/provider.ts'
import type { Command } from '../../../protocol/entry.ts'
import { makeId } from '../../../protocol/ids.ts'
import { shardOf } from '../../../protocol/subjects.ts'
import { kinds, ToyWorld } from '../../host/support/toy.ts'
import { MemoryBus, settleAll, silent } from '../../support/memory.ts'
import { MemoryPlace } from '../../support/memory-provider.ts'
import { PROJECT, type StandIn, standIn } from '../../support/stand-in-environment.ts'

const never = new Promise<never>(() => {})

/** Hosts 0 and 1 share a place; host 2 has another one. */
async function stage(delays: readonly number[]) {
  const states = new Map<string, StandIn>()
  const actor = standIn((id, state) => states.set(id, state))
  const toy = new ToyWorld(undefined, { ...kinds, environment: actor })
  const bus = new MemoryBus()
  const deps = toy.deps(bus)
  const shards = [await toy.owner(0, deps), await toy.owner(1, deps)]
  const submit = (command: Command) =>
    shards[shardOf(command.kind, command.id, 2) ?? 0]?.submit(command) ?? never
  const places = [new MemoryPlace('memory/a'), new MemoryPlace('memory/b')] as const
  let step = 0
  const delay = () => delays[step++ % delays.length] ?? 0

  /** The provider takes time before and after each change, and fails when it was aborted. */
  const slow = (provider: Provider, clock: Clock): Provider => {
    const around = async (work: () => Promise<void>, signal?: AbortSignal): Promise<void> => {
      await sleep(clock, delay())
      if (signal?.aborted) throw new ProviderFault('aborted')
      await work()
      await sleep(clock, delay())
      if (signal?.aborted) throw new ProviderFault('aborted')
    }
    return {
      ...provider,
      provision: (task, signal) => around(() => provider.provision(task, signal), signal),
      startWorker: (task, launch, signal) =>
        around(() => provider.startWorker(task, launch, signal), signal),
      destroy: (id) => around(() => provider.destroy(id)),
    }
  }
  const start = (index: number) => {
    const timers = new Set<() => void>()
    let killed = false
    const clock: Clock = {
      ...toy.clock,
      now: toy.clock.now,
      later: (ms, run) => {
        if (killed) return () => {}
        const cancel = toy.clock.later(ms, () => {
          timers.delete(cancel)
          run()
        })
        timers.add(cancel)
        return cancel
      },
    }
    const unsubscribe: (() => void)[] = []
    const world = {
      node: `host-${index}`,
      now: clock.now,
      later: clock.later,
      random: (bytes: number) => toy.random.bytes(bytes),
      hash: (text: string) => text.slice(-8),
      log: silent,
      command: async (command: Command) => {
        if (killed) return never
        const answer = await submit(command)
        return killed ? never : answer
      },
    } as unknown as World
    const provider = slow((index === 2 ? places[1] : places[0]).provider(), clock)
    const stop = startHost({
      world,
      bus: {
        subscribe: (subject, handler, group) => {
          const leave = bus.subscribe(subject, handler, group)
          unsubscribe.push(leave)
          return leave
        },
      },
      providers: [provider],
      limits: { environments: 20, operations: 3 },
      launch: { brand: 'Service', gateway_url: 'http://gateway', log_level: 'info' },
      credential: ({ environment_id }) => `bat${environment_id}`,
    })
    return {
      stop,
      kill: async () => {
        killed = true
        for (const cancel of timers) cancel()
        for (const leave of unsubscribe) leave()
        await provider.close()
      },
    }
  }
  const hosts = new Map<number, ReturnType<typeof start>>()
  let ids = 0
  const ofIndex = (index: number): string | undefined => [...states.keys()][index % states.size]
  const send = async (id: string | undefined, name: string) => {
    if (id === undefined) return
    await submit({
      project: PROJECT,
      kind: 'environment',
      id,
      command_id: `test/${ids++}`,
      name,
      input: {},
      origin: { at: toy.clock.now(), principal: { type: 'system', id: 'test' } },
    })
  }
  return {
    states,
    places,
    advance: (ms: number) => toy.clock.advance(ms),
    create: () =>
      send(makeId('environment', ++ids, new Uint8Array(9).fill(ids), ids), 'environment.use'),
    use: (index: number) => send(ofIndex(index), 'environment.use'),
    remove: (index: number) => send(ofIndex(index), 'environment.run_ended'),
    exit: (index: number) => {
      for (const place of places) place.exit(ofIndex(index) ?? '')
    },
    start: (index: number) => {
      if (!hosts.has(index)) hosts.set(index, start(index))
    },
    kill: async (index: number) => {
      await hosts.get(index)?.kill()
      hosts.delete(index)
    },
    stop: async (index: number) => {
      const host = hosts.get(index)
      hosts.delete(index)
      const stopped = host?.stop()
      await toy.clock.advance(10_000)
      await stopped
      // The process ends, and with it what did not end in time.
      await host?.kill()
    },
    fail: (yes: boolean) => {
      for (const place of places) place.fails = yes ? new ProviderFault('full') : undefined
    },
  }
}
type Stage = Awaited<ReturnType<typeof stage>>

/** Returns what is not as it should be once everything is quiet. */
function faultsOf({ states, places }: Stage): string[] {
  const faults: string[] = []
  for (const [id, state] of states) {
    if (state.operation) faults.push(`${id}: operation ${JSON.stringify(state.operation)}`)
    const found = places.filter(({ environments }) => environments.has(id))
    const expected = state.status === 'ready' ? [state.place] : []
    if (JSON.stringify(found.map(({ name }) => name)) !== JSON.stringify(expected))
      faults.push(
        `${id} is ${state.status} at ${state.place}, found at ${found.map((p) => p.name)}`,
      )
    const worker = found[0]?.environments.get(id)?.worker?.generation
    if (worker !== undefined && worker > state.generation)
      faults.push(`${id}: a worker ${worker} that was not requested`)
    if (state.worker !== undefined && worker !== state.worker && worker !== undefined)
      faults.push(`${id}: worker ${worker} instead of ${state.worker}`)
  }
  for (const place of places)
    for (const id of place.environments.keys()) if (!states.has(id)) faults.push(`${id} is unknown`)
  return faults
}

const index = fc.nat({ max: 5 })
const host = fc.nat({ max: 2 })
const action = fc.oneof(
  { weight: 3, arbitrary: fc.constant(['create', 0] as const) },
  { weight: 3, arbitrary: fc.tuple(fc.constant('use' as const), index) },
  { weight: 2, arbitrary: fc.tuple(fc.constant('remove' as const), index) },
  { weight: 1, arbitrary: fc.tuple(fc.constant('exit' as const), index) },
  { weight: 2, arbitrary: fc.tuple(fc.constant('kill' as const), host) },
  { weight: 1, arbitrary: fc.tuple(fc.constant('stop' as const), host) },
  { weight: 3, arbitrary: fc.tuple(fc.constant('start' as const), host) },
  { weight: 1, arbitrary: fc.tuple(fc.constant('fail' as const), fc.nat({ max: 1 })) },
  { weight: 5, arbitrary: fc.tuple(fc.constant('advance' as const), fc.nat({ max: 40_000 })) },
)

t.test('after any history, everything is where it belongs', async (t) => {
  let removed = 0
  let kept = 0
  await fc.assert(
    fc.asyncProperty(
      fc.array(action, { minLength: 5, maxLength: 25 }),
      fc.array(fc.oneof(fc.nat({ max: 3000 }), fc.nat({ max: 60_000 })), {
        minLength: 3,
        maxLength: 10,
      }),
      async (actions, delays) => {
        const it = await stage(delays)
        it.start(0)
        for (const [name, argument] of actions) {
          if (name === 'fail') it.fail(argument === 1)
          else await it[name](argument)
          await settleAll()
        }
        it.fail(false)
        for (let i = 0; i < 3; i++) it.start(i)
        await it.advance(1_200_000)
        for (const { status } of it.states.values()) {
          if (status === 'destroyed') removed++
          if (status === 'ready') kept++
        }
        const faults = faultsOf(it)
        if (faults.length > 0) throw new Error(faults.join('\n'))
      },
    ),
    { numRuns: Number(process.env['HOST_RUNS'] ?? 60) },
  )
  t.ok(removed > 10 && kept > 10, `${removed} were removed, and ${kept} are ready`)
})
