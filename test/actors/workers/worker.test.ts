/** A worker instance: registration, takeover of its session, liveness and draining. */
import t from 'tap'
import { type WorkerState, workerActor } from '../../../actors/workers/worker.ts'
import type { WorkerCommands } from '../../../protocol/workers/commands.ts'
import { defaultTiming } from '../../../protocol/workers/timing.ts'
import { Stage, types } from '../support/stage.ts'

type Drain = {
  'worker.drain': {
    input: { project: string; worker_instance_id: string }
    reply: { worker_instance_id: string; state: string }
  }
}
class Entry extends Stage<WorkerState, WorkerCommands & Drain> {
  constructor() {
    super(workerActor(defaultTiming), { project: 'prj_1', kind: 'worker', id: 'wrk_1' })
  }
  /** Registers a process. A new session has the id `s<n>` and the token hash `h<n>`. */
  register(n: number, given?: string, gateway = 'g1') {
    return this.run('worker.register', {
      instance: 'box',
      session: `s${n}`,
      token_hash: `h${n}`,
      gateway,
      principal_id: 'svc_1',
      concurrency_limit: 4,
      capabilities: [],
      queues: [],
      action_names: [],
      models: [],
      ...(given !== undefined && { given_token_hash: given }),
    })
  }
  seen(leases = 0, session = 's1', generation = 1) {
    return this.run('worker.seen', { session, generation, leases })
  }
  closed(leases = 0, session = 's1', generation = 1) {
    return this.run('worker.closed', { session, generation, leases })
  }
  drain() {
    return this.run('worker.drain', { project: 'prj_1', worker_instance_id: 'box' })
  }
}

t.test('the first registration creates a session', async (t) => {
  const entry = new Entry()
  const done = entry.register(1)
  t.match(done.reply, {
    resumed: false,
    draining: false,
    registration: {
      session: 's1',
      token_hash: 'h1',
      generation: 1,
      gateway: 'g1',
      connected_at: 1_000_000,
    },
  })
  t.notOk(done.reply.replaced)
  t.same([types(done), done.effects], [['worker.registered'], []])
})

t.test(
  'a process with its token resumes its session, and its older connection is closed',
  async (t) => {
    for (const gateway of ['g1', 'g2']) {
      const entry = new Entry()
      entry.register(1)
      entry.seen(3)
      const done = entry.register(2, 'h1', gateway)
      t.match(done.reply, {
        resumed: true,
        replaced: { session: 's1', gateway: 'g1' },
        registration: { session: 's1', token_hash: 'h1', generation: 2, gateway },
      })
      t.same(done.effects, [
        {
          push: {
            gateway: 'g1',
            message: { type: 'supersede', project: 'prj_1', session: 's1', generation: 2 },
          },
        },
      ])
      t.same(
        entry.seen(0, 's1', 1).reply,
        { current: false },
        'the older connection learns that it does not count',
      )
      t.same(entry.closed(0, 's1', 1).events, [], 'and its end means nothing')
      t.same(entry.seen(0, 's1', 2).reply, { current: true })
    }
  },
)

t.test('a token resumes the session however long the process was away', async (t) => {
  const entry = new Entry()
  entry.register(1)
  entry.closed(2)
  t.same(entry.pass(100_000).map(types), [['worker.stale']])
  const done = entry.register(2, 'h1')
  t.match(done.reply, { resumed: true, registration: { session: 's1', generation: 2 } })
  t.same(done.effects, [], 'there is no older connection to close')
})

t.test('another process with the same name is refused while the first is alive', async (t) => {
  const entry = new Entry()
  entry.register(1)
  for (const given of [undefined, 'h2', 'h9']) {
    t.match(entry.register(2, given).refusal, {
      refused: 'conflict',
      details: { worker_instance_id: 'box', project: 'prj_1' },
      message: /box.*prj_1/,
    })
  }
  entry.at += 50_000
  entry.seen(1)
  entry.at += 60_000
  t.ok(entry.register(2).refusal, 'silent for exactly the takeover window')
  entry.at += 1
  const done = entry.register(2, 'h9')
  t.match(done.reply, {
    resumed: false,
    replaced: { session: 's1', gateway: 'g1' },
    registration: { session: 's2', generation: 2 },
  })
  t.match(done.effects, [
    { push: { message: { type: 'supersede', session: 's1', generation: 2 } } },
  ])
  t.ok(entry.register(1, 'h1').refusal, 'the old token is worth nothing now')
})

t.test(
  'a new process replaces an instance that left without leases at once, others later',
  async (t) => {
    const entry = new Entry()
    entry.register(1)
    entry.closed(0)
    t.match(entry.register(2).reply, { resumed: false, registration: { session: 's2' } })
    entry.seen(2, 's2', 2)
    entry.closed(2, 's2', 2)
    t.ok(entry.register(3).refusal, 'it may come back for its leases')
    entry.at += 60_001
    t.match(entry.register(3).reply, {
      registration: { session: 's3', generation: 3 },
      replaced: { session: 's2' },
    })
  },
)

t.test('an instance whose last lease ends after its connection is replaced at once', async (t) => {
  const entry = new Entry()
  entry.register(1)
  entry.closed(2)
  t.same(entry.closed(2).events, [], 'a repeat')
  t.same(entry.closed(3).events, [], 'an outdated number')
  t.ok(entry.register(2).refusal, 'the leases may be lost')
  t.same(entry.closed(0, 's1', 0).events, [], 'another connection')
  const ended = entry.closed(0)
  t.same([types(ended), ended.effects], [['worker.seen'], []])
  t.same(entry.closed(2).events, [], 'the first report, delivered late')
  t.match(entry.register(2).reply, {
    resumed: false,
    registration: { session: 's2', generation: 2 },
    replaced: { session: 's1' },
  })
})

t.test('the end of a lease leaves a stale instance stale', async (t) => {
  const entry = new Entry()
  entry.register(1)
  entry.closed(1)
  t.same(entry.pass(90).map(types), [['worker.stale']])
  t.same(entry.closed(0).events, [])
})

t.test('a heartbeat is journaled only if the worker was considered stale', async (t) => {
  const entry = new Entry()
  entry.register(1)
  for (let n = 0; n < 10; n++) {
    t.same(entry.pass(20), [], 'never stale')
    const done = entry.seen()
    t.same([done.events, done.soft.length], [[], 1])
  }
  t.same(entry.pass(89), [])
  t.same(entry.pass(1).map(types), [['worker.stale']])
  t.equal(entry.deadline(), undefined, 'reported once')
  t.same(types(entry.seen()), ['worker.seen'])
  t.equal(entry.deadline(), entry.at + 90_000)
})

t.test('a drain is forwarded, survives a reconnect, and ends with the session', async (t) => {
  const entry = new Entry()
  t.match(entry.drain().refusal, { refused: 'not_found' })
  entry.register(1)
  const done = entry.drain()
  t.same(done.reply, { worker_instance_id: 'box', state: 'draining' })
  t.same(done.effects, [
    { push: { gateway: 'g1', message: { type: 'drain', project: 'prj_1', session: 's1' } } },
  ])
  const again = entry.register(2, 'h1', 'g2')
  t.equal(again.reply.draining, true)
  entry.run('worker.drained', { session: 's1' })
  entry.closed(0, 's1', 2)
  t.same(entry.drain().effects, [], 'no worker is connected')
  const next = entry.register(3)
  t.same([next.reply.draining, types(next)], [false, ['worker.drain_cleared', 'worker.registered']])
  t.equal(entry.register(4, 'h3').reply.draining, false)
})

t.test('a worker can report that it drains', async (t) => {
  const entry = new Entry()
  entry.register(1)
  t.same(types(entry.run('worker.drained', { session: 's0' })), [])
  t.same(types(entry.run('worker.drained', { session: 's1' })), ['worker.draining'])
  t.same(types(entry.run('worker.drained', { session: 's1' })), [], 'a repeat')
  t.equal(entry.register(2, 'h1').reply.draining, true)
})

t.test(
  'a new owner treats a connected worker as just seen, and a stale one as stale',
  async (t) => {
    const entry = new Entry()
    entry.register(1)
    entry.at += 80_000
    entry.recover()
    t.ok(entry.register(2).refusal)
    t.equal(entry.deadline(), entry.at + 90_000)
    entry.pass(90)
    entry.recover()
    t.match(entry.register(2).reply, { resumed: false })
  },
)

t.test('a change of what a connected worker accepts is registered', async (t) => {
  const entry = new Entry()
  entry.register(1)
  const says = (action_names: string[], generation = 1) =>
    entry.run('worker.seen', {
      session: 's1',
      generation,
      leases: 2,
      takes: { queues: [], action_names, models: [] },
    })
  const done = says(['a'])
  t.same([types(done), done.effects], [['worker.registered', 'worker.seen'], []])
  t.match(done.events[0], {
    registration: { session: 's1', generation: 1, action_names: ['a'], connected_at: 1_000_000 },
  })
  t.same(says(['a']).events, [], 'a repeat')
  t.same(says(['b'], 0).reply, { current: false })
  t.equal(entry.state.leases, 2)
  entry.closed(2)
  t.same(says(['b']).events, [])
  t.equal(entry.state.connected, false)
})
