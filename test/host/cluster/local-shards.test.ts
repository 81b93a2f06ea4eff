/** Commands and tells to a shard in the same process, which is called without the bus. */
import t from 'tap'
import type { HostDeps, ShardAnswer } from '../../../nodes/host/deps.ts'
import type { Planned } from '../../../nodes/host/effects/effects.ts'
import { Outbox } from '../../../nodes/host/effects/outbox.ts'
import { LocalShards } from '../../../nodes/host/local-shards.ts'
import type { Shard } from '../../../nodes/host/shard.ts'
import { createWorld } from '../../../nodes/world.ts'
import type { Command } from '../../../protocol/entry.ts'
import { fakeParts } from '../../support/fake-world.ts'
import { MemoryBus, settleAll } from '../../support/memory.ts'
import { command, reply, runId, ToyWorld } from '../support/toy.ts'

/** A bus that carries no requests. */
class NoRequests extends MemoryBus {
  override request(): Promise<never> {
    throw new Error('a request was sent over the bus')
  }
}
const gateway = (toys: ToyWorld, { bus, local }: Pick<HostDeps, 'bus' | 'local'>) =>
  createWorld(
    fakeParts({
      settings: { deadline: 15_000 },
      bus,
      local,
      clock: toys.clock,
      random: toys.random,
    }),
  )
/** Sends a command to a shard directly and collects its answers. */
function ask(shard: Shard, sent: Command): ShardAnswer[] {
  const answers: ShardAnswer[] = []
  shard.receive({ type: 'command', command: sent }, (answer) => answers.push(answer))
  return answers
}

t.test('commands, queries and tells reach a shard of the process without the bus', async (t) => {
  const toys = new ToyWorld()
  const deps = { ...toys.deps(new NoRequests()), local: new LocalShards() }
  const [here, there] = [await toys.owner(0, deps), await toys.owner(1, deps)]
  const world = gateway(toys, deps)
  const sent = command(runId(1), 'add', { by: 2, abroad: runId(9, 1) })
  t.strictSame(await world.commandRow(sent), { reply: { count: 2 } })
  t.strictSame(await world.commandRow(sent), { reply: { count: 2 } }, 'a repeat')
  await settleAll()
  const to = { project: 'prj_1', kind: 'run', id: runId(9, 1) }
  t.match(await world.ask(to as never, 'get' as never, {} as never), { told: 1 })
  here.drop()
  there.drop()
})

t.test('a command that waits while its shard moves is decided by the next owner', async (t) => {
  const toys = new ToyWorld()
  const deps = { ...toys.deps(), local: new LocalShards() }
  const first = await toys.owner(0, deps)
  const world = gateway(toys, deps)
  await world.commandRow(command(runId(1), 'add', { by: 1 }))
  const waiting = world.commandRow(command(runId(1), 'add', { by: 2 }))
  first.drop()
  await toys.clock.advance(1000)
  const next = await toys.owner(0, deps)
  await toys.clock.advance(1000)
  t.strictSame(await waiting, { reply: { count: 3 } })
  const late = world.commandRow(command(runId(1), 'add', { by: 4 }))
  next.drop()
  await toys.clock.advance(15_000)
  t.match(await late, { refused: 'service_unavailable' }, 'and refused at its deadline')
})

t.test('the deadlines of requests pass in order, for waiting requests only', async (t) => {
  const toys = new ToyWorld()
  const bus = new MemoryBus()
  const world = gateway(toys, { bus })
  const ended: string[] = []
  const begin = (name: string) =>
    void world.commandRow(command(runId(1), 'add', { by: 1 })).then(() => ended.push(name))
  begin('first')
  await toys.clock.advance(5000)
  begin('second')
  await toys.clock.advance(10_000)
  t.strictSame(ended, ['first'])
  await toys.clock.advance(4999)
  t.strictSame(ended, ['first'])
  await toys.clock.advance(1)
  t.strictSame(ended, ['first', 'second'])
})

t.test('every message is answered exactly once', async (t) => {
  t.test('when its batch cannot be encoded', async (t) => {
    const toys = new ToyWorld()
    const base = toys.deps()
    const put = async () => {
      throw new Error('the object store is unreachable')
    }
    const lost: string[] = []
    const shard = await toys.owner(0, { ...base, blobs: { ...toys.blobs, put } as never }, lost)
    const answers = ask(shard, command(runId(1), 'add', { by: 1, text: 'x'.repeat(300_000) }))
    await settleAll()
    t.strictSame(answers, [{ not_owner: true }])
    t.strictSame(lost, ['shard loop failed'])
  })
  t.test('when the shard is given up while an actor is read', async (t) => {
    const toys = new ToyWorld()
    const quiet = await toys.owner(0)
    await quiet.submit(command(runId(2), 'add', { by: 1 }))
    await quiet.stop()
    let answered = () => {}
    const base = toys.deps()
    const get = async (partition: number, key: string) => {
      if (key.includes(runId(2)))
        await new Promise<void>((done) => {
          answered = done
        })
      return toys.snapshots.get(partition, key)
    }
    const snapshots = {
      get,
      put: toys.snapshots.put.bind(toys.snapshots),
      delete: toys.snapshots.delete.bind(toys.snapshots),
    }
    const shard = await toys.owner(0, { ...base, snapshots })
    const answers = ask(shard, command(runId(1), 'add', { by: 1, sibling: runId(2) }))
    await settleAll()
    const query: ShardAnswer[] = []
    const to = { project: 'prj_1', kind: 'run', id: runId(1) } as const
    shard.receive({ type: 'ask', to, name: 'get', input: {} }, (answer) => query.push(answer))
    t.strictSame(answers, [])
    shard.drop()
    t.strictSame([answers, query], [[{ not_owner: true }], [{ not_owner: true }]])
    answered()
    await toys.clock.advance(1000)
    t.strictSame([answers, query], [[{ not_owner: true }], [{ not_owner: true }]])
  })
})

t.test('only a repeat of a waiting command shares its answer', async (t) => {
  const toys = new ToyWorld()
  const shard = await toys.owner(0)
  const one = command(runId(1), 'add', { by: 1 }, 'same', 'print')
  const answers = [one, { ...one }, { ...one, id: runId(2) }, { ...one, fingerprint: 'other' }].map(
    (sent) => shard.submit(sent),
  )
  const [first, repeat, other, conflict] = (await Promise.all(answers)).map(reply)
  t.strictSame([first, repeat, other], [{ count: 1 }, { count: 1 }, { count: 1 }])
  t.match(conflict, { refused: 'idempotency_key_conflict' })
  t.strictSame(reply(await shard.submit(one)), { count: 1 })
  shard.drop()
})

t.test('tells to a shard of the process are repeated from the first undecided one', async (t) => {
  const toys = new ToyWorld()
  const local = new LocalShards()
  const sent: string[] = []
  let lost = true
  local.add(0, 0, {
    receive: (request, answer) => {
      const { command_id } = (request as { command: Command }).command
      sent.push(command_id)
      answer(lost && command_id !== 'a' ? { not_owner: true } : { reply: 1 })
    },
  })
  const to = { project: 'prj_1', kind: 'run', id: runId(1) } as const
  const done: string[] = []
  const outbox = new Outbox({ ...toys.deps(new NoRequests()), local }, to, {
    isStopped: () => false,
    done: ({ id }) => done.push(id),
    over: () => done.push('over'),
  })
  for (const id of ['a', 'b', 'c'])
    outbox.add({
      id,
      sequence: 1,
      from: to,
      at: 0,
      effect: { tell: { to, name: 'hear', input: {} } },
      size: 100,
    } satisfies Planned)
  await settleAll()
  lost = false
  await toys.clock.advance(1000)
  t.strictSame(sent.slice(0, 3), ['a', 'b', 'c'])
  t.strictSame(sent.slice(-2), ['b', 'c'])
  t.strictSame(done, ['a', 'b', 'c', 'over'])
})
