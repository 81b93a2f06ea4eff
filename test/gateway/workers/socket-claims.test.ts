/**
 * Claims and offers on the worker socket: which job goes to which worker, and how claims are
 * answered.
 */
import fc from 'fast-check'
import t from 'tap'
import { isEligible, prepareFilters } from '../../../gateway/workers/jobs/eligible.ts'
import { sizes } from '../../../protocol/workers/socket.ts'
import { hand, header, leased, PROJECT, scene, sessionOf, settle } from './workers.ts'

const claim = (message_id: string, available_slots = 4, more = {}) => ({
  type: 'jobs.claim',
  message_id,
  available_slots,
  ...more,
})
const ids = (jobs: readonly { readonly id: string }[] | undefined) => jobs?.map(({ id }) => id)

t.test('a claim', async (t) => {
  t.test(
    'is answered with all jobs of one offer in one frame, as closed objects, under its message id',
    async (t) => {
      const at = scene()
      const worker = await at.worker()
      await worker.say(claim('c'))
      const jobs = [1, 2].map((n) => header(n))
      const session = sessionOf(at)
      t.match(at.offer(jobs), {
        gateway: 'gw1',
        takes: jobs.map(({ id }) => ({ job_id: id, session, instance: 'box' })),
      })
      for (const job of jobs)
        t.same(
          at.hub.receive({
            type: 'assign',
            project: PROJECT,
            session,
            job: { ...leased(job), extra: 1 } as never,
          }),
          { ok: true },
        )
      t.same(worker.of('jobs.claimed'), [
        { type: 'jobs.claimed', message_id: 'c', jobs: jobs.map((job) => leased(job)) },
      ])
    },
  )

  t.test('announces demand if the worker has a free slot', async (t) => {
    const at = scene()
    const worker = await at.worker()
    await worker.say(claim('c', 0))
    t.equal(at.demands, 0)
    await worker.say(claim('d', 1))
    t.equal(at.demands, 1)
  })

  t.test('is answered empty at the end of the poll time, and a hint follows at once', async (t) => {
    const at = scene()
    const worker = await at.worker()
    await worker.say(claim('c'))
    await at.clock.advance(19_999)
    t.equal(worker.frames.length, 1)
    await at.clock.advance(1)
    t.match(worker.frames.slice(1), [
      { type: 'jobs.claimed', message_id: 'c', jobs: [] },
      { type: 'work.available' },
    ])
  })

  t.test('without slots is valid: empty at the end, and no hint', async (t) => {
    const at = scene()
    const worker = await at.worker()
    await worker.say(claim('c', 0))
    t.same(at.offer([header(1)])?.takes, [])
    await at.clock.advance(20_000)
    t.same(worker.types.slice(1), ['jobs.claimed'])
  })

  t.test('with a partial answer is followed by a hint, with a full one it is not', async (t) => {
    const at = scene()
    const worker = await at.worker({ concurrency_limit: 2 })
    await worker.say(claim('c', 2))
    await hand(at, [header(1)])
    t.same(worker.types.slice(1), ['jobs.claimed', 'work.available'])
    await worker.say(claim('d', 1))
    await hand(at, [header(2)])
    t.same(worker.types.slice(3), ['jobs.claimed'])
  })

  t.test(
    'gets at most the slots that it names, and at most the limit minus held leases',
    async (t) => {
      const at = scene()
      const worker = await at.worker({ concurrency_limit: 3 })
      const jobs = [1, 2, 3, 4, 5].map((n) => header(n))
      await worker.say(claim('c', 2))
      t.equal((await hand(at, jobs)).length, 2)
      await worker.say(claim('d', 3))
      t.equal(
        (await hand(at, jobs.slice(2))).length,
        1,
        'a client that names its full count again gets the remaining slots',
      )
      t.equal(worker.of('jobs.claimed').length, 2)
      t.equal(at.listening.size, 0, 'and without a free slot the gateway does not listen')
    },
  )

  t.test(
    'repeated under its message id gets the same jobs, also on a new connection, for 120 s',
    async (t) => {
      const at = scene()
      const worker = await at.worker()
      await worker.say(claim('c', 1))
      await worker.say(claim('c', 1))
      await hand(at, [header(1)])
      t.equal(worker.of('jobs.claimed').length, 1, 'a repeat of a waiting claim joins it')
      t.match(await worker.say(claim('c', 1)), [{ jobs: [{ id: header(1).id }] }])
      const session = sessionOf(at)
      at.on['worker.register'] = ({ input }) => ({
        registration: { ...(input as object), session, generation: 2, connected_at: 0 },
        resumed: true,
        draining: false,
      })
      const again = await at.worker({ worker_session_token: 'wst_1' })
      t.match(await again.say(claim('c', 1)), [{ jobs: [{ id: header(1).id }] }])
      await at.clock.advance(120_000)
      t.same(await again.say(claim('c', 1)), [], 'afterwards it is a new claim')
    },
  )

  t.test('uses its own filters instead of the registered ones', async (t) => {
    const at = scene()
    const worker = await at.worker({ action_names: ['mail'] })
    await worker.say(claim('c', 1, { action_names: ['print'] }))
    t.same(at.offer([header(1)])?.takes, [])
    await hand(at, [header(2, { action_name: 'print' })])
    t.same(ids(worker.of('jobs.claimed')[0]?.jobs), [header(2).id])
    await worker.say(claim('d', 1))
    t.same([...at.listening.keys()], [`offer.${PROJECT}.*.amail`])
    t.equal(at.offer([header(3, { action_name: 'mail' })])?.takes.length, 1)
  })

  t.test(
    'may overlap with a second one: the older is answered first, and both share the free slots',
    async (t) => {
      const at = scene()
      const worker = await at.worker({ concurrency_limit: 2 })
      await worker.say(claim('c', 2))
      await worker.say(claim('d', 2))
      t.equal(
        (
          await hand(
            at,
            [1, 2, 3].map((n) => header(n)),
          )
        ).length,
        2,
      )
      t.match(worker.of('jobs.claimed'), [{ message_id: 'c', jobs: { length: 2 } }])
      await at.clock.advance(20_000)
      t.match(worker.of('jobs.claimed')[1], { message_id: 'd', jobs: [] })
    },
  )

  t.test('is answered empty if it is the oldest of too many', async (t) => {
    const worker = await scene().worker()
    for (let i = 0; i < 9; i++) await worker.say(claim(`c${i}`))
    t.match(worker.of('jobs.claimed'), [{ message_id: 'c0', jobs: [] }])
  })

  t.test('has an answer below 900 KiB; the rest waits for the next claim', async (t) => {
    const at = scene()
    const worker = await at.worker()
    await worker.say(claim('c'))
    const jobs = [1, 2, 3].map((n) => header(n))
    const session = sessionOf(at)
    at.offer(jobs)
    for (const job of jobs)
      void at.hub.receive({
        type: 'assign',
        project: PROJECT,
        session,
        job: leased(job, 'default', 1, { parameters: { text: 'x'.repeat(400_000) } }),
      })
    await settle()
    t.same(ids(worker.of('jobs.claimed')[0]?.jobs), ids(jobs.slice(0, 2)))
    t.ok(JSON.stringify(worker.of('jobs.claimed')[0]).length < sizes.outbound)
    t.equal(worker.types.at(-1), 'work.available')
    await worker.say(claim('d', 2))
    t.same(ids(worker.of('jobs.claimed')[1]?.jobs), ids(jobs.slice(2)))
  })
})

t.test('offers', async (t) => {
  t.test(
    'a worker without a claim gets at most one hint per second, one per 5 s without claims, and no jobs',
    async (t) => {
      const at = scene()
      const worker = await at.worker()
      t.match(at.offer([header(1)]), { takes: [], busy: true })
      for (let i = 0; i < 20; i++) at.offer([header(1)])
      t.equal(worker.of('work.available').length, 1)
      for (let i = 0; i < 6; i++) {
        await at.clock.advance(2000)
        at.offer([header(1)])
      }
      t.equal(worker.of('work.available').length, 3)
      await worker.say(claim('c'))
      await at.clock.advance(6000)
      t.equal(worker.of('work.available').length, 3, 'a claim ends it')
    },
  )

  t.test('a worker that cannot take the job gets no hint', async (t) => {
    const at = scene()
    const worker = await at.worker({ models: [{ provider: 'local', model: 'small' }] })
    t.equal(at.offer([header(1)]), undefined)
    const other = await at.worker({ worker_instance_id: 'b', environment_id: 'gpu_1' })
    at.offer([header(1, { environment_id: 'env_2' })])
    t.same([worker.of('work.available'), other.of('work.available')], [[], []])
  })

  t.test('workers are served in turn', async (t) => {
    const at = scene()
    const workers = [
      await at.worker({ worker_instance_id: 'a' }),
      await at.worker({ worker_instance_id: 'b' }),
    ]
    for (const worker of workers) await worker.say(claim('c'))
    await hand(
      at,
      [1, 2, 3, 4].map((n) => header(n)),
    )
    t.same(
      workers.map((worker) => worker.of('jobs.claimed')[0]?.jobs?.length),
      [2, 2],
    )
  })

  t.test('workers with different filters that match the same job are served in turn', async (t) => {
    const at = scene()
    const filters = [
      {},
      { queues: ['default'] },
      { action_names: ['send'] },
      { queues: ['default'], action_names: ['send'] },
      { queues: ['elsewhere'] },
    ]
    const workers = []
    for (const [i, filter] of filters.entries())
      workers.push(
        await at.worker({ ...filter, worker_instance_id: `w${i}`, concurrency_limit: 8 }),
      )
    for (const worker of workers) await worker.say(claim('c', 8))
    const taken = Array.from(
      { length: 12 },
      (_, n) => at.offer([header(n, { action_name: 'send' })], 'default')?.takes[0]?.instance,
    )
    t.same(taken.slice(0, 4).sort(), ['w0', 'w1', 'w2', 'w3'])
    t.same(taken.slice(4, 8).sort(), ['w0', 'w1', 'w2', 'w3'])
    t.same(taken.slice(8).sort(), ['w0', 'w1', 'w2', 'w3'])
    for (const worker of workers.slice(0, 4)) worker.connection.ended()
    t.equal(
      at.offer([header(20, { action_name: 'send' })], 'default'),
      undefined,
      'no worker with this filter is left',
    )
    t.match(at.offer([header(21, { action_name: 'send' })], 'elsewhere'), {
      takes: [{ instance: 'w4' }],
    })
  })

  t.test(
    'a slot promised to a job that never arrives is free after 5 s, and demand is announced',
    async (t) => {
      const at = scene()
      const worker = await at.worker({ concurrency_limit: 1 })
      await worker.say(claim('c', 1))
      t.equal(at.offer([header(1)])?.takes.length, 1)
      t.equal(at.offer([header(2)]), undefined)
      const before = at.demands
      await at.clock.advance(5000)
      t.equal(at.demands, before + 1)
      t.equal(at.offer([header(2)])?.takes.length, 1)
    },
  )

  t.test('a repeated offer goes to the session that it was promised to', async (t) => {
    const at = scene()
    for (const name of ['a', 'b'])
      await (await at.worker({ worker_instance_id: name })).say(claim('c'))
    t.same(at.offer([header(1)])?.takes, at.offer([header(1)])?.takes)
  })

  t.test('sessions share subscriptions, which end with the last session', async (t) => {
    const at = scene()
    const filters = {
      queues: ['mail.out', 'b'],
      action_names: ['x'],
      environment_id: 'gpu_1',
      models: [{ provider: 'local', model: 'small' }],
    }
    const workers = [
      await at.worker({ ...filters, worker_instance_id: 'a' }),
      await at.worker({ ...filters, worker_instance_id: 'b' }),
    ]
    t.same(
      [...at.listening],
      [
        'mail=2eout.ax',
        'mail=2eout.ax@gpu_1',
        'b.ax',
        'b.ax@gpu_1',
        '*.mlocal=2fsmall',
        '*.mlocal=2fsmall@gpu_1',
      ].map((end) => [`offer.${PROJECT}.${end}`, 1]),
    )
    workers[0]?.connection.ended()
    t.equal(at.listening.size, 6)
    workers[1]?.connection.ended()
    t.equal(at.listening.size, 0)
  })
})

t.test('eligibility', async (t) => {
  const model = header(9, { kind: 'llm_generation', provider: 'local', model: 'small' })
  const cases = [
    ['anything, with no filters', header(1), {}, true],
    ['work of the server', header(1, { executor_kind: 'server_worker' }), {}, false],
    ['a queue that is listed', header(1), { queues: ['q'] }, true],
    ['a queue that is not', header(1), { queues: ['other'] }, false],
    ['an action that is not listed', header(1), { action_names: ['print'] }, false],
    [
      'an action, for a worker of models only',
      header(1),
      { models: [{ provider: 'local', model: 'small' }] },
      false,
    ],
    [
      'a model that is listed, whatever the queue',
      model,
      { queues: ['other'], models: [{ provider: 'local', model: 'small' }] },
      true,
    ],
    [
      'another model of that provider',
      model,
      { models: [{ provider: 'local', model: 'large' }] },
      false,
    ],
    ['a model, when none are listed', model, {}, false],
    [
      'a job pinned to this environment',
      header(1, { environment_id: 'e' }),
      { environment_id: 'e' },
      true,
    ],
    ['a job pinned to another', header(1, { environment_id: 'e' }), { environment_id: 'f' }, false],
    ['an unpinned job, for a bound worker', header(1), { environment_id: 'e' }, true],
  ] as const
  for (const [name, job, filters, may] of cases)
    t.equal(isEligible(job, 'q', prepareFilters(filters)), may, name)
  const wide = prepareFilters({
    queues: Array.from({ length: 30 }, (_, i) => `q${i}`),
    action_names: Array.from({ length: 30 }, (_, i) => `a${i}`),
  })
  t.equal(wide.interests.length, 30, 'many queues are listened to as any')
  t.notOk(isEligible(header(1, { action_name: 'a1' }), 'q99', wide), 'but not taken from')
})

t.test('a worker never holds more jobs than its limit, for any sequence of messages', async (t) => {
  const step = fc.oneof(
    fc.record({ do: fc.constant('claim' as const), slots: fc.integer({ min: 0, max: 5 }) }),
    fc.record({ do: fc.constant('offer' as const), count: fc.integer({ min: 1, max: 4 }) }),
    fc.record({ do: fc.constant('deliver' as const), late: fc.boolean() }),
    fc.record({ do: fc.constant('report' as const) }),
    fc.record({
      do: fc.constant('wait' as const),
      ms: fc.constantFrom(1, 10, 2500, 6000, 21_000),
    }),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      const at = scene()
      const worker = await at.worker({ concurrency_limit: 3 })
      const session = sessionOf(at)
      const taken: ReturnType<typeof header>[] = []
      const held = new Set<string>()
      let number = 0
      let asked = new Map<string, number>()
      for (const next of steps) {
        const from = worker.frames.length
        if (next.do === 'claim') {
          asked.set(`c${++number}`, next.slots)
          await worker.say(claim(`c${number}`, next.slots))
        } else if (next.do === 'offer') {
          const jobs = Array.from({ length: next.count }, () => header(++number))
          for (const { job_id } of at.offer(jobs)?.takes ?? [])
            taken.push(jobs.find(({ id }) => id === job_id) ?? header(0))
        } else if (next.do === 'deliver') {
          const job = next.late ? taken.pop() : taken.shift()
          if (job)
            void at.hub.receive({ type: 'assign', project: PROJECT, session, job: leased(job) })
        } else if (next.do === 'report') {
          const [id] = held
          if (id === undefined) continue
          held.delete(id)
          await worker.say({
            type: 'job.report',
            job_id: id,
            lease_token: leased({ ...header(0), id }).lease_token,
          })
        } else await at.clock.advance(next.ms)
        await settle()
        for (const frame of worker.frames.slice(from)) {
          if (frame.type !== 'jobs.claimed') continue
          const slots = asked.get(frame.message_id ?? '') ?? -1
          asked.delete(frame.message_id ?? '')
          if ((frame.jobs?.length ?? 0) > slots)
            throw new Error('more than the claim asked for, or answered twice')
          for (const { id } of frame.jobs ?? []) held.add(id)
        }
        if (held.size > 3) throw new Error(`holds ${held.size}`)
        if (asked.size > 8) throw new Error('claims without an answer')
      }
      await at.clock.advance(21_000)
      asked = new Map(
        [...asked].filter(([id]) => !worker.frames.some((frame) => frame.message_id === id)),
      )
      if (asked.size > 0) throw new Error('a claim was left without an answer')
    }),
    { numRuns: 60, seed: 7 },
  )
  t.pass()
})
