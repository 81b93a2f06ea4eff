/**
 * Jobs that wait until their environment admits them: order, retries, refusals and journals of
 * earlier releases. The common case is in `queue.test.ts`, and random histories are in
 * `queue.model.test.ts`.
 */
import t from 'tap'
import { evolve } from '../../../actors/actor.ts'
import { queueActor } from '../../../actors/jobs/queue.ts'
import type { JobEnvironment } from '../../../protocol/environments/commands.ts'
import { defaultTiming } from '../../../protocol/workers/timing.ts'
import { QueueStage, told } from './queue-stage.ts'

const environment_id = 'env_01'
const environment: JobEnvironment = { holder: { kind: 'run', id: 'run_1' }, passive: true }
const pinned = { environment_id, environment }

t.test('a job with a label that a worker chose is not gated', async (t) => {
  const queue = new QueueStage()
  t.same(queue.put('job_1', { environment_id: 'gpu-box' }).effects, [
    { offer: { queue: 'default' } },
  ])
  t.same(queue.line(), ['job_1'])
  const token = queue.claim('job_1')
  t.same(queue.report('job_1', token).effects, [], 'its end is told to no environment')
})

t.test('an admitted job takes the place that its age gives it', async (t) => {
  const queue = new QueueStage()
  queue.put('job_1', pinned)
  queue.at += 1000
  queue.put('job_2', pinned)
  queue.run('queue.admit', { job_ids: ['job_2'], fence: 7 })
  t.same(queue.line(), ['job_2'])
  const done = queue.run('queue.admit', { job_ids: ['job_1', 'job_2', 'job_9'], fence: 7 })
  t.same(done.effects, [{ offer: { queue: 'default' } }])
  t.equal(done.events.length, 1, 'other jobs are not affected')
  t.same(queue.line(), ['job_1', 'job_2'])
  t.same(queue.run('queue.admit', { job_ids: ['job_1'], fence: 7 }).events, [], 'a repeat')
})

t.test('a retried job is not gated again, and keeps its number', async (t) => {
  const queue = new QueueStage()
  queue.put('job_1', pinned)
  queue.run('queue.admit', { job_ids: ['job_1'], fence: 7 })
  const claim = () =>
    queue.run('queue.claim', {
      gateway: 'g1',
      takes: [{ job_id: 'job_1', session: 'wst_1', instance: 'box' }],
    })
  const first = claim()
  t.match(first.effects, [{ push: { message: { job: { spec: { environment: { fence: 7 } } } } } }])
  t.same(
    queue.run('queue.admit', { job_ids: ['job_1'], fence: 9 }).events,
    [],
    'a job under a lease keeps its number',
  )
  queue.pass(61)
  t.same(queue.line(), ['job_1'], 'after a lost lease, the job is not gated again')
  t.match(claim().effects, [
    { push: { message: { job: { spec: { environment: { fence: 7 } } } } } },
  ])
})

t.test('a job that no worker can do fails at once, and its environment is notified', async (t) => {
  const queue = new QueueStage()
  queue.put('job_1', pinned)
  queue.put('job_2', pinned)
  queue.put('job_3')
  queue.put('job_4', pinned)
  queue.run('queue.admit', { job_ids: ['job_2', 'job_4'], fence: 1 })
  queue.claim('job_4')
  const done = queue.run('queue.unavailable', {
    job_ids: ['job_1', 'job_1', 'job_2', 'job_3', 'job_4'],
    error_type: 'environment_worker_unavailable',
    error_message: 'no worker came',
  })
  t.same(told(done), ['job.settled job_1 failed', 'job.settled job_2 failed'])
  t.match(done.tells[0]?.input, {
    attempt: 0,
    error_type: 'environment_worker_unavailable',
    error_message: 'no worker came',
  })
  t.same(
    done.effects.map((effect) => 'tell' in effect && [effect.tell.name, effect.tell.input]),
    [
      ['environment.done', { job_id: 'job_1' }],
      ['environment.done', { job_id: 'job_2' }],
    ],
  )
  t.same(queue.line(), ['job_3'])
})

t.test('a gated job can be cancelled', async (t) => {
  const queue = new QueueStage()
  queue.put('job_1', pinned)
  t.same(told(queue.run('queue.cancel', { job_ids: ['job_1'] })), ['job.settled job_1 cancelled'])
  t.same(queue.run('queue.admit', { job_ids: ['job_1'], fence: 1 }).events, [], 'a late admission')
  t.same(queue.line(), [])
})

t.test('a queued job of an earlier release with a managed id is not gated', async (t) => {
  const queue = new QueueStage()
  const { events } = queue.put('job_1', { environment_id })
  const state = events.reduce<unknown>(
    (before, event) => evolve(queue.actor, before, event, queue.at),
    queueActor(defaultTiming).initial(),
  )
  t.match(state, { jobs: { job_1: { gated: undefined } } })
  t.same(queue.line(), ['job_1'])
})
