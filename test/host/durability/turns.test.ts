/** What shares a commit, and the order of commits and announcements in turns of the event loop. */
import t from 'tap'
import { settleAll } from '../../support/memory.ts'
import { command, reply, runId, ToyWorld } from '../support/toy.ts'

t.test('commands of one turn of the event loop are appended together', async (t) => {
  const world = new ToyWorld()
  const turns: (() => void)[] = []
  const turnEnd = { decide: (run: () => void) => void turns.push(run), defer: queueMicrotask }
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

t.test('a commit is announced after the append of a command that follows it', async (t) => {
  const world = new ToyWorld()
  const deferred: (() => void)[] = []
  const turnEnd = { decide: queueMicrotask, defer: (run: () => void) => void deferred.push(run) }
  const shard = await world.owner(0, { ...world.deps(), turnEnd })
  const cursors = () => world.bus.published.map(({ message }) => message)
  const [first, second] = [
    await shard.submit(command(runId(0), 'add', { by: 1 })),
    await shard.submit(command(runId(0), 'add', { by: 2 })),
  ]
  t.same([first, second].map(reply), [{ count: 1 }, { count: 3 }], 'answers do not wait')
  const before = cursors().length
  t.equal(deferred.length, 2)
  for (const run of deferred.splice(0)) run()
  t.strictSame(
    world.bus.published.slice(before).filter(({ subject }) => subject.startsWith('moved.')).length,
    2,
  )
  shard.drop()
})

t.test('an error while a commit is announced ends the ownership of the shard', async (t) => {
  const world = new ToyWorld()
  const shard = await world.owner(0)
  world.bus.publish = () => {
    throw new Error('bug')
  }
  const answer = await shard.submit(command(runId(0), 'add', { by: 1 }))
  t.same(reply(answer), { count: 1 }, 'the command is committed')
  await settleAll()
  t.notOk(shard.open)
})
