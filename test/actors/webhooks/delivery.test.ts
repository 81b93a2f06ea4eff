/** A delivery, command by command: attempts, which of them count, and when it ends. */
import t from 'tap'
import { deliveryActor } from '../../../actors/webhooks/delivery.ts'
import {
  type AttemptOutcome,
  type DeliveryOpening,
  MAX_ATTEMPTS,
  pauseAfter,
  START_TIMEOUT_MS,
} from '../../../protocol/webhooks/delivery.ts'
import type { DeliveryRecord } from '../../../protocol/webhooks/rows.ts'
import { given, type Scene, START, typesOf } from '../../support/given.ts'

interface State {
  readonly record: DeliveryRecord
  readonly job_id?: string
  readonly next?: number
}
const opening: DeliveryOpening = {
  to: { kind: 'webhook', webhook_id: 'wbh_1' },
  event_type: 'order.paid',
  body: { type: 'order.paid', data: { n: 1 } },
  run_id: 'run_1',
}
const opened = (more: Partial<DeliveryOpening> = {}) =>
  given<State>(deliveryActor).when('delivery.open', { ...opening, ...more })
const begin = (scene: Scene<State>, at = scene.at) =>
  scene.when('delivery.begin', { job_id: scene.state.job_id ?? '' }, { at })
const settle = (scene: Scene<State>, result?: AttemptOutcome, at = scene.at) =>
  scene.when(
    'job.settled',
    {
      job_id: scene.state.job_id ?? '',
      outcome: result ? 'completed' : 'failed',
      attempt: 1,
      ...(result && { result }),
    },
    { at },
  )
const failing: AttemptOutcome = {
  delivered: false,
  response_code: 503,
  error: 'The receiver returned 503.',
  pause: 5000,
}

t.test('a delivery is opened once, with a job in the queue of its shard', async (t) => {
  const made = opened()
  t.match(made.state.record, {
    id: 'delivery_1',
    webhook_id: 'wbh_1',
    event_type: 'order.paid',
    status: 'pending',
    attempts: 0,
    run_id: 'run_1',
    created_at: '2026-01-01T00:00:00.000Z',
  })
  t.match(made.tells, [
    {
      to: { kind: 'queue', id: '0.$deliveries' },
      name: 'queue.enqueue',
      input: {
        job: {
          id: 'job_1',
          kind: 'delivery',
          delivery_id: 'delivery_1',
          executor_kind: 'server_worker',
          fairness_key: 'wbh_1',
          max_attempts: 1,
          max_losses: 1,
        },
      },
    },
  ])
  t.strictSame(made.ask('content'), opening)
  const again = made.when('delivery.open', opening)
  t.strictSame([again.events, again.tells], [[], []])
  t.equal(given<State>(deliveryActor).ask('content'), null)
})

t.test(
  'an attempt is counted when it begins; a receiver that accepts it ends the delivery',
  async (t) => {
    const begun = begin(opened())
    t.strictSame(begun.reply, { attempt: 1 })
    t.match(begun.state.record, { status: 'processing', attempts: 1 })
    const done = settle(begun, { delivered: true, response_code: 204, latency_ms: 7 }, START + 10)
    t.match(done.state.record, {
      status: 'delivered',
      delivered_at: '2026-01-01T00:00:00.010Z',
      response_code: 204,
    })
    t.strictSame(done.ask('outcome'), { status: 'delivered', response_code: 204, latency_ms: 7 })
    t.strictSame(
      [
        settle(done, failing).events,
        begin(done).reply,
        done.when('wake', {}, { at: START + 1e9 }).events,
        done.deadline(),
      ],
      [[], { attempt: 0 }, [], undefined],
    )
    t.strictSame(
      begun.when('delivery.begin', { job_id: 'job_other' }).reply,
      { attempt: 0 },
      'a job that is not its own begins nothing',
    )
  },
)

t.test('a retryable failure is retried after a pause, up to the tenth attempt', async (t) => {
  let scene: Scene<State> = opened()
  for (let n = 1; n <= MAX_ATTEMPTS; n++) {
    const failed = settle(begin(scene), failing)
    if (n === MAX_ATTEMPTS) {
      t.match(failed.state.record, {
        status: 'failed',
        attempts: 10,
        last_error: 'The receiver returned 503.',
        response_code: 503,
      })
      t.equal(failed.deadline(), undefined)
      return
    }
    t.match(failed.state.record, { status: 'pending', attempts: n, next_attempt_at: /Z$/ })
    t.equal(failed.deadline(), failed.at + 5000)
    t.strictSame(failed.when('wake', {}, { at: failed.at + 4999 }).events, [])
    const due = failed.when('wake', {}, { at: failed.at + 5000 })
    t.match(due.tells, [{ name: 'queue.enqueue', input: { job: { id: due.state.job_id } } }])
    t.notOk('next_attempt_at' in due.state.record)
    scene = due
  }
})

t.test(
  'a permanent failure ends the delivery; a lost executor counts only after the attempt began',
  async (t) => {
    const { pause: _, ...final } = failing
    t.match(settle(begin(opened()), final).state.record, { status: 'failed', attempts: 1 })
    const lost = settle(begin(opened()))
    t.match(lost.state.record, { status: 'pending', attempts: 1, last_error: /lost/ })
    t.notOk('response_code' in lost.state.record)
    t.match(settle(opened()).state.record, { status: 'pending', attempts: 0 })
  },
)

t.test('a test delivery has one attempt, which must begin in time', async (t) => {
  const test = opened({ once: true })
  t.strictSame(begin(test, START + START_TIMEOUT_MS + 1).reply, { attempt: 0 })
  t.match(settle(begin(test), failing).state.record, { status: 'failed', attempts: 1 })
  t.match(settle(test).state.record, { status: 'failed', attempts: 0 })
  t.strictSame(typesOf(settle(begin(test))), ['delivery.failed'])
})

t.test('pauses grow, vary a little, and yield to a longer Retry-After', async (t) => {
  t.strictSame(
    [1, 2, 3, 4, 5, 6, 7, 8, 9].map((n) => pauseAfter(n, 0.5) / 1000),
    [5, 30, 120, 300, 600, 1800, 3600, 7200, 14_400],
  )
  t.strictSame(
    [pauseAfter(1, 0), pauseAfter(1, 1), pauseAfter(0, 0.5), pauseAfter(99, 0.5)],
    [4000, 6000, 5000, 14_400_000],
  )
  t.strictSame(
    [pauseAfter(1, 0.5, 60_000), pauseAfter(1, 0.5, 1e9), pauseAfter(9, 0.5, 1e9)],
    [60_000, 3_600_000, 14_400_000],
  )
})
