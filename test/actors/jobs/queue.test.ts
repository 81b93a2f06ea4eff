/**
 * A queue, command by command: offers, claims, reports, cancellations, lost leases and takeovers.
 * Random histories are in `queue.model.test.ts`.
 */
import t from 'tap'
import type { Effect } from '../../../actors/actor.ts'
import type { LeaseGrant } from '../../../protocol/jobs/rows.ts'
import { types } from '../support/stage.ts'
import { QueueStage, told } from './queue-stage.ts'

const settledInput = (done: { tells: readonly { input: unknown }[] }) =>
  done.tells[0]?.input as Record<string, unknown>

t.test('an enqueued job is offered once', async (t) => {
  const queue = new QueueStage('mail.eu')
  t.same(queue.put('job_1').effects, [{ offer: { queue: 'mail.eu' } }])
  t.same(queue.put('job_1').events, [], 'the same job again is nothing new')
  t.same(queue.line(), ['job_1'])
})

t.test(
  'a claimed job is pushed to the gateway of the session with all the worker needs',
  async (t) => {
    const queue = new QueueStage()
    queue.put('job_1')
    const done = queue.run('queue.claim', {
      gateway: 'g7',
      takes: [
        { job_id: 'job_1', session: 'wst_1', instance: 'box' },
        { job_id: 'job_1', session: 'wst_2', instance: 'box2' },
        { job_id: 'job_0', session: 'wst_1', instance: 'box' },
      ],
    })
    t.same(done.reply, { claimed: ['job_1'] }, 'each job is handed out once, and only if it waits')
    t.equal(done.effects.length, 1)
    t.match(done.effects[0], {
      push: {
        gateway: 'g7',
        spec: { kind: 'run', id: 'run_1', ask: 'job_spec', input: { job_id: 'job_1' } },
        message: {
          type: 'assign',
          project: 'prj_1',
          job: {
            id: 'job_1',
            queue: 'default',
            run_id: 'run_1',
            claim_attempt: 1,
            lease_token: 'lt_secret1.default',
            lease_duration_seconds: 60,
            heartbeat_cadence_seconds: 20,
          },
        },
      },
    })
    t.match(done.events[0], {
      job: {
        status: 'claimed',
        claim_attempt: 1,
        claimed_at: '1970-01-01T00:16:40.000Z',
        lease_expires_at: '1970-01-01T00:17:40.000Z',
      },
    })
    t.same(
      queue.run('queue.claim', {
        gateway: 'g7',
        takes: [{ job_id: 'job_1', session: 'wst_2', instance: 'box' }],
      }).reply,
      { claimed: [] },
    )
  },
)

t.test('a report with a valid lease ends the job and notifies the run once', async (t) => {
  const queue = new QueueStage()
  queue.put('job_1')
  const token = queue.claim('job_1')
  const done = queue.report('job_1', token, 'completed', { result: { n: 1 } })
  t.same(
    [done.reply, types(done), told(done)],
    [{ outcome: 'accepted' }, ['job.completed'], ['job.settled job_1 completed']],
  )
  t.match(settledInput(done), { attempt: 1, worker_instance_id: 'box-wst_1', result: { n: 1 } })
  const again = queue.report('job_1', token, 'completed')
  t.same([again.reply, again.events, again.tells], [{ outcome: 'duplicate' }, [], []])
  t.same(queue.put('job_1').events, [], 'an ended job is not enqueued again')
  t.equal(queue.deadline(), undefined)
})

t.test('a failed job is retried in its old position until its attempts are used up', async (t) => {
  const queue = new QueueStage()
  queue.put('job_1')
  queue.at += 1000
  queue.put('job_2')
  const first = queue.claim('job_1')
  const failed = queue.report('job_1', first, 'failed', {
    error_type: 'Error',
    error_message: 'no',
  })
  t.same([types(failed), told(failed)], [['job.requeued'], ['job.retried job_1 failure']])
  t.match(failed.tells[0]?.input, {
    attempt: 1,
    max_attempts: 2,
    error_type: 'Error',
    error_message: 'no',
    worker_instance_id: 'box-wst_1',
  })
  t.same(queue.line(), ['job_1', 'job_2'], 'it keeps its position')
  t.same(
    queue.report('job_1', first, 'failed').reply,
    { outcome: 'duplicate' },
    'the same report again',
  )
  const second = queue.claim('job_1')
  t.same(
    queue.report('job_1', first, 'failed').reply,
    { outcome: 'duplicate' },
    'also while the next attempt runs',
  )
  const last = queue.report('job_1', second, 'failed', { error_message: 'still no' })
  t.same(told(last), ['job.settled job_1 failed'])
  t.match(last.events[0], {
    job: {
      status: 'failed',
      claim_attempt: 2,
      error_type: 'Error',
      error_message: 'still no',
      lease_expires_at: null,
    },
  })
})

t.test('lost leases and reported failures have separate limits', async (t) => {
  const queue = new QueueStage()
  queue.put('job_1', { max_attempts: 1, max_losses: 3 })
  for (let n = 1; n <= 2; n++) {
    queue.claim('job_1')
    t.equal(queue.deadline(), queue.at + 60_000)
    t.same(queue.pass(60).flatMap(told), ['job.retried job_1 lease_expired'])
  }
  const token = queue.claim('job_1')
  t.same(told(queue.report('job_1', token, 'failed')), ['job.settled job_1 failed'])

  queue.put('job_2', { max_attempts: 3, max_losses: 1 })
  queue.claim('job_2')
  const [done] = queue.pass(60)
  t.match(done?.events[0], { type: 'job.failed', job: { error_type: 'lease_expired' } })
  t.match(done?.tells[0]?.input, { outcome: 'failed', error_type: 'lease_expired' })
})

t.test('a job rejected with WorkerOverCapacity is requeued without using an attempt', async (t) => {
  const queue = new QueueStage()
  queue.put('job_1', { max_attempts: 1, max_losses: 1 })
  for (let n = 0; n < 8; n++) {
    const done = queue.report('job_1', queue.claim('job_1'), 'failed', {
      error_type: 'WorkerOverCapacity',
    })
    t.match(
      [types(done), told(done), done.events[0]],
      [['job.requeued'], [], { counted: 'none', job: { claim_attempt: 0 } }],
    )
  }
})

t.test('a worker that shuts down can return a job five times without an attempt', async (t) => {
  const queue = new QueueStage()
  queue.put('job_1', { max_attempts: 1 })
  for (let n = 0; n < 5; n++)
    t.same(types(queue.report('job_1', queue.claim('job_1'), 'cancelled')), ['job.requeued'])
  const done = queue.report('job_1', queue.claim('job_1'), 'cancelled')
  t.same(told(done), ['job.settled job_1 failed'])
  t.match(settledInput(done), { error_type: 'Cancelled', attempt: 1 })
})

t.test('the error type Cancelled cancels the job only if cancellation was requested', async (t) => {
  const queue = new QueueStage()
  queue.put('job_1')
  t.same(told(queue.report('job_1', queue.claim('job_1'), 'failed', { error_type: 'Cancelled' })), [
    'job.retried job_1 failure',
  ])
  const token = queue.claim('job_1')
  queue.run('queue.cancel', { job_ids: ['job_1'], reason: 'run cancelled' })
  t.same(told(queue.report('job_1', token, 'failed', { error_type: 'Cancelled' })), [
    'job.settled job_1 cancelled',
  ])
})

t.test('cancellation ends a waiting job at once and notifies a worker with a lease', async (t) => {
  const queue = new QueueStage()
  queue.put('job_1')
  queue.put('job_2')
  const token = queue.claim('job_2', 'wst_2', 'g1')
  queue.beat('job_2', token, 'g2')
  const done = queue.run('queue.cancel', {
    job_ids: ['job_1', 'job_2', 'job_2', 'job_9'],
    reason: 'run cancelled',
  })
  t.same(
    [types(done), told(done)],
    [['job.cancelled', 'job.cancel_requested'], ['job.settled job_1 cancelled']],
  )
  t.same(
    done.effects,
    [
      {
        push: {
          gateway: 'g2',
          message: {
            type: 'cancel',
            project: 'prj_1',
            session: 'wst_2',
            job_id: 'job_2',
            reason: 'run cancelled',
            at: queue.at,
          },
        },
      },
    ],
    'where the session was seen last',
  )
  t.same(queue.run('queue.cancel', { job_ids: ['job_2'] }).events, [], 'asked once')
  t.same(queue.beat('job_2', token).reply, {
    alive: true,
    cancel: { reason: 'run cancelled', requested_at: '1970-01-01T00:16:40.000Z' },
  })
  t.same(told(queue.report('job_2', token, 'cancelled')), ['job.settled job_2 cancelled'])
  t.same(queue.line(), [])
})

t.test(
  'an unanswered cancellation takes effect after one lease duration, despite heartbeats',
  async (t) => {
    const queue = new QueueStage()
    queue.put('job_1')
    const token = queue.claim('job_1')
    queue.run('queue.cancel', { job_ids: ['job_1'] })
    queue.pass(50)
    queue.beat('job_1', token)
    t.same(queue.pass(10).flatMap(told), ['job.settled job_1 cancelled'])
    t.same(
      queue.report('job_1', token, 'completed').reply,
      { outcome: 'duplicate' },
      'later reports change nothing',
    )
    t.same(queue.beat('job_1', token).reply, { alive: false })
  },
)

t.test('a job with a requested cancellation is never handed out again', async (t) => {
  const ways: ((
    queue: QueueStage,
    token: string,
  ) => { tells: readonly { name: string; input: unknown }[] } | undefined)[] = [
    (queue, token) => queue.report('job_1', token, 'failed'),
    (queue, token) => queue.report('job_1', token, 'failed', { error_type: 'WorkerOverCapacity' }),
    (queue, token) => queue.run('queue.release', { job_id: 'job_1', lease_token: token }),
    (queue) => queue.run('queue.lose', { session: 'wst_1', job_ids: ['job_1'] }),
    (queue) => queue.pass(60)[0],
  ]
  for (const way of ways) {
    const queue = new QueueStage()
    queue.put('job_1', { max_attempts: 5, max_losses: 5 })
    const token = queue.claim('job_1')
    queue.run('queue.cancel', { job_ids: ['job_1'] })
    t.same(told(way(queue, token) ?? { tells: [] }), ['job.settled job_1 cancelled'])
  }
})

t.test('a late result is accepted while the job waits for its next attempt', async (t) => {
  const queue = new QueueStage()
  queue.put('job_1')
  const token = queue.claim('job_1')
  queue.pass(60)
  t.same(queue.beat('job_1', token).reply, { alive: false }, 'its heartbeat reports a lost lease')
  const done = queue.report('job_1', token, 'completed', { result: {} })
  t.same([done.reply, told(done)], [{ outcome: 'accepted' }, ['job.settled job_1 completed']])
  t.match(done.events[0], { job: { worker_instance_id: 'box-wst_1', claim_attempt: 1 } })
  t.same(queue.line(), [])
})

t.test('a late failure ends the job only if its failures are used up', async (t) => {
  const queue = new QueueStage()
  queue.put('job_1', { max_attempts: 2 })
  queue.put('job_2', { max_attempts: 1 })
  const tokens = [queue.claim('job_1'), queue.claim('job_2')] as const
  queue.pass(60)
  const first = queue.report('job_1', tokens[0], 'failed')
  t.same(
    [first.reply, first.events],
    [{ outcome: 'accepted' }, []],
    'it waits for its next attempt already',
  )
  t.same(told(queue.report('job_2', tokens[1], 'failed')), ['job.settled job_2 failed'])
})

t.test('a superseded lease token has no effect', async (t) => {
  const queue = new QueueStage()
  queue.put('job_1')
  const old = queue.claim('job_1', 'wst_1')
  queue.pass(60)
  const token = queue.claim('job_1', 'wst_2')
  const before = JSON.stringify(queue.state)
  for (const wrong of [old, 'lt_x.default', '', '__proto__']) {
    t.same(queue.report('job_1', wrong).reply, { outcome: 'lease_lost' })
    t.same(queue.beat('job_1', wrong).reply, { alive: false })
    queue.run('queue.release', { job_id: 'job_1', lease_token: wrong })
  }
  for (const id of ['job_0', '__proto__', 'constructor'])
    t.same(queue.report(id, token).reply, { outcome: 'lease_lost' })
  queue.run('queue.lose', { session: 'wst_1', job_ids: ['job_1'] })
  t.equal(JSON.stringify(queue.state), before)
  t.same(queue.report('job_1', token).reply, { outcome: 'accepted' })
})

t.test(
  'a heartbeat extends the lease in memory and follows the worker to another gateway',
  async (t) => {
    const queue = new QueueStage()
    queue.put('job_1')
    const token = queue.claim('job_1')
    for (let n = 0; n < 10; n++) {
      queue.pass(50)
      const done = queue.beat('job_1', token, 'g2')
      t.same(
        [done.reply, done.events, done.soft.length],
        [{ alive: true }, [], 1],
        'nothing is journaled',
      )
    }
    t.same(queue.ask('leases', { session: 'wst_1' }), [{ job_id: 'job_1', lease_token: token }])
    t.same(queue.ask('leases', { session: 'wst_2' }), [])
  },
)

t.test(
  'an undelivered job is requeued without using an attempt; a delivered one stays leased',
  async (t) => {
    const queue = new QueueStage()
    queue.put('job_1', { max_attempts: 1, max_losses: 1 })
    const done = queue.run('queue.release', { job_id: 'job_1', lease_token: queue.claim('job_1') })
    t.match(
      [types(done), told(done), done.events[0]],
      [['job.requeued'], [], { job: { claim_attempt: 0 } }],
    )
    const token = queue.claim('job_1')
    queue.beat('job_1', token)
    t.same(
      queue.run('queue.release', { job_id: 'job_1', lease_token: token }).events,
      [],
      'the worker gave a sign of life',
    )
  },
)

t.test(
  'a new owner resends an assignment only if its lease is current and had no heartbeat',
  async (t) => {
    const queue = new QueueStage()
    const repeated = ({ effects }: { effects: readonly Effect[] }): boolean[] =>
      effects.flatMap((effect) =>
        'push' in effect ? !queue.actor.isObsolete?.(queue.state as never, effect.push) : [],
      )
    for (const id of ['job_1', 'job_2', 'job_3', 'job_4']) queue.put(id)
    const done = queue.run('queue.claim', {
      gateway: 'g1',
      takes: ['job_1', 'job_2', 'job_3', 'job_4'].map((job_id) => ({
        job_id,
        session: 'wst_1',
        instance: 'box',
      })),
    })
    const tokens = done.events.map(
      (event) => (event as typeof event & { readonly lease: LeaseGrant }).lease.token,
    )
    t.same(repeated(done), [true, true, true, true])
    queue.report('job_1', tokens[0] ?? '')
    queue.beat('job_2', tokens[1] ?? '')
    queue.run('queue.release', { job_id: 'job_3', lease_token: tokens[2] ?? '' })
    t.same(repeated(done), [false, false, false, true])
    queue.claim('job_3', 'wst_2')
    t.same(
      repeated(done),
      [false, false, false, true],
      'another lease is handed out by its own message',
    )
    const stop = queue.run('queue.cancel', { job_ids: ['job_4'], reason: 'enough' })
    t.same(repeated(stop), [true], 'a stop is always repeated')
  },
)

t.test('the leases of a session that has disconnected for good count as lost', async (t) => {
  const queue = new QueueStage()
  queue.put('job_1')
  queue.put('job_2')
  queue.claim('job_1', 'wst_1')
  queue.claim('job_2', 'wst_2')
  t.same(told(queue.run('queue.lose', { session: 'wst_1', job_ids: ['job_1', 'job_2'] })), [
    'job.retried job_1 lease_expired',
  ])
  t.same(queue.line(), ['job_1'])
})

t.test('a new owner extends every lease and every cancellation by one full duration', async (t) => {
  const queue = new QueueStage()
  for (const id of ['job_1', 'job_2', 'job_3']) queue.put(id)
  queue.claim('job_1')
  queue.pass(10)
  queue.claim('job_2')
  queue.run('queue.cancel', { job_ids: ['job_2'] })
  queue.pass(10)
  queue.claim('job_3')
  queue.at += 3_600_000
  queue.recover()
  t.equal(queue.deadline(), queue.at + 60_000)
  t.same(queue.pass(59), [])
  t.same(queue.pass(1).flatMap(told), [
    'job.retried job_1 lease_expired',
    'job.settled job_2 cancelled',
    'job.retried job_3 lease_expired',
  ])
})

t.test("after a takeover, the worker's gateway can end a lease without heartbeats", async (t) => {
  const queue = new QueueStage()
  queue.put('job_1')
  const token = queue.claim('job_1', 'wst_1')
  const expire = (session = 'wst_1', job_id = 'job_1') =>
    told(queue.run('queue.expire', { session, job_id }))
  t.same(expire(), [], 'an owner that gave the lease knows when it ends')
  // Every new owner restarts the full duration of the lease. With frequent takeovers, the lease
  // would therefore never expire on its own.
  for (let owners = 0; owners < 5; owners++) {
    queue.recover()
    t.same(queue.pass(51).flatMap(told), [])
  }
  t.same([...expire('wst_2'), ...expire('wst_1', 'job_2'), ...expire('wst_1', '__proto__')], [])
  t.same(expire(), ['job.retried job_1 lease_expired'])
  t.same(expire(), [], 'once')
  t.same(queue.beat('job_1', token).reply, { alive: false })

  const next = queue.claim('job_1', 'wst_1')
  queue.recover()
  queue.beat('job_1', next)
  t.same(expire(), [], 'a heartbeat to the new owner counts')
})

t.test('many leases that expire at once are ended in batches', async (t) => {
  const queue = new QueueStage()
  const ids = Array.from({ length: 150 }, (_, i) => `job_${i}`)
  for (const id of ids) queue.put(id)
  queue.claim(ids)
  t.same(
    queue.pass(60).map(({ events }) => events.length),
    [64, 64, 22],
  )
  t.equal(queue.line().length, 150)
})

t.test('the result of a generation must be a valid message', async (t) => {
  const queue = new QueueStage()
  const model = {
    kind: 'llm_generation' as const,
    provider: 'local',
    model: 'small-1',
    max_attempts: 3,
  }
  const { usage, ...whole } = {
    id: 'm',
    type: 'message',
    role: 'assistant',
    model: 'm',
    content: [],
    stop_reason: 'end_turn',
    usage: { input_tokens: 1, output_tokens: 0 },
  }
  const lacking = Object.keys(whole).map((name) => ({ ...whole, usage, [name]: undefined }))
  const odd = [
    { id: '' },
    { type: 'x' },
    { role: 'user' },
    { content: 'hi' },
    { stop_reason: null },
  ].map((more) => ({ ...whole, usage, ...more }))
  const counted = [
    undefined,
    null,
    {},
    { input_tokens: 1 },
    { ...usage, output_tokens: -1 },
    { ...usage, input_tokens: 1.5 },
    { ...usage, input_tokens: '1' },
    { ...usage, reasoning_tokens: -1 },
  ].map((counts) => ({ ...whole, usage: counts }))
  const bad = ['hi', ...lacking, ...odd, ...counted].map((llm_response) => ({ llm_response }))
  for (const [i, result] of [undefined, { text: 'hi' }, ...bad].entries()) {
    queue.put(`job_${i}`, model)
    t.match(
      settledInput(
        queue.report(`job_${i}`, queue.claim(`job_${i}`), 'completed', result ? { result } : {}),
      ),
      { outcome: 'failed', error_type: 'InvalidResult' },
      JSON.stringify(result),
    )
  }
  for (const [i, counts] of [
    usage,
    { ...usage, cache_read_input_tokens: null, cache_creation_input_tokens: 3, other: {} },
  ].entries()) {
    queue.put(`job_good_${i}`, model)
    t.match(
      settledInput(
        queue.report(`job_good_${i}`, queue.claim(`job_good_${i}`), 'completed', {
          result: { llm_response: { ...whole, usage: counts } },
        }),
      ),
      { outcome: 'completed' },
    )
  }
})

t.test('a job without a run sends no messages and needs no parameters from a run', async (t) => {
  const queue = new QueueStage()
  const { run_id: _run, ...alone } = { run_id: '' }
  queue.put('job_1')
  const job = {
    ...queue.ask<Record<string, unknown>[]>('waiting', { limit: 1 })[0],
    ...alone,
    id: 'job_2',
  } as Record<string, unknown>
  delete job['run_id']
  queue.run('queue.enqueue', { job: job as never, record: {} as never })
  const done = queue.run('queue.claim', {
    gateway: 'g1',
    takes: [{ job_id: 'job_2', session: 'wst_1', instance: 'box' }],
  })
  t.notOk('spec' in (done.effects[0] as { push: object }).push)
  t.same(queue.report('job_2', 'lt_secret1.default').tells, [])
})
