/**
 * Leases that a worker session has from an earlier connection, and steps of the system clock, which
 * affect neither leases nor demand.
 */
import t from 'tap'
import { refuse } from '../../../protocol/errors.ts'
import { hand, header, leased, scene, settle } from './workers.ts'

t.test('a gateway whose connection was replaced elsewhere expires no leases', async (t) => {
  const at = scene()
  at.on['worker.register'] = ({ input }) => ({
    registration: { ...(input as object), session: 'wst_1', generation: 2, connected_at: 0 },
    resumed: true,
    draining: false,
  })
  at.leases = { wst_1: [{ job_id: header(1).id, queue: 'default' }] }
  await at.worker({ worker_session_token: 'wst_x' })
  at.current = false
  await at.clock.advance(100_000)
  t.same(at.named('queue.expire'), [])
})

t.test(
  'a lease from before the connection expires at the queue after its duration without heartbeats',
  async (t) => {
    const at = scene()
    const silent = header(1)
    const alive = header(2)
    at.on['worker.register'] = ({ input }) => ({
      registration: { ...(input as object), session: 'wst_1', generation: 2, connected_at: 0 },
      resumed: true,
      draining: false,
    })
    at.leases = {
      wst_1: [
        { job_id: silent.id, queue: 'default' },
        { job_id: alive.id, queue: 'default' },
      ],
    }
    const worker = await at.worker({ worker_session_token: 'wst_x' })
    for (let passed = 0; passed < 80; passed += 20) {
      t.same(at.named('queue.expire'), [], `${passed} s after the connection`)
      await at.clock.advance(20_000)
      // The queue is unavailable, so it does not answer the heartbeat. The heartbeat nevertheless
      // shows that the worker has the job.
      at.on['queue.heartbeat'] = () => refuse('service_unavailable')
      await worker.say({
        type: 'job.heartbeat',
        job_id: alive.id,
        lease_token: leased(alive).lease_token,
      })
    }
    t.match(at.named('queue.expire'), [
      { id: '1.default', input: { session: 'wst_1', job_id: silent.id } },
    ])
    t.equal(at.named('queue.expire').length, 1)
  },
)

t.test('after a session resumes, jobs that the worker never received are requeued', async (t) => {
  const at = scene()
  at.on['worker.register'] = ({ input }) => ({
    registration: { ...(input as object), session: 'wst_1', generation: 2, connected_at: 0 },
    resumed: true,
    draining: false,
  })
  const [held, lost, ended] = [leased(header(1)), leased(header(2)), leased(header(3))]
  const items = [held, lost, ended].map(({ id, queue }) => ({ job_id: id, queue }))
  at.leases = { wst_1: items }
  at.granted = [held, lost].map(({ id, lease_token }) => ({ job_id: id, lease_token }))
  const slots = async (leases: string[] | undefined) => {
    const worker = await at.worker({ worker_session_token: 'wst_x', ...(leases && { leases }) })
    await worker.say({ type: 'jobs.claim', available_slots: 4 })
    return at.offer([4, 5, 6, 7].map((n) => header(n)))?.takes.length
  }
  t.equal(await slots(undefined), 1, 'a worker that lists no leases may hold all three')
  t.same(at.named('queue.release'), [])
  at.granted = refuse('service_unavailable')
  t.equal(await slots([held.lease_token]), 1, 'where the queue does not answer, all three count')
  t.same(at.named('queue.release'), [])
  at.granted = [held, lost].map(({ id, lease_token }) => ({ job_id: id, lease_token }))
  t.equal(await slots([held.lease_token]), 3, 'one lease is held')
  t.match(at.named('queue.release'), [
    { id: '2.default', input: { job_id: lost.id, lease_token: lost.lease_token } },
  ])
  t.equal(at.named('queue.release').length, 1)
})

t.test('after the connection has ended, the end of the last lease is registered', async (t) => {
  const at = scene()
  const worker = await at.worker()
  await worker.say({ type: 'jobs.claim', available_slots: 2 })
  await hand(at, [header(1), header(2)])
  await at.clock.advance(5)
  const decisions: (() => void)[] = []
  at.on['queue.report'] = () =>
    new Promise((resolve) => decisions.push(() => resolve({ outcome: 'accepted' })))
  for (const { id, lease_token } of [1, 2].map((n) => leased(header(n))))
    await worker.say({ type: 'job.report', job_id: id, lease_token })
  worker.connection.ended()
  const leases = async () => {
    await settle()
    return at.named('worker.closed').map(({ input }) => (input as { leases: number }).leases)
  }
  t.same(await leases(), [2], 'no report is decided')
  decisions[0]?.()
  t.same(await leases(), [2], 'one report is decided')
  decisions[1]?.()
  t.same(await leases(), [2, 0])
})

t.test(
  'a heartbeat that was sent before the end of the connection can end the lease',
  async (t) => {
    const at = scene()
    const worker = await at.worker()
    await worker.say({ type: 'jobs.claim', available_slots: 1 })
    await hand(at, [header(1)])
    await at.clock.advance(5)
    let answer = (_: object) => {}
    at.on['queue.heartbeat'] = () =>
      new Promise((resolve) => {
        answer = resolve
      })
    const { id, lease_token } = leased(header(1))
    await worker.say({ type: 'job.heartbeat', job_id: id, lease_token })
    worker.connection.ended()
    answer({ alive: false })
    await settle()
    t.match(at.named('worker.closed'), [{ input: { leases: 1 } }, { input: { leases: 0 } }])
  },
)

t.test(
  'after the system clock was set back, demand is announced and slots become free',
  async (t) => {
    const at = scene()
    at.clock.offset = 3_600_000
    const worker = await at.worker({ concurrency_limit: 1 })
    await worker.say({ type: 'jobs.claim', available_slots: 1 })
    t.equal(at.offer([header(1)])?.takes.length, 1)
    const before = at.demands
    at.clock.offset = 0
    await worker.say({ type: 'keepalive' })
    t.equal(worker.code, undefined, 'the frames before the step do not count as a flood')
    await at.clock.advance(5000)
    t.equal(at.demands, before + 1)
    t.equal(at.offer([header(2)])?.takes.length, 1)
  },
)

t.test('a step of the system clock ends no lease of a connected worker', async (t) => {
  const at = scene()
  const worker = await at.worker({ concurrency_limit: 1 })
  await worker.say({ type: 'jobs.claim', available_slots: 1 })
  await hand(at, [header(1)])
  at.clock.offset = 3_600_000
  await at.clock.advance(10_000)
  t.same(at.named('queue.expire'), [])
  t.equal(at.offer([header(2)]), undefined, 'the slot is still in use')
})
