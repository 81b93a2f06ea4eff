/**
 * Reports from executors to a queue: retries after a backoff, final failures, and the limit on
 * lost leases.
 */
import t from 'tap'
import { QueueStage, told } from './queue-stage.ts'

const report = (queue: QueueStage, id: string, token: string, more: object) =>
  queue.run('queue.report', {
    job_id: id,
    lease_token: token,
    status: 'failed',
    error_type: 'http_503',
    ...more,
  } as never)

t.test(
  'a job that rests between attempts cannot be claimed and does not block others; it wakes its queue',
  async (t) => {
    const queue = new QueueStage()
    queue.put('job_1', { max_attempts: 3 })
    queue.put('job_2')
    const began = queue.at
    t.strictSame(told(report(queue, 'job_1', queue.claim('job_1'), { retry_in: 5000 })), [
      'job.retried job_1 failure',
    ])
    t.strictSame(queue.line(), ['job_2'])
    t.strictSame(queue.ask('depth', {}), { waiting: 2, leased: 0 })
    t.equal(queue.claim('job_1'), '', 'it cannot be claimed')
    t.strictSame(queue.pass(4), [])
    const [woken] = queue.pass(2)
    t.match(woken?.events, [{ type: 'job.rested', id: 'job_1' }])
    t.ok(queue.at >= began + 5000)
    t.strictSame(queue.line(), ['job_1', 'job_2'], 'and it kept its position')
    t.match(queue.report('job_1', queue.claim('job_1')).reply, { outcome: 'accepted' })
  },
)

t.test('a resting job can be cancelled, and ignores a late report', async (t) => {
  for (const end of ['cancel', 'late'] as const) {
    const queue = new QueueStage()
    queue.put('job_1', { max_attempts: 3 })
    queue.put('job_2')
    const token = queue.claim('job_1')
    const other = queue.claim('job_2')
    report(queue, 'job_1', token, { retry_in: 60_000 })
    queue.recover()
    if (end === 'cancel')
      t.match(told(queue.run('queue.cancel', { job_ids: ['job_1'] })), [
        'job.settled job_1 cancelled',
      ])
    else
      t.match(
        queue.run('queue.report', { job_id: 'job_1', lease_token: token, status: 'completed' })
          .reply,
        { outcome: 'duplicate' },
      )
    t.match(queue.report('job_2', other).reply, { outcome: 'accepted' })
    if (end === 'late')
      t.match(queue.run('queue.cancel', { job_ids: ['job_1'] }).events, [{ type: 'job.cancelled' }])
    t.strictSame(queue.ask('depth', {}), { waiting: 0, leased: 0 })
  }
})

t.test('rests and leases end in order of their deadlines, also after a takeover', async (t) => {
  const queue = new QueueStage()
  for (let n = 1; n <= 9; n++) {
    queue.put(`job_${n}`, { max_attempts: 5, max_losses: 5 })
    const token = queue.claim(`job_${n}`)
    if (n % 3 !== 0) report(queue, `job_${n}`, token, { retry_in: (10 - n) * 1000 })
  }
  queue.recover()
  const rested = queue
    .pass(30)
    .flatMap(({ events }) => events)
    .map((event) => [event.type, (event as { id?: string }).id])
  t.strictSame(
    rested.filter(([type]) => type === 'job.rested').map(([, id]) => id),
    ['job_8', 'job_7', 'job_5', 'job_4', 'job_2', 'job_1'],
  )
})

t.test('a final failure ends the job whatever attempts are left', async (t) => {
  const queue = new QueueStage()
  queue.put('job_1', { max_attempts: 9 })
  const done = report(queue, 'job_1', queue.claim('job_1'), {
    final: true,
    invocation: { action_id: 'act_1' },
  })
  t.match(done.events, [{ type: 'job.failed', invocation: { action_id: 'act_1' } }])
  t.strictSame(told(done), ['job.settled job_1 failed'])
})

t.test(
  'a claim can raise max_losses for work that is safe to repeat, but never lowers it',
  async (t) => {
    const queue = new QueueStage()
    queue.put('job_1', { max_attempts: 1, max_losses: 1 })
    const claim = () =>
      queue.run('queue.claim', {
        gateway: 'x-n1',
        takes: [{ job_id: 'job_1', session: 'wst_x', instance: 'x-n1', served: true, losses: 3 }],
      })
    t.match(claim().events, [
      { header: { max_losses: 3 }, job: { executor_kind: 'server_worker' } },
    ])
    const lose = () => queue.pass(61).flatMap(({ tells }) => told({ tells }))
    t.strictSame(lose(), ['job.retried job_1 lease_expired'])
    queue.claim('job_1')
    t.strictSame(
      lose(),
      ['job.retried job_1 lease_expired'],
      'also after a claim without the higher limit',
    )
    claim()
    t.strictSame(lose(), ['job.settled job_1 failed'])
  },
)
