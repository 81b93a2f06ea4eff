/** The behavior of a worker with jobs: claiming, running, renewing, cancelling, reporting. */
import { inspect } from 'node:util'
import t from 'tap'
import { deferred, jobOf, settled, stand } from './stand.ts'

t.test('registers first, with its filters, and claims as soon as it is registered', async (t) => {
  const { worker, peer, states } = stand({
    url: 'https://a.test/',
    project: 'pay ments',
    concurrency: 3,
    queues: ['mail'],
    name: 'mailer',
    version: '2',
    actions: { send: () => ({}), print: () => '' },
  })
  const started = worker.start()
  t.equal(peer().url, 'wss://a.test/v1/projects/pay%20ments/workers/socket')
  t.strictSame(peer().headers, { authorization: 'Bearer bat_k' })
  peer().accept()
  await started
  t.match(peer().sent, [
    {
      type: 'worker.register',
      worker_instance_id: 'box-1',
      concurrency_limit: 3,
      available_slots: 3,
      name: 'mailer',
      version: '2',
      queues: ['mail'],
      action_names: ['send', 'print'],
    },
    { type: 'jobs.claim', available_slots: 3 },
  ])
  t.notOk(
    'worker_session_token' in (peer().sent[0] ?? {}),
    'a first registration names no earlier session',
  )
  t.strictSame(states, ['connecting', 'registered'])
})

t.test('runs a job and reports its result; a result that is no object is wrapped', async (t) => {
  const { worker, peer, events } = stand({
    actions: {
      send: ({ to }, { job }) => ({ to, attempt: job.claim_attempt }),
      list: () => [1, 2],
      nothing: () => {},
    },
  })
  void worker.start()
  peer().accept()
  await peer().give(
    jobOf('send', { id: 'job_a', lease_token: 'lt_a', spec: { parameters: { to: 'x' } } }),
  )
  t.match(peer().last('job.report'), {
    job_id: 'job_a',
    lease_token: 'lt_a',
    status: 'completed',
    result: { to: 'x', attempt: 1 },
  })
  await peer().give(jobOf('list'))
  t.strictSame(peer().last('job.report').result, { output: [1, 2] })
  await peer().give(jobOf('nothing', { spec: { parameters: 'no object' } }))
  t.strictSame(peer().last('job.report').result, { output: null })
  t.strictSame(
    events.map(({ type }) => type),
    ['started', 'completed', 'started', 'completed', 'started', 'completed'],
  )
})

t.test('a thrown value that throws when it is read fails the job and frees its slot', async (t) => {
  const refuse = () => {
    throw new Error('trap')
  }
  const values: Record<string, unknown> = {
    inspected: { [inspect.custom]: refuse },
    message: Object.defineProperty(new Error(), 'message', { get: refuse }),
    proxy: new Proxy({}, { get: refuse, getPrototypeOf: refuse }),
    name: Object.assign(new Error('no route'), { name: Object.create(null) }),
  }
  for (const name of Object.keys(values)) {
    const { worker, peer } = stand({
      actions: {
        [name]: () => {
          throw values[name]
        },
      },
    })
    void worker.start()
    peer().accept()
    await peer().give(jobOf(name))
    t.match(peer().last('job.report'), {
      status: 'failed',
      error_type: 'Error',
      error_message: /cannot be read/,
    })
    t.equal(peer().last('jobs.claim').available_slots, 1)
  }
})

t.test('a thrown error whose name and message are not texts fails the job', async (t) => {
  const { worker, peer } = stand({
    actions: {
      work: () => {
        throw Object.assign(new Error(), { name: 5, message: ['no', 'route'] })
      },
    },
  })
  void worker.start()
  peer().accept()
  await peer().give(jobOf('work'))
  t.match(peer().last('job.report'), { error_type: '5', error_message: 'no,route' })
})

t.test('a message that is too large for a frame is shortened', async (t) => {
  const message = 'x'.repeat(20 * 1_048_576)
  const { worker, peer } = stand({
    actions: {
      text: () => Promise.reject(message),
      error: () => Promise.reject(new RangeError(message)),
    },
  })
  void worker.start()
  peer().accept()
  for (const [name, error_type] of [
    ['text', 'Error'],
    ['error', 'RangeError'],
  ] as const) {
    await peer().give(jobOf(name))
    const report = peer().last('job.report')
    t.equal(report.error_type, error_type)
    t.equal(report.error_message, 'x'.repeat(100_000))
  }
})

t.test('a thrown error fails the job with its name and message', async (t) => {
  class NoRoute extends Error {
    override name = 'NoRoute'
  }
  const { worker, peer } = stand({
    actions: {
      throws: () => {
        throw new NoRoute('no route to x')
      },
      text: async () => Promise.reject('plain words'),
      loop: () => {
        const a: Record<string, unknown> = {}
        a['a'] = a
        return a
      },
    },
  })
  void worker.start()
  peer().accept()
  await peer().give(jobOf('throws'))
  t.match(peer().last('job.report'), {
    status: 'failed',
    error_type: 'NoRoute',
    error_message: 'no route to x',
  })
  await peer().give(jobOf('text'))
  t.match(peer().last('job.report'), {
    status: 'failed',
    error_type: 'Error',
    error_message: 'plain words',
  })
  await peer().give(jobOf('loop'))
  t.match(
    peer().last('job.report'),
    { status: 'failed', error_type: 'TypeError' },
    'a result that is no JSON fails the job',
  )
})

t.test(
  'keeps one claim open: claims again after jobs, for a free slot, on a hint, and every 10 s',
  async (t) => {
    const work = deferred<void>()
    const { clock, worker, peer } = stand({ concurrency: 2, actions: { work: () => work.promise } })
    const claims = () =>
      peer()
        .all('jobs.claim')
        .map(({ available_slots }) => available_slots)
    void worker.start()
    peer().accept()
    peer().say({ type: 'work.available' })
    t.strictSame(claims(), [2], 'a hint adds no second claim')
    await peer().give(jobOf('work'))
    t.strictSame(claims(), [2, 1], 'slots are left, so it claims at once')
    await peer().give()
    t.strictSame(claims(), [2, 1], 'an empty answer is not asked again at once')
    peer().say({ type: 'work.available' })
    t.strictSame(claims(), [2, 1, 1])
    await peer().give(jobOf('work'))
    await clock.pass(15_000)
    t.strictSame(claims(), [2, 1, 1], 'without a free slot nothing is claimed')
    work.resolve()
    await settled()
    t.strictSame(claims(), [2, 1, 1, 1])
    t.ok(
      peer().sent.findIndex(({ type }) => type === 'job.report') <
        peer().sent.findLastIndex(({ type }) => type === 'jobs.claim'),
      'the report that frees the slot goes out before the claim',
    )
    await peer().give()
    await clock.pass(10_000)
    t.strictSame(claims(), [2, 1, 1, 1, 2])
    const { message_id } = peer().last('jobs.claim')
    peer().say({
      type: 'error',
      ...(message_id !== undefined && { message_id }),
      error: { code: 'temporarily_unavailable', message: 'later' },
    })
    await clock.pass(10_000)
    t.strictSame(
      claims(),
      [2, 1, 1, 1, 2, 2],
      'a refused claim is tried again at the next occasion',
    )
  },
)

t.test('a claim without an answer drops the connection', async (t) => {
  const { clock, worker, peers, peer } = stand({ actions: { work: () => 1 } })
  void worker.start()
  peer().accept('wst_1', 20)
  for (let s = 0; s < 39; s++) {
    peer().events.alive()
    await clock.pass(1000)
  }
  t.equal(peers.length, 1)
  await clock.pass(1500)
  t.equal(peers[0]?.closedWith, 'dropped', 'after twice the cadence')
  t.equal(peers.length, 2)
})

t.test("renews every lease at its job's heartbeat interval", async (t) => {
  const work = deferred<string>()
  const { clock, worker, peer, peers } = stand({
    concurrency: 2,
    actions: { work: () => work.promise },
  })
  void worker.start()
  peer().accept()
  await peer().give(
    jobOf('work', { id: 'job_slow', lease_token: 'lt_slow', heartbeat_cadence_seconds: 20 }),
    jobOf('work', { id: 'job_fast', lease_token: 'lt_fast', heartbeat_cadence_seconds: 5 }),
  )
  await clock.pass(20_000)
  const beats = peer().all('job.heartbeat')
  t.equal(
    beats.filter(({ job_id, lease_token }) => job_id === 'job_fast' && lease_token === 'lt_fast')
      .length,
    4,
  )
  t.equal(
    beats.filter(({ job_id, lease_token }) => job_id === 'job_slow' && lease_token === 'lt_slow')
      .length,
    1,
  )
  work.resolve('done')
  await clock.pass(100_000)
  t.equal(
    peers.flatMap((peer) => peer.all('job.heartbeat')).length,
    5,
    'a finished job has no heartbeat',
  )
})

t.test(
  'a cancel reaches the handler by frame and by heartbeat, and is reported as cancelled',
  async (t) => {
    const patient = (_: unknown, { signal }: { signal: AbortSignal }) =>
      new Promise((done) => signal.addEventListener('abort', () => done({ late: true })))
    const { clock, worker, peer, events } = stand({ concurrency: 3, actions: { patient } })
    void worker.start()
    peer().accept()
    const jobs = [jobOf('patient'), jobOf('patient'), jobOf('patient')]
    await peer().give(...jobs)
    const [byFrame = '', byAck = '', byDirective = ''] = jobs.map(({ id }) => id)
    peer().say({
      type: 'job.cancel',
      job_id: byFrame,
      reason: 'run cancelled',
      requested_at: '2031-02-03T04:05:06.000Z',
    })
    await settled()
    t.match(peer().last('job.report'), {
      job_id: byFrame,
      status: 'cancelled',
      error_type: 'Cancelled',
      error_message: 'run cancelled',
    })
    peer().acknowledge()
    await clock.pass(20_000)
    const beat = (id: string) =>
      peer()
        .all('job.heartbeat')
        .find(({ job_id }) => job_id === id)?.message_id ?? ''
    peer().say({
      type: 'job.heartbeat.ack',
      message_id: beat(byAck),
      job_id: byAck,
      cancel: { job_id: byAck, reason: 'enough' },
    })
    peer().say({
      type: 'job.heartbeat.ack',
      message_id: beat(byDirective),
      job_id: byDirective,
      directives: { should_cancel: true },
    })
    await settled()
    t.match(peer().all('job.report').slice(1), [
      { job_id: byAck, status: 'cancelled', error_message: 'enough' },
      { job_id: byDirective, status: 'cancelled' },
    ])
    t.equal(events.filter(({ type }) => type === 'cancelled').length, 3)
  },
)

t.test('a lost lease aborts the handler, and nothing is reported', async (t) => {
  let reason = ''
  const { clock, worker, peer, events } = stand({
    actions: {
      work: (_, { signal }) =>
        new Promise((done) =>
          signal.addEventListener('abort', () => {
            reason = (signal.reason as Error).message
            done(1)
          }),
        ),
    },
  })
  void worker.start()
  peer().accept()
  const job = jobOf('work')
  await peer().give(job)
  await clock.pass(20_000)
  const { message_id } = peer().last('job.heartbeat')
  peer().say({
    type: 'job.heartbeat.ack',
    ...(message_id !== undefined && { message_id }),
    job_id: job.id,
    cancel: { job_id: job.id, reason: 'lease_lost' },
    directives: { should_cancel: true },
  })
  await settled()
  t.equal(reason, 'lease_lost')
  t.strictSame(peer().all('job.report'), [])
  t.match(events.at(-1), { type: 'lost' })
  t.ok(peer().all('jobs.claim').length > 1, 'the slot is used again')
})

t.test('a job that arrives again under a new lease replaces the old one', async (t) => {
  const first = deferred<string>()
  const second = deferred<string>()
  const { worker, peer } = stand({
    concurrency: 2,
    actions: { work: (_, { job }) => (job.claim_attempt === 1 ? first : second).promise },
  })
  void worker.start()
  peer().accept()
  await peer().give(jobOf('work', { id: 'job_x', lease_token: 'lt_old', claim_attempt: 1 }))
  await peer().give(
    jobOf('work', { id: 'job_x', lease_token: 'lt_old', claim_attempt: 1 }),
    jobOf('work', { id: 'job_x', lease_token: 'lt_new', claim_attempt: 2 }),
  )
  first.resolve('old')
  second.resolve('new')
  await settled()
  t.match(peer().all('job.report'), [{ lease_token: 'lt_new', result: { output: 'new' } }])
  t.equal(peer().all('job.report').length, 1)
})

t.test('jobs beyond its capacity or its actions are returned at once', async (t) => {
  const { worker, peer } = stand({ actions: { work: () => new Promise(() => {}) } })
  void worker.start()
  peer().accept()
  await peer().give(jobOf('work'), jobOf('work', { id: 'job_over' }))
  t.match(peer().all('job.report'), [
    { job_id: 'job_over', status: 'failed', error_type: 'WorkerOverCapacity' },
  ])
  const other = stand({ actions: { work: () => 1 } })
  void other.worker.start()
  other.peer().accept()
  await other.peer().give(jobOf('toString'))
  t.match(other.peer().last('job.report'), { status: 'failed', error_type: 'UnknownAction' })
})
