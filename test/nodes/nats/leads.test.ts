/** Which server of a replicated stream may report the end of the stream. */
import t from 'tap'
import { createSuccession, wasLeader } from '../../../nodes/nats/leader.ts'

const replica = (name: string, milliseconds: number, offline = false) => ({
  name,
  current: true,
  offline,
  active: milliseconds * 1e6,
  lag: 0,
})
const told = (...replicas: ReturnType<typeof replica>[]) =>
  wasLeader({ name: 'c', leader: 'a', replicas }, 5)

t.test('a single server leads', async (t) => {
  t.ok(wasLeader(undefined, 5))
  t.ok(wasLeader(undefined, 5000), 'after any delay: no other server can')
  t.ok(told())
})
t.test('while a server is in touch with the majority, no other server can lead', async (t) => {
  t.ok(told(replica('b', 10), replica('c', 900)))
  t.ok(told(replica('b', 9000), replica('c', 900)), 'one of three may be away')
  t.ok(told(replica('b', 0, true), replica('c', 900)))
})
t.test('a server without recent answers from the others may have been replaced', async (t) => {
  t.notOk(told(replica('b', 3000), replica('c', 3000)), 'it is cut off')
  t.notOk(told(replica('b', 10_000), replica('c', 10_000)), 'it was paused')
  t.notOk(told(replica('b', 0, true), replica('c', 0, true)))
  t.notOk(told(replica('b', 10), replica('c', 9000), replica('d', 9000), replica('e', 9000)))
})

t.test('a leader that answers late may have been paused and replaced', async (t) => {
  const cluster = {
    name: 'c',
    leader: 'a',
    replicas: [replica('b', 10), replica('c', 10)],
  }
  t.ok(wasLeader(cluster, 900))
  t.notOk(wasLeader(cluster, 1100))
})

t.test('an earlier leader is ignored while its successor answers', async (t) => {
  let now = 0
  const believed = createSuccession(() => now)
  const since = (second: number) => ({
    leader: 'x',
    leader_since: `2026-01-01T00:00:${String(second).padStart(2, '0')}.123456789Z`,
  })
  t.ok(believed(0, since(10)))
  t.ok(believed(0, since(20)), 'a successor')
  now = 1900
  t.notOk(believed(0, since(10)))
  t.ok(believed(0, since(20)))
  t.ok(believed(1, since(10)), 'another stream has another leader')
  now = 3800
  t.notOk(believed(0, since(10)), 'the successor answered less than two seconds ago')
  now = 4000
  t.ok(believed(0, since(10)), 'clocks of servers differ: the only answering server counts')
  t.ok(believed(0, undefined), 'a single server')
  t.ok(believed(0, { leader: 'x' }), 'a server that does not report it')
})
