/**
 * A worker instance that serves an environment: when the environment is notified that a session has
 * ended, and how an environment is attached to a session.
 */
import t from 'tap'
import { type WorkerState, workerActor } from '../../../actors/workers/worker.ts'
import type { WorkerCommands } from '../../../protocol/workers/commands.ts'
import { defaultTiming } from '../../../protocol/workers/timing.ts'
import { Stage, types } from '../support/stage.ts'

const ENV = 'env_01ARZ3NDEKTSV4RRFFQ69G5FB1'
const OTHER = 'env_01ARZ3NDEKTSV4RRFFQ69G5FB2'
class Entry extends Stage<WorkerState, WorkerCommands> {
  constructor() {
    super(workerActor(defaultTiming), { project: 'prj_1', kind: 'worker', id: 'wrk_1' })
  }
  /** Registers a process with the session `s<n>` and the token hash `h<n>`. */
  register(n: number, environment_id?: string, given?: string) {
    return this.run('worker.register', {
      instance: 'box',
      session: `s${n}`,
      token_hash: `h${n}`,
      gateway: 'g1',
      principal_id: 'svc_1',
      concurrency_limit: 4,
      capabilities: [],
      queues: [],
      action_names: [],
      models: [],
      ...(environment_id !== undefined && { environment_id }),
      ...(given !== undefined && { given_token_hash: given }),
    })
  }
  closed(leases = 0, session = 's1', generation = 1) {
    return this.run('worker.closed', { session, generation, leases })
  }
  attach(environment_id: string, session = 's1', more: { replaces?: string } = {}) {
    return this.run('worker.attach', { session, environment_id, ...more })
  }
}
const gone = (session: string, id = ENV, drained = false) => ({
  tell: {
    to: { kind: 'environment', id },
    name: 'environment.worker_gone',
    input: { session, ...(drained && { drained }) },
  },
})
const told = ({ effects = [] }: { effects?: readonly object[] } = {}) =>
  effects.filter((effect) => 'tell' in effect)
const supersede = (generation: number) => ({
  push: {
    gateway: 'g1',
    message: { type: 'supersede', project: 'prj_1', session: 's1', generation },
  },
})

t.test('an environment is notified once its worker is silent for 90 s', async (t) => {
  const entry = new Entry()
  entry.register(1, ENV)
  t.same(entry.pass(89), [])
  const [stale, ...rest] = entry.pass(1)
  t.strictSame(stale?.effects, [gone('s1'), supersede(2)], 'an open connection must register again')
  t.same(rest, [])
  const again = entry.register(2, ENV, 'h1')
  t.equal(again.reply.registration.session, 's1')
  t.notMatch(again.effects, [gone('s1')], 'not twice')
})

t.test('a lost connection alone does not end the session', async (t) => {
  const entry = new Entry()
  entry.register(1, ENV)
  t.same(entry.closed(1).effects, [])
  const again = entry.register(2, ENV, 'h1')
  t.equal(again.reply.registration.session, 's1')
  t.same(again.effects, [])
  entry.closed(1, 's1', 2)
  t.strictSame(entry.pass(90)[0]?.effects, [gone('s1')])
})

t.test('a worker that has drained and left ends its session', async (t) => {
  const entry = new Entry()
  entry.register(1, ENV)
  entry.run('worker.drained', { session: 's1' })
  t.strictSame(entry.closed().effects, [gone('s1', ENV, true)])
  t.same(entry.pass(100)[0]?.effects, [], 'not twice')
})
t.test('a draining worker with jobs may come back', async (t) => {
  const entry = new Entry()
  entry.register(1, ENV)
  entry.run('worker.drained', { session: 's1' })
  t.same(entry.closed(1).effects, [])
})
t.test('a drained worker ends its session when its last report is decided', async (t) => {
  const entry = new Entry()
  entry.register(1, ENV)
  entry.run('worker.drained', { session: 's1' })
  entry.closed(2)
  t.same(entry.closed(1).effects, [], 'one lease is left')
  const ended = entry.closed(0)
  t.same(types(ended), ['worker.seen', 'worker.disconnected'])
  t.strictSame(ended.effects, [gone('s1', ENV, true)])
  t.same(entry.closed(0).effects, [], 'not twice')
  t.same(entry.pass(100)[0]?.effects, [], 'not twice')
})

t.test('the next session of the instance replaces the one before', async (t) => {
  const same = new Entry()
  same.register(1, ENV)
  same.closed()
  t.same(told(same.register(2, ENV)), [], 'the gateway notifies the environment of the session')
  const other = new Entry()
  other.register(1, ENV)
  other.closed()
  t.strictSame(told(other.register(2, OTHER)), [gone('s1')])
  const none = new Entry()
  none.register(1, ENV)
  none.closed()
  t.strictSame(told(none.register(2)), [gone('s1')])
})

t.test('labels that workers choose are no environments', async (t) => {
  const entry = new Entry()
  entry.register(1, 'gpu-box')
  t.same(entry.pass(100).map(types), [['worker.stale']])
  t.same(told(entry.register(2)), [])
})

t.test('an attached environment stays with the session until it ends', async (t) => {
  const entry = new Entry()
  entry.register(1)
  const done = entry.attach(ENV)
  t.strictSame(done.effects, [
    {
      push: {
        gateway: 'g1',
        message: { type: 'attach', project: 'prj_1', session: 's1', environment_id: ENV },
      },
    },
  ])
  t.match(entry.ask('registration', {}), { environment_id: ENV, session: 's1' })
  t.same(types(entry.attach(ENV)), [], 'a repeat changes nothing')
  t.match(entry.attach(OTHER).refusal, { refused: 'conflict' })
  entry.closed(1)
  t.equal(entry.ask('registration', {}), null, 'not while it is not connected')
  const again = entry.register(2, undefined, 'h1')
  t.match(again.reply.registration, { environment_id: ENV, attached: true })
  t.same(told(again), [])
  t.strictSame(entry.pass(90)[0]?.effects, [gone('s1'), supersede(3)])
  const late = entry.register(3, undefined, 'h1')
  t.equal(late.reply.registration.session, 's1')
  t.notOk(late.reply.registration.environment_id, 'it must be attached again')
  t.same(told(late), [])
  t.same(types(entry.attach(ENV)), ['worker.attached'])
})

t.test('an attachment replaces only the named, destroyed environment', async (t) => {
  const entry = new Entry()
  entry.register(1)
  entry.attach(ENV)
  const refused = entry.attach(OTHER, 's1', { replaces: 'env_01CCCCCCCCCCCCCCCCCCCCCC0C' })
  t.match(refused.refusal, { refused: 'conflict', details: { environment_id: ENV } })
  const done = entry.attach(OTHER, 's1', { replaces: ENV })
  t.same(types(done), ['worker.attached'])
  t.match(done.effects, [{ push: { message: { type: 'attach', environment_id: OTHER } } }])
  t.match(entry.ask('registration', {}), { environment_id: OTHER, attached: true })
  entry.closed(1)
  const again = entry.register(2, undefined, 'h1')
  t.match(again.reply.registration, { environment_id: OTHER, attached: true })
})

t.test('only a connected session attaches an environment', async (t) => {
  const entry = new Entry()
  t.match(entry.attach(ENV).refusal, { refused: 'not_found' })
  entry.register(1)
  t.match(entry.attach(ENV, 's0').refusal, { refused: 'not_found' })
  entry.closed(1)
  t.match(entry.attach(ENV).refusal, { refused: 'not_found' })
  const labelled = new Entry()
  labelled.register(1, 'gpu-box')
  t.match(labelled.attach(ENV).refusal, { refused: 'conflict' })
})
