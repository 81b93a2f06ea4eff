/** The readiness of a gateway: which failures it reports at once, and which only if they last. */
import t from 'tap'
import type { ClusterParts } from '../../../nodes/observe/cluster.ts'
import { readiness } from '../../../nodes/observe/ready.ts'

/** Creates the check of a node whose parts answer, unless they are listed in `late`. */
function node() {
  const it = { at: 0, connected: true, fresh: true, late: new Set<string>() }
  const answer = async <T>(what: string, value: T): Promise<T> => {
    if (it.late.has(what)) throw new Error('late')
    return value
  }
  const check = readiness({
    nats: {
      connected: () => it.connected,
      manager: { streams: { info: () => answer('state', {}) } },
      space: { stream: (name: string) => name },
    },
    membership: { stops: () => [], fresh: () => it.fresh, members: () => [{ id: 'a' }] },
    cluster: { list: () => answer('owners', [{ value: '{"node":"a"}' }]) },
    journal: { position: () => answer('journal', 1) },
    bus: { request: () => answer('view', {}) },
    partitions: 1,
    shards: 1,
  } as unknown as ClusterParts)
  return Object.assign(it, { check })
}

t.test('a failure that all gateways see is reported only if it lasts', async (t) => {
  const { now } = performance
  const one = node()
  performance.now = () => one.at
  t.teardown(() => {
    performance.now = now
  })
  t.strictSame(await one.check(), [])
  one.late = new Set(['journal', 'state', 'view', 'owners'])
  for (one.at of [1000, 6900]) t.strictSame(await one.check(), [])
  one.at = 7100
  t.strictSame(await one.check(), [
    'journal 0 (late)',
    'state 0 (late)',
    'view 0 (late)',
    'shards without an owner (late)',
  ])
  one.late.clear()
  t.strictSame(await one.check(), [])
})

t.test(
  'a node that has never been ready, and its own failures, are reported at once',
  async (t) => {
    const starting = node()
    starting.late.add('journal')
    t.strictSame(await starting.check(), ['journal 0 (late)'])
    const one = node()
    t.strictSame(await one.check(), [])
    one.fresh = false
    t.strictSame(await one.check(), ['membership: the lease of this node is stale'])
    one.connected = false
    t.strictSame(await one.check(), ['nats: not connected'])
  },
)
