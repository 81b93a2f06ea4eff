/**
 * Claims on a node id. Invariant: at most one process holds an id, for any order of starts, crashes
 * and returns.
 */
import fc from 'fast-check'
import t from 'tap'
import { Membership } from '../../../nodes/host/cluster/membership.ts'
import { claimNodeId, type Instance, type Presence } from '../../../nodes/host/cluster/node-id.ts'
import type { Registry } from '../../../nodes/host/ports.ts'
import { ManualClock, MemoryRegistry, settleAll } from '../../support/memory.ts'

const instance = (name: string): Instance => ({ instance: name, process: `process of ${name}` })
const record = (roles: readonly string[], self?: Instance, beat = 3) =>
  JSON.stringify({ id: 'n', roles, beat, ...self })
const recorded = (value: string) => ({ value, revision: 7 })

/**
 * Creates nodes that claim their id in one registry. `presence` reports whether an instance is
 * listening.
 */
function setting(before?: string) {
  const registry = new MemoryRegistry()
  if (before !== undefined) registry.values.set('node.n', recorded(before))
  const clock = new ManualClock()
  const listening = new Set<string>()
  const presence = async (name: string): Promise<Presence> =>
    listening.has(name) ? 'there' : 'nobody'
  /** Starts listening and then claims the id, as `startNode` does. */
  const claim = (name: string, over: Registry = registry, ask = presence): Promise<string> => {
    listening.add(name)
    return claimNodeId({
      id: 'n',
      roles: ['shards'],
      self: instance(name),
      registry: over,
      clock,
      presence: ask,
    }).then(
      () => `${name} holds it`,
      (error: Error) => {
        listening.delete(name)
        return error.message
      },
    )
  }
  return { registry, clock, listening, presence, claim }
}
const holder = (registry: MemoryRegistry): string =>
  (JSON.parse(registry.values.get('node.n')?.value ?? '{}') as Instance).instance

t.test('of two nodes that start at once, one gets the id and the other an error', async () => {
  for (const before of [
    undefined,
    record([]),
    record([], instance('left')),
    record(['shards'], instance('dead')),
  ])
    await fc.assert(
      fc.asyncProperty(fc.scheduler(), async (scheduler) => {
        const { registry, clock, claim, presence } = setting(before)
        /** Returns ports whose calls complete when the scheduler allows it. */
        const slow = (name: string): [Registry, typeof presence] => {
          const later = <T>(what: string, run: () => Promise<T>): Promise<T> =>
            scheduler.schedule(Promise.resolve(), `${name} ${what}`).then(run)
          return [
            {
              get: (key) => later('reads', () => registry.get(key)),
              put: (key, value, revision) =>
                later('writes', () => registry.put(key, value, revision)).then((stored) =>
                  later('hears', async () => stored),
                ),
              delete: (key) => registry.delete(key),
              list: (prefix) => registry.list(prefix),
            },
            (other) => later(`asks for ${other}`, () => presence(other)),
          ]
        }
        let over = false
        const both = Promise.all([claim('a', ...slow('a')), claim('b', ...slow('b'))]).then(
          (told) => {
            over = true
            return told
          },
        )
        while (!over) {
          if (scheduler.count() > 0) await scheduler.waitOne()
          else await clock.advance(50)
          await settleAll()
        }
        const told = await both
        const winner = holder(registry)
        const loser = winner === 'a' ? 'b' : 'a'
        const by = { a: told[0], b: told[1] }
        if (by[winner as 'a' | 'b'] !== `${winner} holds it`) throw new Error(told.join('; '))
        if (
          by[loser] !==
          `another node is running with the id n (process of ${winner}): ` +
            'set a different BATON_NODE_ID for each node, or none'
        )
          throw new Error(told.join('; '))
      }),
      { numRuns: 200 },
    )
})

t.test('a crashed node can start again once its record must have expired', async (t) => {
  const { clock, claim } = setting(record(['shards'], instance('crashed')))
  const claiming = claim('next')
  let done = false
  void claiming.then(() => (done = true))
  await clock.advance(1200)
  t.notOk(done)
  await clock.advance(100)
  t.equal(await claiming, 'next holds it')
})

t.test(
  'a node that stopped gracefully, or without an instance in its record, causes no wait',
  async (t) => {
    for (const before of [record([], instance('left')), record(['shards'])])
      t.equal(await setting(before).claim('next'), 'next holds it')
  },
)

t.test('a node that does not answer but renews its record keeps its id', async (t) => {
  for (const presence of ['nobody', 'silent'] as const) {
    const { registry, clock, claim } = setting(record(['shards'], instance('away')))
    const claiming = claim('next', registry, async () => presence)
    await clock.advance(400)
    registry.values.set('node.n', { value: record(['shards'], instance('away'), 4), revision: 8 })
    await clock.advance(2000)
    t.match(await claiming, /another node is running with the id n \(process of away\)/)
    t.equal(holder(registry), 'away')
  }
})

t.test(
  'a node that returns after another one took its id ends and leaves the record unchanged',
  async (t) => {
    const { registry, clock, claim } = setting()
    t.equal(await claim('first'), 'first holds it')
    const first = new Membership(registry, clock, { id: 'n', roles: ['shards'] })
    const told: string[] = []
    first.useClaim({
      self: instance('first'),
      revision: registry.values.get('node.n')?.revision ?? 0,
      superseded: ({ message }) => void told.push(message),
    })
    await first.start(async () => {})
    await clock.advance(1000)
    t.ok(first.fresh())
    registry.values.set('node.n', { value: record(['shards'], instance('second')), revision: 99 })
    await clock.advance(2500)
    t.match(told, [/another node is running with the id n \(process of second\)/])
    t.equal(told.length, 1)
    t.notOk(first.fresh())
    await first.stop()
    t.equal(holder(registry), 'second')
  },
)
