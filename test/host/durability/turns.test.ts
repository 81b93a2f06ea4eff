/** What shares a commit, and the order of commits and announcements in turns of the event loop. */
import t from 'tap'
import { cursorOf } from '../../../protocol/entry.ts'
import { MemoryBus, settleAll } from '../../support/memory.ts'
import { command, reply, runId, ToyWorld } from '../support/toy.ts'

t.test('commands of one turn of the event loop are appended together', async (t) => {
  const world = new ToyWorld()
  const turns: (() => void)[] = []
  const turnEnd = {
    decide: (run: () => void) => void turns.push(run),
    expectResponses: () => {},
    defer: queueMicrotask,
  }
  const shard = await world.owner(0, { ...world.deps(), turnEnd })
  const add = (n: number) => shard.submit(command(runId(n), 'add', { by: n }))
  const endTurn = async () => {
    await settleAll()
    for (const run of turns.splice(0)) run()
    await settleAll()
  }
  const known = [0, 1, 2, 3, 4].map(add)
  while (shard.mailboxMessages > 0 || turns.length > 0) await endTurn()
  await Promise.all(known)

  const before = world.journal.messages.length
  const appended = () => world.journal.messages.length - before
  const first = [add(1)]
  await settleAll()
  first.push(add(2))
  await settleAll()
  t.equal(appended(), 0)
  for (const run of turns.splice(0)) run()
  const second = [add(3)]
  await settleAll()
  t.same((await Promise.all(first)).map(reply), [{ count: 2 }, { count: 4 }])
  second.push(add(4))
  await settleAll()
  t.equal(appended(), 1, 'also those that arrived during an append')
  await endTurn()
  t.same((await Promise.all(second)).map(reply), [{ count: 6 }, { count: 8 }])
  t.equal(appended(), 2)
  shard.drop()
})

t.test('a commit is announced later, after its answers and in order', async (t) => {
  const world = new ToyWorld()
  const bus = new MemoryBus()
  const deferred: (() => void)[] = []
  const turnEnd = {
    decide: queueMicrotask,
    expectResponses: () => {},
    defer: (run: () => void) => void deferred.push(run),
  }
  const shard = await world.owner(0, { ...world.deps(bus), turnEnd })
  const announced = () =>
    bus.published
      .filter(({ subject }) => subject === 'moved.prj_1')
      .map(({ message }) => (message as { cursor: number }).cursor)
  t.same(reply(await shard.submit(command(runId(0), 'add', { by: 1 }))), { count: 1 })
  const first = cursorOf(shard.position.sequence, 0)
  t.same(reply(await shard.submit(command(runId(0), 'add', { by: 2 }))), { count: 3 })
  t.strictSame(announced(), [])
  for (const run of deferred) run()
  t.strictSame(announced(), [first, cursorOf(shard.position.sequence, 0)])
  shard.drop()
})

t.test('an error while a commit is announced ends the ownership of the shard', async (t) => {
  const world = new ToyWorld()
  const bus = new MemoryBus()
  const lost: string[] = []
  const shard = await world.owner(0, world.deps(bus), lost)
  bus.publish = () => {
    throw new Error('bug')
  }
  const answer = await shard.submit(command(runId(0), 'add', { by: 1 }))
  t.same(reply(answer), { count: 1 }, 'the command is committed')
  await settleAll()
  t.strictSame(lost, ['shard loop failed'])
  t.notOk(shard.open)
})
