/** The behavior of a worker when its connection fails, when it is refused, and when it stops. */
import t from 'tap'
import { WorkerError } from '../../../client/worker/options.ts'
import { deferred, jobOf, settled, stand } from './stand.ts'

t.test(
  'jobs survive a lost connection: the worker registers again with its token, renews and reports',
  async (t) => {
    const work = deferred<string>()
    const { clock, worker, peers, peer, states } = stand({
      url: ['http://a.test', 'http://b.test'],
      concurrency: 2,
      actions: { work: () => work.promise },
    })
    void worker.start()
    peer().accept('wst_7')
    await peer().give(jobOf('work', { id: 'job_a', lease_token: 'lt_a' }))
    peer().events.closed(1012, 'restart')
    t.equal(states.at(-1), 'reconnecting')
    await clock.pass(100)
    t.strictSame(
      peers.map(({ url }) => url),
      [
        'ws://a.test/v1/projects/default/workers/socket',
        'ws://b.test/v1/projects/default/workers/socket',
      ],
    )
    peer().accept('wst_7')
    t.match(peer().sent, [
      {
        type: 'worker.register',
        worker_session_token: 'wst_7',
        available_slots: 1,
        leases: ['lt_a'],
      },
      { type: 'job.heartbeat', job_id: 'job_a', lease_token: 'lt_a' },
      { type: 'jobs.claim', available_slots: 1 },
    ])
    work.resolve('done')
    await settled()
    t.match(peer().last('job.report'), { job_id: 'job_a', result: { output: 'done' } })
    t.strictSame(states, ['connecting', 'registered', 'reconnecting', 'registered'])
  },
)

t.test(
  'a report is repeated after every registration and every 10 s, until it is acknowledged',
  async (t) => {
    const { clock, worker, peers, peer } = stand({ actions: { work: () => 1 } })
    void worker.start()
    peer().accept()
    await peer().give(jobOf('work', { id: 'job_a' }))
    const [first] = peer().all('job.report')
    await peer().give()
    await clock.pass(10_000)
    t.strictSame(
      peer().all('job.report'),
      [first, first],
      'the repeat is the same frame, with the same message id',
    )
    peer().events.closed(1006, '')
    await clock.pass(100)
    peer().accept()
    t.strictSame(peer().all('job.report'), [first])
    peer().say({
      type: 'job.report.ack',
      job_id: 'job_a',
      message_id: first?.message_id ?? '',
      duplicate: true,
    })
    await clock.pass(30_000)
    t.strictSame(peer().all('job.report'), [first])
    t.equal(peers.length, 2)
  },
)

t.test('a job that ends without a connection is reported on the next one', async (t) => {
  const work = deferred<string>()
  const { clock, worker, peer } = stand({ actions: { work: () => work.promise } })
  void worker.start()
  peer().accept()
  await peer().give(jobOf('work', { id: 'job_a' }))
  peer().events.closed(1006, '')
  work.resolve('late')
  await clock.pass(100)
  peer().accept()
  t.match(
    peer().sent.map(({ type }) => type),
    ['worker.register', 'job.report', 'jobs.claim'],
  )
})

t.test('a report that the service cannot accept is not repeated', async (t) => {
  const { clock, worker, peer } = stand({ actions: { work: () => 1 } })
  void worker.start()
  peer().accept()
  await peer().give(jobOf('work'))
  const { message_id } = peer().last('job.report')
  peer().say({
    type: 'error',
    ...(message_id !== undefined && { message_id }),
    error: { code: 'lease_lost', message: 'gone' },
  })
  await clock.pass(25_000)
  t.equal(peer().all('job.report').length, 1)
})

t.test('a report that still waits for a slow connection is not sent again', async (t) => {
  const { clock, worker, peer } = stand({ actions: { work: () => 1 } })
  void worker.start()
  peer().accept()
  peer().isSlow = true
  await peer().give(jobOf('work'))
  await clock.pass(25_000)
  t.equal(peer().all('job.report').length, 1)
  peer().isSlow = false
  await clock.pass(5000)
  t.equal(peer().all('job.report').length, 2)
})

t.test(
  'a claim whose answer was lost is repeated under its id, so that the same jobs arrive',
  async (t) => {
    const { clock, worker, peers, peer } = stand({ actions: { work: () => 1 } })
    void worker.start()
    peer().accept()
    peer().events.closed(1006, '')
    await clock.pass(100)
    peer().accept()
    t.equal(peers[1]?.last('jobs.claim').message_id, peers[0]?.last('jobs.claim').message_id)
    peer().events.closed(1006, '')
    await clock.pass(200)
    peer().accept('wst_other')
    t.not(
      peers[2]?.last('jobs.claim').message_id,
      peers[1]?.last('jobs.claim').message_id,
      'another session has nothing to repeat',
    )
  },
)

t.test(
  'pauses double from 100 ms to 10 s, and restart after a registration that lasted',
  async (t) => {
    const { clock, worker, peers, peer } = stand({ actions: {} })
    void worker.start()
    const waits: number[] = []
    const fail = async () => {
      const before = peers.length
      const since = clock.now()
      peer().events.refused(0, 'ECONNREFUSED')
      while (peers.length === before) await clock.pass(50)
      waits.push(clock.now() - since)
    }
    for (let i = 0; i < 9; i++) await fail()
    t.strictSame(waits, [100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000])
    peer().accept()
    await clock.pass(6000)
    peer().events.closed(1012, '')
    await clock.pass(100)
    t.equal(peers.length, 11)
  },
)

t.test(
  'a permanent refusal of the upgrade ends the worker; an overloaded service is retried',
  async (t) => {
    for (const status of [401, 403, 404]) {
      const { clock, worker, peers, peer } = stand({ actions: {} })
      const started = worker.start()
      peer().events.refused(status, '')
      await t.rejects(started, { name: 'WorkerError', code: 'refused' })
      t.match(await worker.ended, { reason: 'failed', error: WorkerError })
      await clock.pass(60_000)
      t.equal(peers.length, 1, `${status} is final`)
      t.equal(clock.timers, 0, 'nothing is left running')
    }
    for (const status of [429, 503, 502]) {
      const { clock, worker, peers, peer } = stand({ actions: {} })
      void worker.start()
      peer().events.refused(status, '')
      await clock.pass(100)
      t.equal(peers.length, 2, `${status} is not`)
    }
  },
)

t.test('an instance conflict and a revoked key end the worker with instructions', async (t) => {
  for (const code of ['worker_instance_conflict', 'invalid_actor'] as const) {
    const { clock, worker, peers, peer, states } = stand({
      actions: { work: () => new Promise(() => {}) },
    })
    const started = worker.start()
    if (code === 'invalid_actor') {
      peer().accept()
      await started
      await peer().give(jobOf('work'))
    } else peer().events.opened()
    peer().say({ type: 'error', error: { code, message: 'no' } })
    if (code === 'worker_instance_conflict')
      await t.rejects(started, { code, message: /unique name/ })
    t.match(await worker.ended, { reason: 'failed', error: { code } })
    await clock.pass(60_000)
    t.equal(peers.length, 1)
    t.equal(states.at(-1), 'ended')
    t.equal(clock.timers, 0)
  }
})

t.test('any other failure to register is retried on a new connection', async (t) => {
  const { clock, worker, peers, peer } = stand({ actions: {} })
  const started = worker.start()
  peer().events.opened()
  peer().say({ type: 'error', error: { code: 'register_failed', message: 'not now' } })
  await clock.pass(100)
  t.equal(peers.length, 2)
  peer().events.opened()
  for (let i = 0; i < 30; i++) {
    peer().events.alive()
    await clock.pass(1000)
  }
  await clock.pass(200)
  t.equal(peers.length, 3, 'also when no answer comes at all')
  peer().accept()
  await started
})

t.test('a silent connection is dropped after 65 s; pings keep an idle one', async (t) => {
  const { clock, worker, peers, peer } = stand({ actions: { work: () => new Promise(() => {}) } })
  void worker.start()
  peer().accept()
  await peer().give(jobOf('work'))
  for (let i = 0; i < 12; i++) {
    peer().events.alive()
    await clock.pass(10_000)
  }
  t.equal(peers.length, 1)
  t.equal(peer().pings, 6)
  await clock.pass(65_100)
  t.equal(peers.length, 2)
})

t.test('draining completes and reports running jobs, then closes with 1000', async (t) => {
  const work = deferred<string>()
  const { clock, worker, peer, states } = stand({
    concurrency: 2,
    actions: { work: () => work.promise },
  })
  void worker.start()
  peer().accept()
  await peer().give(jobOf('work'))
  const done = worker.drain()
  t.equal(peer().last('worker.draining').type, 'worker.draining')
  const claims = peer().all('jobs.claim').length
  await peer().give(jobOf('work', { id: 'job_late' }))
  t.match(
    peer().last('job.report'),
    { job_id: 'job_late', status: 'cancelled' },
    'a job already on its way is returned',
  )
  await clock.pass(12_000)
  work.resolve('done')
  await settled()
  t.equal(peer().closedWith, undefined, 'it stays until its reports are acknowledged')
  peer().acknowledge()
  t.strictSame(await done, { reason: 'drained' })
  t.equal(peer().closedWith, 1000)
  t.equal(peer().all('jobs.claim').length, claims)
  t.strictSame(states, ['connecting', 'registered', 'draining', 'ended'])
  t.equal(clock.timers, 0)
})

t.test('a job that arrives while an idle worker drains is returned, not dropped', async (t) => {
  const { clock, worker, peer } = stand({ actions: { work: () => 1 } })
  void worker.start()
  peer().accept()
  peer().answersDraining = false
  const done = worker.drain()
  await settled()
  t.equal(peer().closedWith, undefined, 'it waits until none can come any more')
  await peer().give(jobOf('work', { id: 'job_late' }))
  t.match(peer().last('job.report'), { job_id: 'job_late', status: 'cancelled' })
  peer().say({ type: 'worker.draining.ack' })
  t.equal(peer().closedWith, undefined)
  peer().acknowledge()
  t.strictSame(await done, { reason: 'drained' })
  t.equal(clock.timers, 0)

  const silent = stand({ actions: {} })
  void silent.worker.start()
  silent.peer().accept()
  silent.peer().answersDraining = false
  void silent.worker.drain()
  await silent.clock.pass(3100)
  t.strictSame(await silent.worker.ended, { reason: 'drained' }, 'and not for ever')
})

t.test('an operator can drain the worker', async (t) => {
  const { worker, peer } = stand({ actions: {} })
  void worker.start()
  peer().accept()
  peer().say({ type: 'worker.drain' })
  t.strictSame(await worker.ended, { reason: 'drained' })
})

t.test('stopping cancels running jobs, returns them, and takes at most 5 s', async (t) => {
  const { clock, worker, peer } = stand({
    concurrency: 2,
    actions: {
      kind: (_, { signal }) =>
        new Promise((_, fail) => signal.addEventListener('abort', () => fail(signal.reason))),
      deaf: () => new Promise(() => {}),
    },
  })
  void worker.start()
  peer().accept()
  await peer().give(jobOf('kind', { id: 'job_kind' }), jobOf('deaf', { id: 'job_deaf' }))
  const done = worker.stop()
  await settled()
  t.match(peer().all('job.report'), [
    { job_id: 'job_kind', status: 'cancelled', error_type: 'Cancelled' },
  ])
  await clock.pass(4000)
  t.match(peer().last('job.report'), { job_id: 'job_deaf', status: 'cancelled' })
  await clock.pass(1000)
  t.strictSame(await done, { reason: 'stopped' })
  t.equal(clock.timers, 0)
})

t.test('an abandoned worker stops its jobs and reports nothing', async (t) => {
  const { clock, worker, peer } = stand({
    actions: {
      kind: (_, { signal }) =>
        new Promise((_, fail) => signal.addEventListener('abort', () => fail(signal.reason))),
    },
  })
  void worker.start()
  peer().accept()
  const job = jobOf('kind')
  await peer().give(job)
  t.strictSame(await worker.abandon(), { reason: 'stopped' })
  await settled()
  t.strictSame(peer().all('job.report'), [])
  t.equal(clock.timers, 0)
})

t.test('a worker that never connected can be stopped', async (t) => {
  const { clock, worker, peer } = stand({ actions: {} })
  const started = worker.start()
  peer().events.refused(0, 'ECONNREFUSED')
  t.strictSame(await worker.stop(), { reason: 'stopped' })
  await t.rejects(started)
  t.equal(clock.timers, 0)
})

t.test('unreadable frames are logged, and a keepalive is not answered', async (t) => {
  const { worker, peer, lines } = stand({ actions: {} })
  void worker.start()
  peer().accept()
  const before = peer().sent.length
  peer().events.frame('{broken')
  peer().events.frame('[]')
  peer().events.frame('null')
  peer().events.frame('{"type":"something.new"}')
  peer().say({ type: 'keepalive', message_id: 'srv_1' })
  t.equal(peer().sent.length, before)
  t.equal(lines.length, 3)
})

t.test('a job that arrives again under the same lease does not run again', async (t) => {
  const runs: string[] = []
  const { worker, peer } = stand({ actions: { send: (_, { job }) => void runs.push(job.id) } })
  void worker.start()
  peer().accept()
  const job = jobOf('send', { id: 'job_a', lease_token: 'lt_a' })
  await peer().give(job)
  await peer().give(job)
  t.strictSame(runs, ['job_a'])
  t.equal(peer().all('job.report').length, 1)
  for (let n = 0; n < 1000; n++) await peer().give(jobOf('send', { lease_token: `lt_${n}` }))
  await peer().give(job)
  t.equal(runs.length, 1002, 'the number of remembered leases is limited')
})
