/** Commands that arrive in the same turn of the event loop are committed together. */
import t from 'tap'
import { settleAll } from '../../support/memory.ts'
import { command, reply, runId, ToyWorld } from '../support/toy.ts'

t.test('commands of one turn of the event loop are appended together', async (t) => {
  const world = new ToyWorld()
  const turns: (() => void)[] = []
  const atTurnEnd = (run: () => void) => void turns.push(run)
  const shard = await world.owner(0, { ...world.deps(), atTurnEnd })
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
