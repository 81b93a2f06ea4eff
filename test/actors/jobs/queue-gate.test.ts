/** Jobs that are pinned to an environment, which admits them to the queue. */
import t from 'tap'
import { QueueStage } from './queue-stage.ts'

t.test('a job that is pinned to an environment waits for its admission', async (t) => {
  const queue = new QueueStage()
  const environment = { holder: { kind: 'run' as const, id: 'run_1' } }
  const put = queue.put('job_1', { environment_id: 'env_1', environment })
  t.match(put.effects, [
    {
      tell: {
        to: { kind: 'environment', id: 'env_1' },
        name: 'environment.use',
        input: { job_id: 'job_1', queue: '0.default', holder: { kind: 'run' } },
      },
    },
  ])
  queue.put('job_2')
  t.same(queue.line(), ['job_2'])
  t.equal(queue.claim('job_1'), '', 'it cannot be claimed')
  const admitted = queue.run('queue.admit', { job_ids: ['job_1'], fence: 3 })
  t.match(admitted.effects, [{ offer: { queue: 'default' } }])
  t.same(queue.run('queue.admit', { job_ids: ['job_1'], fence: 4 }).events, [], 'a repeat')
  t.same(queue.line().sort(), ['job_1', 'job_2'])
  const claimed = queue.run('queue.claim', {
    gateway: 'g1',
    takes: [{ job_id: 'job_1', session: 'wst_1', instance: 'box' }],
  })
  t.match(claimed.effects, [
    { push: { message: { job: { spec: { environment: { fence: 3 } } } } } },
  ])
  const { token } = queue.state.jobs['job_1']?.lease ?? { token: '' }
  const refused = { error_type: 'environment_worker_unavailable', error_message: 'No worker.' }
  t.same(queue.run('queue.unavailable', { job_ids: ['job_1'], ...refused }).events, [], 'leased')
  t.match(queue.report('job_1', token).effects, [
    { tell: { name: 'environment.done', input: { job_id: 'job_1' } } },
  ])
})

t.test('a job whose environment has no worker fails at once, whatever it has left', async (t) => {
  const queue = new QueueStage()
  const environment = { holder: { kind: 'run' as const, id: 'run_1' } }
  queue.put('job_1', { environment_id: 'env_1', environment, max_attempts: 5 })
  const refused = { error_type: 'environment_worker_unavailable', error_message: 'No worker.' }
  const failed = queue.run('queue.unavailable', { job_ids: ['job_1', 'job_9'], ...refused })
  t.match(failed.tells, [
    { name: 'job.settled', input: { outcome: 'failed', attempt: 0, ...refused } },
  ])
  queue.put('job_2', { environment_id: 'env_1', environment })
  t.match(queue.run('queue.cancel', { job_ids: ['job_2'] }).events, [{ type: 'job.cancelled' }])
})
