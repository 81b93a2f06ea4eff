/**
 * Membership of nodes: which node owns a shard, when a node is dead, and when a joining node may
 * serve.
 */
import fc from 'fast-check'
import t from 'tap'
import { assignShards, type Member } from '../../../nodes/host/cluster/assignment.ts'
import { Membership } from '../../../nodes/host/cluster/membership.ts'
import { ManualClock, MemoryRegistry, settleAll } from '../../support/memory.ts'

const node = (id: string): Member => ({ id, roles: ['shards'] })

t.test('every shard has one owner, in whatever order the nodes are listed', async (t) => {
  void fc.assert(
    fc.property(
      fc.uniqueArray(fc.integer({ min: 0, max: 999 }).map(String), { minLength: 1, maxLength: 9 }),
      fc.integer({ min: 1, max: 64 }),
      (ids, count) => {
        const shards = Array.from({ length: count }, (_, i) => `0.${i}`)
        const owners = assignShards(ids.map(node), shards)
        const other = assignShards([...ids].reverse().map(node), shards)
        const load = new Map<string, number>()
        for (const shard of shards) {
          const owner = owners.get(shard) ?? ''
          if (!ids.includes(owner) || other.get(shard) !== owner) return false
          load.set(owner, (load.get(owner) ?? 0) + 1)
        }
        return Math.max(...load.values()) <= Math.ceil(count / ids.length)
      },
    ),
  )
  t.equal(assignShards([], ['0.0']).size, 0)
})

t.test(
  "a node that stops renewing is dead after its lease, by the observer's own clock",
  async (t) => {
    const clock = new ManualClock()
    const registry = new MemoryRegistry()
    const a = new Membership(registry, clock, node('a'))
    const b = new Membership(registry, clock, node('b'))
    await a.start(async () => {})
    t.ok(a.alone())
    const joined = b.start(async () => {})
    await clock.advance(2000)
    await joined
    t.notOk(a.alone(), 'the other node is known before it serves')
    t.same(
      a
        .members('shards')
        .map(({ id }) => id)
        .sort(),
      ['a', 'b'],
    )
    registry.put = async () => {
      throw new Error('unreachable')
    }
    await clock.advance(2500)
    t.notOk(b.fresh(), 'a node that cannot renew is not fresh')
    t.notOk(a.fresh())
    await settleAll()
  },
)

t.test(
  'ended lifetimes of other gateways are counted: after leaving, restarting or silence',
  async (t) => {
    const clock = new ManualClock()
    const registry = new MemoryRegistry()
    const a = new Membership(registry, clock, { id: 'a', roles: ['gateway'] })
    await a.start(async () => {})
    /** Writes records of other nodes with these heartbeat counts, and lets the member read them. */
    const live = async (beats: Readonly<Record<string, number>>, roles = ['gateway']) => {
      for (const [id, beat] of Object.entries(beats))
        registry.values.set(`node.${id}`, {
          value: JSON.stringify({ id, roles, beat }),
          revision: 1000,
        })
      await clock.advance(600)
    }
    await live({ leaving: 7, restarted: 7, silent: 7 })
    await live({ leaving: 8, restarted: 8, silent: 8 })
    t.equal(a.endedGateways(), 0, 'a join ends no lifetime')
    await live({ leaving: 9 }, [])
    t.equal(a.endedGateways(), 1)
    await live({ restarted: 1, silent: 9 })
    t.equal(
      a.endedGateways(),
      2,
      'killed and started again under its name before its lease had lapsed',
    )
    for (let beat = 2; beat < 8; beat++) await live({ restarted: beat })
    t.equal(a.endedGateways(), 3)
  },
)

/**
 * Starts two members of one registry. A member cannot write to the registry while its id is in
 * `silent`.
 */
async function pair(hasNoSubscriber: (id: string) => Promise<boolean>) {
  const clock = new ManualClock()
  const registry = new MemoryRegistry()
  const silent = new Set<string>()
  const greet = async () => false
  const registryOf = (id: string) =>
    Object.assign(Object.create(registry) as MemoryRegistry, {
      put: async (key: string, value: string, revision: number) => {
        if (silent.has(id)) throw new Error('unreachable')
        return registry.put(key, value, revision)
      },
    })
  const a = new Membership(registryOf('a'), clock, node('a'), { hasNoSubscriber, greet })
  const b = new Membership(registryOf('b'), clock, node('b'), { hasNoSubscriber, greet })
  await a.start(async () => {})
  const joined = b.start(async () => {})
  await clock.advance(2000)
  await joined
  const lives = () => a.members('shards').some(({ id }) => id === 'b')
  t.ok(lives())
  return { clock, registry, a, b, silent, lives }
}

t.test(
  'a silent node without responders is dead earlier, but never while it considers itself alive',
  async (t) => {
    for (const gone of [true, false]) {
      const asked: string[] = []
      const { clock, b, silent, lives } = await pair(async (id) => {
        asked.push(id)
        return gone
      })
      t.same(asked, [], 'a node that renews its record is not probed')
      silent.add('b')
      const from = clock.elapsed()
      while (lives()) {
        await clock.advance(10)
        t.ok(lives() || !b.fresh(), 'a node that is judged knows that it may be')
      }
      const took = clock.elapsed() - from
      if (gone) t.ok(took <= 1700, `dead after ${took} ms`)
      else t.ok(took >= 1900, `given its whole lease: ${took} ms`)
      t.ok(asked.length > 0 && asked.every((id) => id === 'b'))
      silent.clear()
      await clock.advance(1000)
      t.ok(lives(), 'it is alive again as soon as it renews')
    }
  },
)

t.test(
  'a joining node serves once the others know it, and never while another considers itself alone',
  async (t) => {
    for (const [answers, within] of [
      ['all', 0],
      ['none', 2000],
    ] as const) {
      const clock = new ManualClock()
      const registry = new MemoryRegistry()
      const hasNoSubscriber = async () => false
      const a = new Membership(registry, clock, node('a'), {
        hasNoSubscriber,
        greet: async () => false,
      })
      await a.start(async () => {})
      const b = new Membership(registry, clock, node('b'), {
        hasNoSubscriber,
        greet: async (id) => {
          t.equal(id, 'a')
          if (answers === 'all') a.noteJoin()
          return answers === 'all'
        },
      })
      let joined = false
      const from = clock.elapsed()
      const starting = b
        .start(async () => {})
        .then(() => {
          joined = true
        })
      await settleAll()
      // From here on, reads from the registry never complete, as under heavy load.
      registry.list = () => new Promise(() => {})
      while (!joined) {
        if (answers === 'none' && clock.elapsed() - from < 1700)
          t.ok(a.alone(), 'its belief lasts for a while')
        await clock.advance(100)
      }
      await starting
      t.notOk(a.alone(), `nobody is alone any more when the other one serves, ${answers} answering`)
      t.ok(clock.elapsed() - from <= within + 100, `after ${clock.elapsed() - from} ms`)
    }
  },
)

t.test(
  'a node of an older release is not considered dead because it has no responder',
  async (t) => {
    const clock = new ManualClock()
    const registry = new MemoryRegistry()
    registry.values.set('node.a', {
      value: JSON.stringify({ id: 'a', roles: ['shards'], beat: 1 }),
      revision: 1000,
    })
    const b = new Membership(registry, clock, node('b'), {
      hasNoSubscriber: async () => true,
      greet: async () => true,
    })
    let joined = false
    void b
      .start(async () => {})
      .then(() => {
        joined = true
      })
    await clock.advance(1900)
    t.notOk(joined)
    await clock.advance(200)
    t.ok(joined)
  },
)

t.test(
  'slow registry reads do not make a node stale; after a pause it reads before it is fresh again',
  async (t) => {
    const { clock, a, b, silent, registry } = await pair(async () => false)
    let looked = () => {}
    registry.list = ((list) => async (prefix: string) => {
      await new Promise<void>((done) => {
        looked = done
      })
      return list(prefix)
    })(registry.list.bind(registry))
    for (let i = 0; i < 50; i++) {
      await clock.advance(100)
      t.ok(b.fresh() && a.fresh(), 'a look takes five seconds')
    }
    silent.add('b')
    await clock.advance(1500)
    t.notOk(b.fresh())
    silent.clear()
    await clock.advance(1000)
    t.notOk(b.fresh(), 'it renews again, but knows nothing yet')
    for (let looks = 0; looks < 6; looks++) {
      looked()
      await clock.advance(500)
    }
    t.ok(b.fresh())
  },
)

t.test('a node that leaves during a renewal has left', async (t) => {
  const { clock, a, b, registry } = await pair(async () => false)
  let stored: (() => void) | undefined
  const put = registry.put.bind(registry)
  registry.put = async (key, value, revision) => {
    if (key === 'node.b' && !stored)
      await new Promise<void>((done) => {
        stored = done
      })
    return put(key, value, revision)
  }
  await clock.advance(400)
  const left = b.stop()
  await settleAll()
  stored?.()
  await left
  await settleAll()
  await clock.advance(400)
  t.same(
    a.members('shards').map(({ id }) => id),
    ['a'],
  )
})

t.test(
  'a claim on a node that just renewed waits until that node no longer considers itself alive',
  async (t) => {
    const { clock, a, b, silent } = await pair(async () => true)
    const waits = async () => {
      const from = clock.elapsed()
      let over = false
      void a.waitUntilStale('b').then(() => {
        over = true
      })
      for (await clock.advance(0); !over; ) await clock.advance(10)
      return clock.elapsed() - from
    }
    silent.add('b')
    await clock.advance(3000)
    t.equal(await waits(), 0, 'no wait for a dead node')
    silent.clear()
    await clock.advance(450)
    t.ok(b.fresh())
    silent.add('b')
    t.ok((await waits()) > 1100)
    t.notOk(b.fresh())
    t.equal(await waits(), 0)
    t.equal(await a.waitUntilStale('unheard of'), undefined)
  },
)

t.test('a format is read by all only if every live node announces it', async (t) => {
  const clock = new ManualClock()
  const registry = new MemoryRegistry()
  const a = new Membership(registry, clock, node('a'))
  await a.start(async () => {})
  t.ok(a.allRead(2), 'alone')
  let beat = 0
  let revision = 0
  const renew = async (record: object) => {
    const value = JSON.stringify({ ...node('old'), beat: ++beat, ...record })
    revision = (await registry.put('node.old', value, revision)) ?? revision
  }
  await renew({})
  await a.refresh()
  t.notOk(a.allRead(2), 'a node of an older release announces nothing')
  t.ok(a.allRead(1))
  await renew({ reads: 2 })
  await a.refresh()
  t.ok(a.allRead(2), 'it was upgraded')
  await renew({})
  await a.refresh()
  t.notOk(a.allRead(2), 'it was downgraded')
  await clock.advance(60_000)
  t.ok(a.allRead(2), 'it is dead')
  await a.stop()
})
