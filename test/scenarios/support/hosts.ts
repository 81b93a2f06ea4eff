/**
 * Starts hosts on real connections to NATS, and a stand-in for the environment actor. The stand-in
 * runs in the real shard host, so its requests and the commands of hosts go through NATS.
 */
import type { Log, World } from '../../../gateway/ports.ts'
import type { Bus, Clock } from '../../../nodes/host/ports.ts'
import { startHost } from '../../../nodes/hosts/host.ts'
import { createBus } from '../../../nodes/nats/bus.ts'
import type { Access } from '../../../nodes/nats/server/access.ts'
import { connectNats } from '../../../nodes/nats/server/connect.ts'
import { systemClock, systemRandom } from '../../../nodes/system.ts'
import { createWorld } from '../../../nodes/world.ts'
import { environmentCredential } from '../../../protocol/environments/credential.ts'
import { makeId } from '../../../protocol/ids.ts'
import { kinds, ToyWorld } from '../../host/support/toy.ts'
import { fakeParts } from '../../support/fake-world.ts'
import { silentLog } from '../../support/memory.ts'
import type { MemoryPlace } from '../../support/memory-provider.ts'
import { PROJECT, type StandIn, standIn } from '../../support/stand-in-environment.ts'

/** Milliseconds of silence after which another host may perform an operation. */
const HOST_TIMEOUT_MS = 1000

/**
 * Starts the owners of shards 0 and 1 on a separate connection. They run the stand-in in place of
 * the environment actor.
 */
export async function startOwner(access: Access, log: Log = silentLog) {
  const watching = new Set<() => void>()
  const states = new Map<string, StandIn>()
  const actor = standIn((id, state) => {
    states.set(id, state)
    for (const look of watching) look()
  }, HOST_TIMEOUT_MS)
  const nats = await connectNats({ access, name: 'owner', role: 'shards', log })
  const bus = createBus(nats)
  const toy = new ToyWorld(undefined, { ...kinds, environment: actor })
  const deps = { ...toy.deps(), bus, clock: systemClock }
  const shards = [await toy.owner(0, deps), await toy.owner(1, deps)]
  await bus.flush()
  const world = worldOn(bus, 'owner', systemClock)
  let ids = 0
  return {
    id: () => makeId('environment', ++ids, new Uint8Array(9).fill(ids), ids),
    /** Sends the command of a queue (`environment.use`) or of a run (`environment.run_ended`). */
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
    /** Resolves with the state of the environment once `matches` accepts it. Rejects after 15 s. */
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

/**
 * Returns the ports of a gateway that sends its messages over the given bus.
 * @param shards number of shards of the installation.
 */
export function worldOn(bus: Bus, node: string, clock: Clock, shards = 2): World {
  const settings = { deadline: 5000 }
  return createWorld(fakeParts({ node, settings, shards, bus, clock, random: systemRandom() }))
}

/**
 * Starts a host of a place on a separate connection.
 * @param shards number of shards of the installation.
 */
export async function startTestHost(
  access: Access,
  place: MemoryPlace,
  node: string,
  log: Log = silentLog,
  shards?: number,
) {
  const nats = await connectNats({ access, name: node, role: 'hosts', log })
  const timers = new Set<() => void>()
  let killed = false
  // After `kill`, no timers run, as in a killed process.
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
    world: worldOn(bus, node, clock, shards),
    bus,
    providers: [place.provider()],
    limits: { environments: 10, operations: 4 },
    launch: { brand: 'Service', gateway_url: 'http://gateway', log_level: 'info' },
    credential: (of, random) => environmentCredential('bat', of, random),
    project: async () => ({ handle: 'default', repository_hosts: {} }),
  })
  await bus.flush()
  return {
    async stop() {
      if (killed) return
      await stop()
      await nats.close()
    },
    /** Ends the host as `kill -9` does: no operation is finished or reported. */
    async kill() {
      killed = true
      for (const cancel of timers) cancel()
      await nats.connection.close()
    },
  }
}
