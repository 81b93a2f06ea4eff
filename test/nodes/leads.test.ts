/** Who may say where a replicated stream ends. */
import t from 'tap'
import { leads } from '../../nodes/nats/journal.ts'

type Cluster = Parameters<typeof leads>[0]
const replica = (name: string, milliseconds: number, offline = false) => ({ name, current: true, offline, active: milliseconds * 1e6, lag: 0 })
const told = (...replicas: ReturnType<typeof replica>[]) => leads({ name: 'c', leader: 'a', replicas } as unknown as Cluster, 5)

t.test('a single server leads', async (t) => {
  t.ok(leads(undefined, 5))
  t.ok(leads(undefined, 5000), 'however long it took: nobody else can')
  t.ok(told())
})
t.test('with the majority in touch nobody else can lead', async (t) => {
  t.ok(told(replica('b', 10), replica('c', 900)))
  t.ok(told(replica('b', 9000), replica('c', 900)), 'one of three may be away')
  t.ok(told(replica('b', 0, true), replica('c', 900)))
})
t.test('a server that others have not answered for long may have been replaced', async (t) => {
  t.notOk(told(replica('b', 3000), replica('c', 3000)), 'it is cut off')
  t.notOk(told(replica('b', 10_000), replica('c', 10_000)), 'it was paused')
  t.notOk(told(replica('b', 0, true), replica('c', 0, true)))
  t.notOk(told(replica('b', 10), replica('c', 9000), replica('d', 9000), replica('e', 9000)))
})

t.test('a leader that answers late may have stood still meanwhile, and its followers have elected another', async (t) => {
  const cluster = { name: 'c', leader: 'a', replicas: [replica('b', 10), replica('c', 10)] } as unknown as Cluster
  t.ok(leads(cluster, 900))
  t.notOk(leads(cluster, 1100))
})
