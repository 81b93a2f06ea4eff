/** The listeners of a process: which of them match a subject, and which receive a message. */
import t from 'tap'
import { createListeners, type Listener } from '../../../nodes/nats/bus/listeners.ts'

const listener = (subject: string, group?: string): Listener => ({
  subject,
  group,
  handler: () => subject,
})

t.test('a subject finds its exact listeners and the patterns that match it', async (t) => {
  const listeners = createListeners()
  const removers = ['a.b.c', 'a.*.c', 'a.b.*', 'a.>', 'b.>', 'a.b'].map((subject) =>
    listeners.add(listener(subject)),
  )
  const found = (subject: string) =>
    listeners
      .matching(subject)
      .map((one) => one.subject)
      .sort()
  t.strictSame(found('a.b.c'), ['a.*.c', 'a.>', 'a.b.*', 'a.b.c'])
  t.strictSame(found('a.x.c'), ['a.*.c', 'a.>'])
  t.strictSame(found('a.b'), ['a.>', 'a.b'])
  t.strictSame(found('a'), [])
  t.strictSame(found('b.x.y'), ['b.>'])
  removers[0]?.()
  removers[0]?.()
  removers[3]?.()
  t.strictSame(found('a.b.c'), ['a.*.c', 'a.b.*'])
})

t.test('a topic is heard while a subject of a listener has its first token', async (t) => {
  const listeners = createListeners()
  t.notOk(listeners.hears('live'))
  const one = listeners.add(listener('live.p.run.r1'))
  const two = listeners.add(listener('live.p.run.r1'))
  const pattern = listeners.add(listener('demand.*'))
  t.ok(listeners.hears('live'))
  one()
  one()
  t.ok(listeners.hears('live'), 'another one listens')
  t.equal(listeners.matching('live.p.run.r1').length, 1)
  two()
  t.notOk(listeners.hears('live'))
  t.ok(listeners.hears('demand'))
  pattern()
  t.notOk(listeners.hears('demand'))
})

t.test('group members take turns, and one of each group gets a publication', async (t) => {
  const listeners = createListeners()
  const members = [listener('a.b', 'g'), listener('a.*', 'g'), listener('a.b')]
  for (const member of members) listeners.add(member)
  const first = new Set(Array.from({ length: 6 }, () => listeners.matching('a.b')[0]))
  t.equal(first.size, 3)
  const { listening, groups } = listeners.chosen('a.b')
  t.equal(listening.length, 2)
  t.strictSame(groups, ['g'])
  t.strictSame(listeners.chosen('x'), { listening: [], groups: [] })
})
