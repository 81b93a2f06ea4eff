/** The outbox of a shard for one receiver, tested without the shard. */
import t from 'tap'
import type { ShardAnswer, ShardMessage } from '../../../nodes/host/deps.ts'
import { type Planned, planEffects } from '../../../nodes/host/effects/effects.ts'
import { Outbox } from '../../../nodes/host/effects/outbox.ts'
import { subjects } from '../../../protocol/subjects.ts'
import { MemoryBus, settleAll } from '../../support/memory.ts'
import { runId, ToyWorld } from '../support/toy.ts'

const to = { project: 'prj_1', kind: 'run', id: runId(1) } as const
const tell = (id: string): Planned => ({
  id,
  sequence: 1,
  from: to,
  at: 0,
  effect: { tell: { to, name: 'hear', input: {} } },
  size: 100,
})

t.test('tells that were not decided are sent again, in order, until they are', async (t) => {
  const world = new ToyWorld()
  const bus = new MemoryBus()
  const sent: string[][] = []
  // The owner of the receiving shard decides the first two tells and then loses the shard.
  const answers: ShardAnswer[] = [{ reply: 1 }, { reply: 2 }, { not_owner: true }]
  bus.subscribe(subjects.shard(0, 0), (message) => {
    const received = message as ShardMessage
    if (received.type === 'commands') {
      sent.push(received.commands.map(({ command_id }) => command_id))
      return answers
    }
    if (received.type === 'command') sent.push([received.command.command_id])
    return { reply: 3 }
  })
  let over = 0
  const done: string[] = []
  const outbox = new Outbox(world.deps(bus), to, {
    isStopped: () => false,
    done: ({ id }) => done.push(id),
    over: () => over++,
  })
  for (const id of ['a', 'b', 'c']) outbox.add(tell(id))
  await settleAll()
  await world.clock.advance(1000)
  t.strictSame(sent, [['a', 'b', 'c'], ['c']])
  t.strictSame(done, ['a', 'b', 'c'])
  t.equal(over, 1)
})

t.test('a shard that is given up sends no more tells', async (t) => {
  const world = new ToyWorld()
  let stopped = false
  let sent = 0
  const bus = new MemoryBus()
  bus.subscribe(subjects.shard(0, 0), () => {
    sent++
    return { not_owner: true }
  })
  const outbox = new Outbox(world.deps(bus), to, {
    isStopped: () => stopped,
    done: () => {},
    over: () => {},
  })
  outbox.add(tell('a'))
  await settleAll()
  t.ok(sent > 0)
  stopped = true
  sent = 0
  await world.clock.advance(10_000)
  t.equal(sent, 0)
})

t.test('effects of one event that has many of them are measured', async (t) => {
  const effectsOf = (count: number) =>
    Array.from({ length: count }, (_, i) => ({
      tell: { to, name: 'hear', input: { text: 'x'.repeat(i) } },
    }))
  const react = { few: () => effectsOf(2), many: () => effectsOf(100) }
  const sizesOf = (type: keyof typeof react): number[] =>
    planEffects(
      { deps: { kinds: { run: { react } } }, partition: 0, shard: 0 } as never,
      { cursor: 1000, entry: { ...to, events: [{ type }], origin: { at: 0 } } } as never,
      1_000_000,
    ).map(({ size }) => size)
  t.strictSame(sizesOf('few'), [1_000_000, 1_000_000], 'the size of the event')
  t.strictSame(
    sizesOf('many'),
    effectsOf(100).map((effect) => JSON.stringify(effect).length),
    'the size of each effect',
  )
})
