/** The total number of attempts of a job whose step sets `retry.max_attempts`. */
import t from 'tap'
import { QueueStage, told } from './queue-stage.ts'

t.test('a step with retry bounds the sum of lost leases and reported failures', async (t) => {
  const step = (max: number) => {
    const queue = new QueueStage()
    queue.put('job_1', { max_attempts: max, max_losses: max, strict: true })
    return {
      queue,
      fail: () => told(queue.report('job_1', queue.claim('job_1'), 'failed')),
      lose: () => {
        queue.claim('job_1')
        return queue.pass(60).flatMap(told)
      },
    }
  }
  const [failure, loss] = [['job.retried job_1 failure'], ['job.retried job_1 lease_expired']]
  const failed = ['job.settled job_1 failed']

  const lost = step(2)
  t.same([lost.fail(), lost.lose()], [failure, failed])
  const reported = step(2)
  t.same([reported.lose(), reported.fail()], [loss, failed])
  const three = step(3)
  t.same([three.lose(), three.fail(), three.lose()], [loss, failure, failed])

  const left = step(2)
  const token = left.queue.claim('job_1')
  t.same(left.queue.pass(60).flatMap(told), loss)
  t.same(told(left.queue.report('job_1', token, 'failed')), [], 'a late report is no other attempt')
  t.same(left.fail(), failed)

  const returned = step(1)
  const lease_token = returned.queue.claim('job_1')
  returned.queue.run('queue.release', { job_id: 'job_1', lease_token })
  t.same(told(returned.queue.report('job_1', lease_token, 'failed')), failed)
})
