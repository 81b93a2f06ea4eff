/**
 * Hosts that are killed, stopped and started at any moment during slow operations, tested with the
 * environment actor. Invariant: once all hosts run again, each environment exists only at its
 * recorded place, nothing else is left, and every operation has ended.
 */
import fc from 'fast-check'
import t from 'tap'
import { defineActor } from '../../../actors/actor.ts'
import { environmentActor } from '../../../actors/environments/environment.ts'
import { uniqueTexts } from '../../../gateway/http/hex.ts'
import { sleep } from '../../../gateway/timing.ts'
import type { Clock } from '../../../nodes/host/ports.ts'
import { startHost } from '../../../nodes/hosts/host.ts'
import { type Provider, ProviderFault } from '../../../nodes/hosts/provider.ts'
import type { Command } from '../../../protocol/entry.ts'
import type { EnvironmentStanding } from '../../../protocol/environments/events.ts'
import { makeId } from '../../../protocol/ids.ts'
import { shardOf } from '../../../protocol/subjects.ts'
import { kinds, ToyWorld } from '../../host/support/toy.ts'
import { fakeWorld } from '../../support/fake-world.ts'
import { MemoryBus, settleAll, silentLog } from '../../support/memory.ts'
import { MemoryPlace } from '../../support/memory-provider.ts'

const PROJECT = 'prj_1'
const never = new Promise<never>(() => {})

/**
 * Creates places, environments and hosts. Hosts 0 and 1 share a place, and host 2 has a separate
 * place.
 */
async function stage(delays: readonly number[]) {
  const actor = environmentActor({
    environments: {
      default_provider: 'memory',
      aliases: {},
      wake_ms: 30_000,
      provision_ms: 24 * 3_600_000,
      retain_ms: 0,
    },
  })
  const toy = new ToyWorld(undefined, { ...kinds, environment: defineActor(actor) })
  const bus = new MemoryBus()
  const deps = toy.deps(bus)
  const shards = [await toy.owner(0, deps), await toy.owner(1, deps)]
  const shardOfId = (id: string) => shards[shardOf('environment', id, 2) ?? 0]
  const submit = (command: Command) => shardOfId(command.id)?.submit(command) ?? never
  const places = [new MemoryPlace('memory/a'), new MemoryPlace('memory/b')] as const
  let step = 0
  const delay = () => delays[step++ % delays.length] ?? 0

  /**
   * Wraps a provider so that a delay precedes and follows each change, and an aborted change fails.
   */
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
    const world = fakeWorld({
      node: `host-${index}`,
      now: clock.now,
      monotonic: clock.elapsed,
      later: clock.later,
      random: (bytes: number) => toy.random.bytes(bytes),
      newCommandId: uniqueTexts((bytes) => toy.random.bytes(bytes)),
      hash: (text: string) => text.slice(-8),
      log: silentLog,
      command: async (command: Command) => {
        if (killed) return never
        const answer = await submit(command)
        return killed ? never : answer
      },
    })
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
      project: async () => ({ handle: 'default', repository_hosts: {} }),
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
  const environments: string[] = []
  let commands = 0
  const ofIndex = (index: number): string | undefined => environments[index % environments.length]
  const send = async (id: string | undefined, name: string, input: object) => {
    if (id === undefined) return
    await submit({
      project: PROJECT,
      kind: 'environment',
      id,
      command_id: `test/${commands++}`,
      name,
      input,
      origin: { at: toy.clock.now(), principal: { type: 'system', id: 'test' } },
    })
  }
  const use = (id: string | undefined, more: object = {}) =>
    send(id, 'environment.use', {
      job_id: `job_${commands}`,
      queue: '0.default',
      holder: { kind: 'run', id: 'run_1' },
      ...more,
    })
  return {
    environments,
    stateOf: async (id: string) => {
      const answer = await shardOfId(id)?.ask(
        { project: PROJECT, kind: 'environment', id },
        'standing',
        {},
      )
      return (answer as { readonly reply: EnvironmentStanding }).reply
    },
    places,
    advance: (ms: number) => toy.clock.advance(ms),
    create: () => {
      const n = environments.length + 1
      const id = makeId('environment', n, new Uint8Array(9).fill(n), n)
      environments.push(id)
      return use(id, { binding: { mode: 'run', owner_id: `run_${n}` } })
    },
    use: (index: number) => use(ofIndex(index)),
    remove: (index: number) => send(ofIndex(index), 'environment.remove', {}),
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
      // Simulates the exit of the process, which stops all work that is unfinished after 10 s.
      await host?.kill()
    },
    fail: (yes: boolean) => {
      for (const place of places) place.fails = yes ? new ProviderFault('full') : undefined
    },
  }
}
type Stage = Awaited<ReturnType<typeof stage>>

/** Statuses of an environment that exists at its place. */
const present: readonly string[] = ['ready', 'running', 'retained']
/** Returns the violations that are found once everything is at rest. */
async function faultsOf({ environments, stateOf, places }: Stage): Promise<string[]> {
  const faults: string[] = []
  for (const id of environments) {
    const { environment, worker } = await stateOf(id)
    const { status, place } = environment
    const found = places.filter((one) => one.environments.has(id))
    const names = found.map(({ name }) => name)
    const isRight = present.includes(status)
      ? names.length === 1 && names[0] === place
      : // The remains of a failed preparation stay at its place until the environment is destroyed.
        status === 'failed'
        ? names.every((name) => name === place)
        : status === 'destroyed' && names.length === 0
    if (!isRight) faults.push(`${id} is ${status} at ${place}, found at ${names}`)
    const running = found[0]?.environments.get(id)?.worker?.generation ?? 0
    if (running > worker.generation) faults.push(`${id}: worker ${running} was not requested`)
  }
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
        await it.advance(3_600_000)
        for (const id of it.environments) {
          const { environment } = await it.stateOf(id)
          if (environment.status === 'destroyed') removed++
          if (present.includes(environment.status)) kept++
        }
        const faults = await faultsOf(it)
        if (faults.length > 0) throw new Error(faults.join('\n'))
      },
    ),
    { numRuns: Number(process.env['HOST_RUNS'] ?? 30) },
  )
  t.ok(removed > 5 && kept > 10, `${removed} were removed, and ${kept} are ready`)
})
