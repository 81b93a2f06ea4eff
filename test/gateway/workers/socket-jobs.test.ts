/**
 * Jobs on the worker socket: assignment, heartbeats, reports, deltas, cancellation and draining.
 */
import t from 'tap'
import { timestamp } from '../../../protocol/common.ts'
import { refuse } from '../../../protocol/errors.ts'
import { sizes } from '../../../protocol/workers/socket.ts'
import { hand, header, leased, PROJECT, type Scene, scene, sessionOf, settle } from './workers.ts'

const job = header(1)
const lease = { job_id: job.id, lease_token: leased(job).lease_token }
/** Connects a worker, gives it job 1, and clears its recorded frames. */
const holding = async (register = {}) => {
  const at = scene()
  const worker = await at.worker(register)
  await worker.say({ type: 'jobs.claim', message_id: 'c', available_slots: 1 })
  await hand(at, [job])
  worker.frames.length = 0
  return { at, worker }
}
const assign = (at: Scene, number = 1, session = sessionOf(at), attempt = 1) =>
  at.hub.receive({
    type: 'assign',
    project: PROJECT,
    session,
    job: leased(header(number), 'default', attempt),
  })

t.test('an assigned job', async (t) => {
  t.test('for an unknown session, another project or a closed connection is refused', async (t) => {
    const at = scene()
    const worker = await at.worker()
    const session = sessionOf(at)
    t.same(assign(at, 1, 'wst_unknown'), { ok: false })
    t.same(at.hub.receive({ type: 'assign', project: 'prj_other', session, job: leased(job) }), {
      ok: false,
    })
    worker.connection.ended()
    t.same(assign(at, 1, session), { ok: false })
  })

  t.test('that arrives twice is delivered once', async (t) => {
    const { at, worker } = await holding()
    await worker.say({ type: 'jobs.claim', message_id: 'd', available_slots: 3 })
    t.same(assign(at), { ok: true })
    await settle()
    t.same(worker.of('jobs.claimed'), [])
  })

  t.test(
    'without a claim waits for the next one, and is returned after 5 s without using an attempt',
    async (t) => {
      const at = scene()
      const worker = await at.worker()
      t.same(assign(at), { ok: true })
      t.same(worker.types.slice(1), ['work.available'])
      t.match(await worker.say({ type: 'jobs.claim', message_id: 'c', available_slots: 1 }), [
        { jobs: [{ id: job.id }] },
      ])
      void assign(at, 2)
      await at.clock.advance(5000)
      t.match(
        at.named('queue.release').map(({ id, input }) => ({ id, input })),
        [
          {
            id: '2.default',
            input: { job_id: header(2).id, lease_token: leased(header(2)).lease_token },
          },
        ],
      )
      t.match(await worker.say({ type: 'jobs.claim', message_id: 'd', available_slots: 1 }), [])
    },
  )

  t.test('without a free slot is refused', async (t) => {
    const { at } = await holding({ concurrency_limit: 1 })
    t.same(assign(at, 2), { ok: false })
  })

  t.test('that cannot be written to the socket is returned', async (t) => {
    const at = scene()
    const worker = await at.worker()
    await worker.say({ type: 'jobs.claim', message_id: 'c', available_slots: 1 })
    worker.sending = 'lost'
    await hand(at, [job])
    t.equal(worker.closed, 'dropped')
    t.match(
      at.named('queue.release').map(({ input }) => input),
      [lease],
    )
    t.match(
      at.named('worker.closed').map(({ input }) => input),
      [{ leases: 0 }],
    )
  })

  t.test('with a spec above 768 KiB fails instead of closing the socket of a client', async (t) => {
    const at = scene()
    const worker = await at.worker()
    await worker.say({ type: 'jobs.claim', message_id: 'c', available_slots: 1 })
    at.offer([job])
    t.same(
      at.hub.receive({
        type: 'assign',
        project: PROJECT,
        session: sessionOf(at),
        job: leased(job, 'default', 1, { text: 'x'.repeat(sizes.spec) }),
      }),
      { ok: true },
    )
    await settle()
    t.match(
      at.named('queue.report').map(({ input }) => input),
      [{ ...lease, status: 'failed', error_type: 'SpecTooLarge' }],
    )
    t.same(worker.of('jobs.claimed'), [])
  })

  t.test('of several that were promised together waits briefly for the others', async (t) => {
    const at = scene()
    const worker = await at.worker()
    await worker.say({ type: 'jobs.claim', message_id: 'c', available_slots: 3 })
    at.offer([1, 2, 3].map((n) => header(n)))
    for (const number of [1, 2]) void assign(at, number)
    t.same(worker.of('jobs.claimed'), [])
    await at.clock.advance(5)
    t.match(worker.of('jobs.claimed'), [{ jobs: [{ id: header(1).id }, { id: header(2).id }] }])
  })
})

t.test('a heartbeat', async (t) => {
  const beat = { type: 'job.heartbeat', message_id: 'h', ...lease }
  t.test(
    'renews the lease at the queue that its token names, in the shard of its job',
    async (t) => {
      const { at, worker } = await holding()
      t.same(await worker.say(beat), [
        { type: 'job.heartbeat.ack', message_id: 'h', job_id: job.id },
      ])
      t.match(at.named('queue.heartbeat'), [
        { project: PROJECT, kind: 'queue', id: '1.default', input: { ...lease, gateway: 'gw1' } },
      ])
    },
  )
  t.test('is answered with a cancellation request in both forms', async (t) => {
    const { at, worker } = await holding()
    const requested_at = timestamp(at.clock.now)
    at.on['queue.heartbeat'] = () => ({
      alive: true,
      cancel: { reason: 'run cancelled', requested_at },
    })
    t.same(await worker.say(beat), [
      {
        type: 'job.heartbeat.ack',
        message_id: 'h',
        job_id: job.id,
        cancel: { job_id: job.id, reason: 'run cancelled', requested_at },
        directives: { should_cancel: true },
      },
    ])
  })
  t.test(
    'with a lost lease or an invalid token is answered with the cancel lease_lost; the connection stays',
    async (t) => {
      const { at, worker } = await holding()
      at.on['queue.heartbeat'] = () => ({ alive: false })
      for (const frame of [
        beat,
        { ...beat, lease_token: 'lt_5Qx' },
        { ...beat, job_id: 'job_41' },
      ]) {
        t.match(await worker.say(frame), [
          {
            type: 'job.heartbeat.ack',
            message_id: 'h',
            job_id: frame.job_id,
            cancel: { job_id: frame.job_id, reason: 'lease_lost' },
            directives: { should_cancel: true },
          },
        ])
      }
      t.equal(worker.closed, undefined)
      t.equal(at.named('queue.heartbeat').length, 1)
    },
  )
  t.test('that could not be decided is not answered', async (t) => {
    const { at, worker } = await holding()
    at.on['queue.heartbeat'] = () => refuse('service_unavailable')
    t.same(await worker.say(beat), [])
  })
  t.test(
    'keeps the lease counted; without heartbeats the slot is free after its duration',
    async (t) => {
      const { at, worker } = await holding({ concurrency_limit: 1 })
      for (let i = 0; i < 5; i++) {
        await at.clock.advance(20_000)
        await worker.say(beat)
      }
      t.equal(at.listening.size, 0)
      await at.clock.advance(81_000)
      t.equal(at.listening.size, 1)
    },
  )
})

t.test('a report', async (t) => {
  const report = { type: 'job.report', message_id: 'm', ...lease }
  t.test('is acknowledged after its commit; its slot is free at once', async (t) => {
    const { at, worker } = await holding({ concurrency_limit: 1 })
    let commit = () => {}
    at.on['queue.report'] = () =>
      new Promise((resolve) => {
        commit = () => resolve({ outcome: 'accepted' })
      })
    t.equal(at.listening.size, 0)
    t.same(await worker.say({ ...report, result: { message_id: 'm-22' } }), [])
    t.equal(at.listening.size, 1)
    commit()
    await settle()
    t.same(worker.frames, [
      { type: 'job.report.ack', message_id: 'm', job_id: job.id, duplicate: false },
    ])
    t.match(at.named('queue.report'), [
      { id: '1.default', input: { ...lease, status: 'completed', result: { message_id: 'm-22' } } },
    ])
    t.equal(at.listening.size, 1)
  })
  t.test('that is repeated is acknowledged as a duplicate, as a new command', async (t) => {
    const { at, worker } = await holding()
    await worker.say(report)
    at.on['queue.report'] = () => ({ outcome: 'duplicate' })
    t.match(await worker.say(report), [{ type: 'job.report.ack', duplicate: true }])
    const [first, second] = at.named('queue.report')
    t.not(first?.command_id, second?.command_id)
  })
  t.test(
    'with a lost lease, unknown job or invalid token is acknowledged and followed by lease_lost',
    async (t) => {
      const { at, worker } = await holding()
      at.on['queue.report'] = () => ({ outcome: 'lease_lost' })
      for (const frame of [
        report,
        { ...report, job_id: 'job_41' },
        { ...report, lease_token: 'x' },
        { ...report, lease_token: 7, status: 'done' },
      ]) {
        t.match(await worker.say(frame), [
          { type: 'job.report.ack', message_id: 'm', job_id: frame.job_id, duplicate: false },
          { type: 'error', message_id: 'm', error: { code: 'lease_lost' } },
        ])
      }
    },
  )
  t.test('of a job that another gateway assigned is forwarded like any other', async (t) => {
    const at = scene()
    const worker = await at.worker()
    t.match(await worker.say(report), [{ type: 'job.report.ack', message_id: 'm' }])
    t.match(at.named('queue.report'), [{ id: '1.default' }])
  })
  t.test('of a failure contains its error and never a result', async (t) => {
    const { at, worker } = await holding()
    await worker.say({
      ...report,
      status: 'cancelled',
      error_type: 'Cancelled',
      error_message: 'stop',
      result: { a: 1 },
    })
    t.same(at.named('queue.report')[0]?.input, {
      ...lease,
      status: 'cancelled',
      error_type: 'Cancelled',
      error_message: 'stop',
    })
  })
  t.test('with a result above 1 MiB is acknowledged and fails the job', async (t) => {
    const { at, worker } = await holding()
    t.match(await worker.say({ ...report, result: { text: 'x'.repeat(sizes.result) } }), [
      { type: 'job.report.ack', duplicate: false },
    ])
    t.match(at.named('queue.report')[0]?.input, { status: 'failed', error_type: 'ResultTooLarge' })
  })
  t.test(
    'that could not be decided is retried under its command id before it is acknowledged',
    async (t) => {
      const { at, worker } = await holding()
      at.on['queue.report'] = () => refuse('service_unavailable')
      t.same(await worker.say(report), [])
      await worker.say({ ...report, message_id: 'n' })
      await at.clock.advance(8000)
      t.equal(at.named('queue.report').length, 4)
      at.on['queue.report'] = () => ({ outcome: 'accepted' })
      await at.clock.advance(10_000)
      t.match(worker.of('job.report.ack'), [
        { message_id: 'm', duplicate: false },
        { message_id: 'n', duplicate: true },
      ])
      t.equal(new Set(at.named('queue.report').map(({ command_id }) => command_id)).size, 1)
    },
  )
  t.test('is retried after the connection ended, until its lease has expired', async (t) => {
    const { at, worker } = await holding()
    at.on['queue.report'] = () => refuse('service_unavailable')
    await worker.say(report)
    worker.connection.ended()
    await at.clock.advance(30_000)
    const tried = at.named('queue.report').length
    t.ok(tried > 3)
    await at.clock.advance(120_000)
    t.ok(at.named('queue.report').length < tried + 6)
    t.equal(at.clock.waiting, 1)
  })
})

t.test('deltas', async (t) => {
  const delta = (sequence: number) => ({
    type: 'generation.delta',
    message_id: 'd',
    ...lease,
    sequence,
    delta: { text: 'Par' },
  })
  t.test('have no answer and renew the lease once per heartbeat interval', async (t) => {
    const { at, worker } = await holding()
    for (let i = 1; i <= 50; i++) {
      await worker.say(delta(i))
      await at.clock.advance(1000)
    }
    t.same(worker.types, [])
    t.equal(at.named('queue.heartbeat').length, 2)
  })
  t.test('with a stale token are dropped and answered with lease_lost', async (t) => {
    const { at, worker } = await holding()
    await at.clock.advance(20_000)
    t.same(
      await worker.say({ ...delta(1), lease_token: leased(job, 'default', 7).lease_token }),
      [],
    )
    at.on['queue.heartbeat'] = () => ({ alive: false })
    t.match(await worker.say(delta(2)), [
      { type: 'error', message_id: 'd', error: { code: 'lease_lost' } },
    ])
    t.match(await worker.say({ ...delta(3), sequence: -1 }), [{ error: { code: 'bad_frame' } }])
  })
})

t.test('messages of the engine', async (t) => {
  t.test('a cancel goes to the worker, or ends a job that it never received', async (t) => {
    const { at, worker } = await holding()
    const message = {
      type: 'cancel',
      project: PROJECT,
      session: sessionOf(at),
      reason: 'run cancelled',
      at: at.clock.now,
    } as const
    t.same(at.hub.receive({ ...message, job_id: job.id }), { ok: true })
    t.same(worker.frames, [
      {
        type: 'job.cancel',
        job_id: job.id,
        reason: 'run cancelled',
        requested_at: timestamp(at.clock.now),
      },
    ])
    void assign(at, 2)
    void at.hub.receive({ ...message, job_id: header(2).id })
    await settle()
    t.equal(worker.of('job.cancel').length, 1)
    t.match(
      at.named('queue.report').map(({ input }) => input),
      [{ job_id: header(2).id, status: 'cancelled' }],
    )
    t.same(at.hub.receive({ ...message, session: 'wst_other', job_id: job.id }), { ok: false })
  })
  t.test('supersede closes older connections only', async (t) => {
    const { at, worker } = await holding()
    const message = { type: 'supersede', project: PROJECT, session: sessionOf(at) } as const
    void at.hub.receive({ ...message, generation: 1 })
    t.equal(worker.closed, undefined)
    void at.hub.receive({ ...message, generation: 2 })
    t.equal(worker.code, 4410)
  })
  t.test('forget does not affect sessions', async (t) =>
    t.same(scene().hub.receive({ type: 'forget', project: PROJECT }), { ok: true }),
  )
})

t.test('drain', async (t) => {
  t.test(
    'by the operator: one frame, all claims answered empty, no hints and no jobs taken',
    async (t) => {
      const { at, worker } = await holding()
      await worker.say({ type: 'jobs.claim', message_id: 'd', available_slots: 3 })
      const session = sessionOf(at)
      at.offer([header(2)])
      for (let i = 0; i < 2; i++) void at.hub.receive({ type: 'drain', project: PROJECT, session })
      t.match(worker.frames, [
        { type: 'worker.drain' },
        { type: 'jobs.claimed', message_id: 'd', jobs: [] },
      ])
      t.same(assign(at, 2), { ok: false })
      t.match(await worker.say({ type: 'jobs.claim', message_id: 'e', available_slots: 3 }), [
        { message_id: 'e', jobs: [] },
      ])
      t.equal(at.offer([header(3)]), undefined)
      t.match(await worker.say({ type: 'worker.draining', message_id: 'f' }), [
        { type: 'worker.draining.ack', message_id: 'f' },
      ])
      t.match(
        await worker.say({ type: 'job.report', message_id: 'g', ...lease }),
        [{ type: 'job.report.ack', message_id: 'g' }],
        'the acknowledgement lets the worker leave',
      )
    },
  )
  t.test('by the worker: acknowledged and sent to the registry; leases stay', async (t) => {
    const { at, worker } = await holding()
    await worker.say({ type: 'jobs.claim', message_id: 'd', available_slots: 3 })
    t.match(await worker.say({ type: 'worker.draining', message_id: 'e' }), [
      { type: 'jobs.claimed', message_id: 'd', jobs: [] },
      { type: 'worker.draining.ack', message_id: 'e' },
    ])
    t.match(
      at.named('worker.drained').map(({ input }) => input),
      [{ session: sessionOf(at) }],
    )
    await at.clock.advance(30_000)
    t.same([worker.of('work.available'), at.named('queue.release')], [[], []])
  })
})

t.test(
  'a stopping gateway answers claims empty, completes reports and closes with 1012',
  async (t) => {
    const { at, worker } = await holding()
    let commit = () => {}
    at.on['queue.report'] = () =>
      new Promise((resolve) => {
        commit = () => resolve({ outcome: 'accepted' })
      })
    await worker.say({ type: 'jobs.claim', message_id: 'd', available_slots: 3 })
    await worker.say({ type: 'job.report', message_id: 'm', ...lease })
    const stopped = at.hub.stop()
    await settle()
    t.match(worker.frames, [{ type: 'jobs.claimed', message_id: 'd', jobs: [] }])
    t.equal(worker.closed, undefined)
    commit()
    await stopped
    t.equal(worker.types.at(-1), 'job.report.ack')
    t.equal(worker.code, 1012)
    t.match(
      at.named('worker.closed').map(({ input }) => input),
      [{ leases: 0 }],
    )
    await at.clock.advance(10)
    t.same([at.listening.size, at.clock.waiting], [0, 0])
  },
)
