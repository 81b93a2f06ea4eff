/**
 * Pushes of leased jobs to their gateway. The owner of the shard cannot read the state of a job's
 * run while the owner's own lease is stale.
 */
import t from 'tap'
import { MemoryBus } from '../../support/memory.ts'
import { command, runId, ToyWorld } from '../support/toy.ts'

class Silent extends MemoryBus {
  override request(): Promise<never> {
    return new Promise(() => {})
  }
}

t.test("a push with content to read waits until the owner's lease is fresh again", async (t) => {
  const world = new ToyWorld()
  const bus = new MemoryBus()
  const delivered: unknown[] = []
  bus.subscribe('gateway.g1', (message) => {
    delivered.push(message)
    return { ok: true }
  })
  let fresh = true
  const base = world.deps(bus)
  const run = base.kinds.run
  /**
   * Each event `counted` causes a push with the state of another run. After the takeover, that
   * state is not in memory.
   */
  const pushing = {
    ...run,
    react: {
      counted: (() => [
        {
          push: {
            gateway: 'g1',
            message: { type: 'assign', job: { id: 'job_1', lease_token: 't' } },
            spec: { kind: 'run', id: runId(2), ask: 'get', input: {} },
          },
        },
      ]) as never,
    },
  }
  const quiet = await world.owner(0, {
    ...base,
    kinds: { ...base.kinds, run: { ...run, react: {} } },
  })
  await quiet.submit(command(runId(2), 'add', { by: 7 }))
  await quiet.stop()

  const shard = await world.owner(0, {
    ...base,
    kinds: { ...base.kinds, run: pushing },
    fresh: () => fresh,
  })
  fresh = false
  await shard.submit(command(runId(1), 'add', { by: 1 }))
  await world.clock.advance(1000)
  t.strictSame(delivered, [], 'nothing is read from memory that may be old')
  fresh = true
  await world.clock.advance(2000)
  t.match(delivered, [{ type: 'assign', job: { id: 'job_1', spec: { count: 7 } } }])
  t.equal(delivered.length, 1)
  await shard.stop()
})

t.test(
  'an undeliverable job is released at once; one that may have arrived is left to its lease',
  async (t) => {
    const released = async (
      answers: (bus: MemoryBus) => void,
      takenOver: boolean,
    ): Promise<number> => {
      const world = new ToyWorld()
      const bus = new MemoryBus()
      answers(bus)
      const base = world.deps(bus)
      const run = base.kinds.run
      const react = {
        counted: (() => [
          {
            push: {
              gateway: 'g1',
              message: { type: 'assign', job: { id: 'job_1', lease_token: 't' } },
            },
          },
        ]) as never,
      }
      let releases = 0
      const released = (() => {
        releases++
        return { events: [], reply: undefined }
      }) as never
      const pushing = {
        ...base,
        kinds: {
          ...base.kinds,
          run: { ...run, react, decide: { ...run.decide, 'queue.release': released } },
        },
      }
      const first = await world.owner(0, takenOver ? { ...pushing, bus: new Silent() } : pushing)
      await first.submit(command(runId(1), 'add', { by: 1 }))
      if (takenOver) {
        first.drop()
        releases = 0
      }
      const last = takenOver ? await world.owner(0, pushing) : first
      await world.clock.advance(5000)
      last.drop()
      return releases
    }
    const nobody = () => {}
    const refuses = (bus: MemoryBus) => void bus.subscribe('gateway.g1', () => ({ ok: false }))
    const silent = (bus: MemoryBus) => void bus.subscribe('gateway.g1', () => new Promise(() => {}))
    t.equal(await released(nobody, false), 1, 'no subscriber')
    t.equal(await released(refuses, false), 1, 'the session is not there')
    t.equal(await released(silent, false), 0, 'no answer came')
    t.equal(await released(nobody, true), 0, 'the owner before may have handed it out')
    t.equal(await released(refuses, true), 0)
  },
)
