/**
 * The worker socket without a network: registration, frames, keepalive and credentials of a
 * connection.
 */
import t from 'tap'
import { refuse } from '../../../protocol/errors.ts'
import { header, leased, PROJECT, type Scene, scene, sessionOf, settle } from './workers.ts'

const heartbeat = {
  type: 'job.heartbeat',
  message_id: 'h',
  job_id: header(1).id,
  lease_token: leased(header(1)).lease_token,
}

t.test('registration', async (t) => {
  t.test(
    'worker.registered is the first frame, with the message id, a token and the timing',
    async (t) => {
      const at = scene()
      const worker = await at.worker({ queues: ['q'], capabilities: ['keep-warm:lifetime'] })
      const [first] = worker.frames
      t.match(first, {
        type: 'worker.registered',
        message_id: 'r',
        worker_session_token: /^wst_[0-9a-f]{48}$/,
        lease: { lease_duration_seconds: 60, heartbeat_cadence_seconds: 20 },
      })
      t.equal(worker.frames.length, 1)
      const [command] = at.named('worker.register')
      t.match(command, {
        project: PROJECT,
        kind: 'worker',
        id: at.world.id('worker', `${PROJECT}/box`),
        origin: { principal: { id: 'svc_1' }, credential: { id: 'key_1' } },
      })
      t.match(command?.input, {
        instance: 'box',
        gateway: 'gw1',
        principal_id: 'svc_1',
        concurrency_limit: 4,
        queues: ['q'],
        capabilities: ['keep-warm:lifetime'],
        token_hash: at.world.hash(first?.worker_session_token ?? ''),
      })
      t.notOk(Object.keys(Object(command?.input)).includes('given_token_hash'))
    },
  )

  t.test(
    'the concurrency limit is 1 by default; unknown members and nulls are accepted',
    async (t) => {
      const at = scene()
      const worker = await at.worker({
        concurrency_limit: null,
        worker_session_token: null,
        colour: 'blue',
      })
      t.same(worker.types, ['worker.registered'])
      t.match(at.named('worker.register')[0]?.input, { concurrency_limit: 1 })
    },
  )

  t.test('a conflict names the instance and the project, and closes with 4409', async (t) => {
    const at = scene()
    at.on['worker.register'] = () => refuse('conflict')
    const worker = await at.worker()
    t.match(worker.frames, [
      {
        type: 'error',
        message_id: 'r',
        error: {
          code: 'worker_instance_conflict',
          message: 'instance box is already connected to project demo',
        },
      },
    ])
    t.equal(worker.code, 4409)
  })

  t.test('any other refusal may be retried by the client; the connection closes', async (t) => {
    const at = scene()
    at.on['worker.register'] = () => refuse('service_unavailable')
    const worker = await at.worker()
    t.match(worker.frames, [{ error: { code: 'temporarily_unavailable' } }])
    t.equal(worker.code, 1011)
    at.on['worker.register'] = () => refuse('not_found')
    t.match((await at.worker()).frames, [{ error: { code: 'register_failed' } }])
  })

  t.test('an invalid registration is answered, and the connection closes with 4400', async (t) => {
    for (const frame of [
      {},
      { worker_instance_id: '' },
      { worker_instance_id: 'box', concurrency_limit: 0 },
      { worker_instance_id: 'box', queues: 'default' },
    ]) {
      const worker = scene().connect()
      t.match(await worker.say({ type: 'worker.register', message_id: 'r', ...frame }), [
        { type: 'error', message_id: 'r', error: { code: 'bad_frame' } },
      ])
      t.equal(worker.code, 4400)
    }
  })

  t.test('a connection that does not register within 30 s is closed with 4408', async (t) => {
    const at = scene()
    const worker = at.connect()
    await at.clock.advance(29_000)
    t.equal(worker.closed, undefined)
    await at.clock.advance(1000)
    t.equal(worker.code, 4408)
  })

  t.test(
    'a token resumes its session: it is returned, the older connection closes with 4410, leases count',
    async (t) => {
      const at = scene()
      const first = await at.worker()
      const session = sessionOf(at)
      const token = first.frames[0]?.worker_session_token
      at.leases = {
        [session]: [
          { job_id: header(1).id, queue: 'default' },
          { job_id: header(2).id, queue: 'default' },
        ],
      }
      at.on['worker.register'] = ({ input }) => ({
        registration: { ...(input as object), session, generation: 2, connected_at: 0 },
        resumed: true,
        draining: false,
      })
      const second = await at.worker({ worker_session_token: token })
      t.equal(second.frames[0]?.worker_session_token, token)
      t.match(at.named('worker.register')[1]?.input, {
        given_token_hash: at.world.hash(token ?? ''),
      })
      t.equal(first.code, 4410)
      await second.say({ type: 'jobs.claim', available_slots: 4 })
      t.equal(
        at.offer([3, 4, 5, 6].map((n) => header(n)))?.takes.length,
        2,
        'two of four slots are held',
      )
      t.same(at.named('queue.lose'), [])
    },
  )

  t.test(
    'of two concurrent registrations of one session, the later generation stays',
    async (t) => {
      const at = scene()
      const answers: ((generation: number) => void)[] = []
      at.on['worker.register'] = ({ input }) =>
        new Promise((resolve) => {
          answers.push((generation) =>
            resolve({
              registration: { ...(input as object), session: 'wst_1', generation, connected_at: 0 },
              resumed: true,
              draining: false,
            }),
          )
        })
      const workers = [await at.worker(), await at.worker()]
      answers[1]?.(3)
      await settle()
      answers[0]?.(2)
      await settle()
      t.same(
        workers.map(({ code }) => code),
        [4410, undefined],
      )
      t.same(
        workers.map(({ types }) => types),
        [[], ['worker.registered']],
      )
    },
  )

  t.test(
    'a resumed session gets no jobs until its leases are known, for a limited time',
    async (t) => {
      const at = scene()
      at.leases = 'down'
      at.on['worker.register'] = ({ input }) => ({
        registration: { ...(input as object), generation: 2, connected_at: 0 },
        resumed: true,
        draining: false,
      })
      const worker = await at.worker({ worker_session_token: 'wst_x' })
      await worker.say({ type: 'jobs.claim', available_slots: 4 })
      t.equal(at.offer([header(1)]), undefined)
      await at.clock.advance(19_000)
      t.equal(at.offer([header(1)]), undefined)
      await at.clock.advance(3000)
      await worker.say({ type: 'jobs.claim', available_slots: 4 })
      t.equal(at.offer([header(1)])?.takes.length, 1)
    },
  )

  t.test('a session that replaces another makes it lose its leases at each queue', async (t) => {
    const at = scene()
    at.leases = {
      old: [
        { job_id: header(1).id, queue: 'a' },
        { job_id: header(5).id, queue: 'a' },
        { job_id: header(2).id, queue: 'b' },
      ],
    }
    at.on['worker.register'] = ({ input }) => ({
      registration: { ...(input as object), generation: 9, connected_at: 0 },
      resumed: false,
      draining: false,
      replaced: { session: 'old', gateway: 'gw2' },
    })
    await at.worker()
    t.match(
      at.named('queue.lose').map(({ id, input }) => ({ id, input })),
      [
        { id: '1.a', input: { session: 'old', job_ids: [header(1).id, header(5).id] } },
        { id: '2.b', input: { session: 'old', job_ids: [header(2).id] } },
      ],
    )
  })

  t.test('an active drain is repeated after a registration', async (t) => {
    const at = scene()
    at.on['worker.register'] = ({ input }) => ({
      registration: { ...(input as object), generation: 2, connected_at: 0 },
      resumed: false,
      draining: true,
    })
    const worker = await at.worker()
    t.same(worker.types, ['worker.registered', 'worker.drain'])
    t.match(await worker.say({ type: 'jobs.claim', message_id: 'c', available_slots: 4 }), [
      { type: 'jobs.claimed', message_id: 'c', jobs: [] },
    ])
  })

  t.test('frames sent during the registration wait for it', async (t) => {
    const at = scene()
    const worker = at.connect()
    worker.send({ type: 'worker.register', worker_instance_id: 'box' })
    await worker.say(heartbeat)
    t.same(worker.types, ['worker.registered', 'job.heartbeat.ack'])
  })

  t.test('a second registration on one connection is a bad frame', async (t) => {
    const worker = await scene().worker()
    for (const frame of [{ worker_instance_id: 'box' }, {}])
      t.match(await worker.say({ type: 'worker.register', message_id: 'x', ...frame }), [
        { type: 'error', message_id: 'x', error: { code: 'bad_frame' } },
      ])
    t.equal(worker.closed, undefined)
  })

  t.test('a second registration during the first keeps the frames that wait', async (t) => {
    const at = scene()
    const worker = at.connect()
    worker.send({ type: 'worker.register', message_id: 'r1', worker_instance_id: 'box' })
    worker.send({ type: 'jobs.claim', message_id: 'c1', available_slots: 0 })
    worker.send({ type: 'worker.register', message_id: 'r2', worker_instance_id: 'box' })
    await settle()
    t.match(worker.frames, [
      { type: 'error', message_id: 'r2', error: { code: 'bad_frame' } },
      { type: 'worker.registered', message_id: 'r1' },
    ])
    await at.clock.advance(20_000)
    t.match(worker.of('jobs.claimed'), [{ message_id: 'c1', jobs: [] }])
  })
  t.test('a connection that closes during its registration is reported closed', async (t) => {
    const at = scene()
    const worker = at.connect()
    worker.send({ type: 'worker.register', worker_instance_id: 'box' })
    worker.connection.ended()
    await settle()
    t.match(
      at.named('worker.closed').map(({ input }) => input),
      [{ generation: 1, leases: 0 }],
    )
    t.same(worker.frames, [])
  })
})

t.test('frames', async (t) => {
  t.test('an invalid frame is answered, and the connection stays', async (t) => {
    const worker = await scene().worker()
    worker.frames.length = 0
    worker.connection.receive('{')
    worker.connection.receive('[1]')
    await worker.say({ message_id: 'a' })
    await worker.say({ type: 'job.heartbeat', message_id: 'b', job_id: 1 })
    await worker.say({ type: 'job.dance', message_id: 'c' })
    await worker.say({ type: 'constructor', message_id: 'd' })
    t.match(worker.frames, [
      { error: { code: 'bad_frame' } },
      { error: { code: 'bad_frame' } },
      { message_id: 'a', error: { code: 'bad_frame' } },
      { message_id: 'b', error: { code: 'bad_frame' } },
      { message_id: 'c', error: { code: 'unknown_frame' } },
      { message_id: 'd', error: { code: 'unknown_frame' } },
    ])
    t.equal(worker.closed, undefined)
  })

  t.test('any other frame before the registration is not_registered', async (t) => {
    const worker = scene().connect()
    for (const frame of [
      heartbeat,
      { type: 'jobs.claim', message_id: 'c' },
      { type: 'worker.draining' },
    ])
      t.match(await worker.say(frame), [{ type: 'error', error: { code: 'not_registered' } }])
    t.equal(worker.frames[1]?.message_id, 'c')
    t.equal(worker.closed, undefined)
  })

  t.test('a keepalive is never answered', async (t) => {
    const at = scene()
    t.same(await at.connect().say({ type: 'keepalive', message_id: 'k' }), [])
    t.same(await (await at.worker()).say({ type: 'keepalive' }), [])
  })

  t.test('a flood is closed with 4429', async (t) => {
    const worker = await scene().worker()
    for (let i = 0; i < 20_001; i++) worker.send({ type: 'keepalive' })
    t.match(worker.frames.at(-1), { type: 'error', error: { code: 'rate_limit_exceeded' } })
    t.equal(worker.code, 4429)
  })

  t.test(
    'worker.ready has no answer, changes filters and capacity, and may cause a hint',
    async (t) => {
      const at = scene()
      const worker = await at.worker({ action_names: ['mail'] })
      t.same(
        (
          await worker.say({ type: 'worker.ready', available_slots: 1, action_names: ['print'] })
        ).map(({ type }) => type),
        ['work.available'],
      )
      t.same([...at.listening.keys()], [`offer.${PROJECT}.*.aprint`])
      t.match(
        at.named('worker.seen').map(({ input }) => input),
        [
          {
            session: sessionOf(at),
            generation: 1,
            takes: { queues: [], action_names: ['print'], models: [] },
          },
        ],
        'the registry is notified',
      )
      await worker.say({ type: 'worker.ready', available_slots: 0 })
      t.equal(at.listening.size, 0)
      t.equal(at.named('worker.seen').length, 1)
      for (const name of ['a', 'b', 'c'])
        worker.send({ type: 'worker.ready', action_names: [name] })
      await settle()
      t.match(
        at
          .named('worker.seen')
          .map(({ input }) => input)
          .at(-1),
        { takes: { action_names: ['c'] } },
        'the last word counts',
      )
    },
  )
})

t.test('the connection', async (t) => {
  t.test('is pinged every 25 s', async (t) => {
    const at = scene()
    const worker = await at.worker()
    await at.clock.advance(76_000)
    t.equal(worker.pings, 3)
  })

  t.test('is dropped when its buffer does not drain for 10 s', async (t) => {
    const at = scene()
    const worker = await at.worker()
    worker.sending = 'buffered'
    await worker.say(heartbeat)
    await at.clock.advance(9000)
    worker.connection.drained(100)
    await at.clock.advance(9000)
    t.equal(worker.closed, undefined)
    await at.clock.advance(1000)
    t.equal(worker.closed, 'dropped')
    const other = await at.worker()
    other.sending = 'buffered'
    await other.say(heartbeat)
    other.connection.drained(0)
    await at.clock.advance(20_000)
    t.equal(other.closed, undefined)
  })

  t.test(
    'reports a live worker to the registry at each interval, and closes when it was replaced',
    async (t) => {
      const at = scene()
      const worker = await at.worker()
      await at.clock.advance(20_000)
      t.match(
        at.named('worker.seen').map(({ input }) => input),
        [{ session: sessionOf(at), generation: 1, leases: 0 }],
      )
      await at.clock.advance(40_000)
      t.equal(at.named('worker.seen').length, 1, 'a silent worker is not reported')
      worker.connection.ponged()
      at.on['worker.seen'] = () => ({ current: false })
      await at.clock.advance(20_000)
      t.equal(worker.code, 4410)
    },
  )

  t.test('reports its end to the registry, and the leases stay', async (t) => {
    const at = scene()
    const worker = await at.worker()
    worker.connection.ended()
    await settle()
    t.match(
      at.named('worker.closed').map(({ input }) => input),
      [{ session: sessionOf(at), generation: 1, leases: 0 }],
    )
    t.same([at.named('queue.release'), at.named('queue.lose')], [[], []])
    await at.clock.advance(60_000)
    t.equal(at.clock.waiting, 1, 'nothing but the look at credentials goes on')
  })
})

t.test('credentials', async (t) => {
  const verdict = async (at: Scene, refusal: typeof at.verdict) => {
    const worker = await at.worker()
    worker.frames.length = 0
    at.verdict = refusal
    await at.clock.advance(5000)
    return worker
  }
  t.test('a revoked one ends the connection within 5 s, invalid_actor and 4401', async (t) => {
    const worker = await verdict(scene(), refuse('unauthorized'))
    t.match(worker.frames, [{ type: 'error', error: { code: 'invalid_actor' } }])
    t.equal(worker.code, 4401)
  })
  t.test(
    'a lost permission closes with 4403 and a deleted project with 4404, without a terminal error',
    async (t) => {
      for (const [code, close, reason] of [
        ['permission_denied', 4403, /permission/],
        ['forbidden', 4403, /no access/],
        ['not_found', 4404, /was deleted/],
      ] as const) {
        const worker = await verdict(scene(), refuse(code))
        t.same(worker.frames, [])
        t.match(worker.closed, { code: close, reason })
      }
    },
  )
  t.test('an unavailable backend does not invalidate a credential', async (t) => {
    t.equal((await verdict(scene(), refuse('service_unavailable'))).closed, undefined)
    const at = scene()
    const worker = await at.worker(
      {},
      {
        recheck: async () => {
          throw new Error('away')
        },
      },
    )
    await at.clock.advance(5000)
    t.equal(worker.closed, undefined)
  })
  t.test('a change of configuration is checked at once', async (t) => {
    const at = scene()
    const worker = await at.worker()
    at.verdict = refuse('unauthorized')
    await at.hub.recheck()
    t.equal(worker.code, 4401)
  })
})
