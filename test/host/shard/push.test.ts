/**
 * Pushes of leased jobs to their gateway. The owner of the shard cannot read the state of a job's
 * run while the owner's own lease is stale. The pushes of one commit are sent together.
 */
import t from 'tap'
import { answerEach } from '../../../nodes/host/effects/pushes.ts'
import type { GatewayMessage } from '../../../protocol/workers/messages.ts'
import { MemoryBus, settleAll } from '../../support/memory.ts'
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

t.test('the pushes of one commit to one gateway', async (t) => {
  const job = (id: string, kind = 'action_execution') => ({ id, lease_token: `token ${id}`, kind })
  /**
   * Commits one event that causes these pushes. Returns the messages that `gateway.g1` received,
   * and the ids of the released jobs.
   */
  const pushed = async (
    jobs: readonly object[],
    receive: ((message: unknown) => unknown) | undefined,
  ) => {
    const world = new ToyWorld()
    const bus = new MemoryBus()
    const received: unknown[] = []
    if (receive)
      bus.subscribe('gateway.g1', (message) => {
        received.push(message)
        return receive(message)
      })
    const base = world.deps(bus)
    const { run } = base.kinds
    const react = {
      counted: (() =>
        jobs.map((job) => ({
          push: { gateway: 'g1', message: { type: 'assign', job } },
        }))) as never,
    }
    const released: string[] = []
    const release = ((_state: unknown, { job_id }: { job_id: string }) => {
      released.push(job_id)
      return { events: [], reply: undefined }
    }) as never
    const decide = { ...run.decide, 'queue.release': release }
    const kinds = { ...base.kinds, run: { ...run, react, decide } }
    const shard = await world.owner(0, { ...base, kinds })
    await shard.submit(command(runId(1), 'add', { by: 1 }))
    await settleAll()
    await world.clock.advance(5000)
    shard.drop()
    return { received, released }
  }
  const accept =
    (refused: readonly string[] = []) =>
    (message: GatewayMessage) => ({
      ok: message.type === 'assign' && !refused.includes(message.job.id),
    })
  const jobs = ['a', 'b', 'c'].map((id) => job(id))
  const assign = (job: object) => ({ type: 'assign', job })

  t.test('are one message, and each has its own answer', async (t) => {
    const { received, released } = await pushed(jobs, (m) => answerEach(m, accept(['b'])))
    t.strictSame(received, [{ type: 'list', messages: jobs.map(assign) }])
    t.strictSame(released, ['b'])
    const late = await pushed(jobs, (m) => answerEach(m, async (one) => accept(['c'])(one)))
    t.strictSame(late.released, ['c'], 'answers that come later')
  })
  t.test('are all released without a gateway, and none without an answer', async (t) => {
    t.strictSame((await pushed(jobs, undefined)).released, ['a', 'b', 'c'])
    t.strictSame((await pushed(jobs, () => new Promise(() => {}))).released, [])
  })
  t.test('are sent again one by one to a gateway that knows no lists', async (t) => {
    const { received, released } = await pushed(jobs, (message) =>
      (message as { type: string }).type === 'list'
        ? { ok: false }
        : accept(['a'])(message as GatewayMessage),
    )
    t.strictSame(received.slice(1), jobs.map(assign))
    t.strictSame(released, ['a'])
  })
  t.test('are sent in lists of at most 32, and generations alone', async (t) => {
    const many = Array.from({ length: 33 }, (_, i) => job(`j${i}`))
    const model = job('m', 'llm_generation')
    const { received, released } = await pushed([...many, model], (m) => answerEach(m, accept()))
    t.strictSame(received, [
      assign(model),
      { type: 'list', messages: many.slice(0, 32).map(assign) },
      assign(many[32] as object),
    ])
    t.strictSame(released, [])
  })
})
