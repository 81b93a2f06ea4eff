/** The lease expiry times and last heartbeats that a queue reports for leased jobs. */
import t from 'tap'
import { timestamp } from '../../../protocol/common.ts'
import { defaultTiming } from '../../../protocol/workers/timing.ts'
import { QueueStage } from './queue-stage.ts'

t.test('a renewal contains the last heartbeat that the current owner received', async (t) => {
  const queue = new QueueStage()
  queue.put('job_1')
  queue.put('job_2')
  const token = queue.claim('job_1')
  const leases = () => queue.ask('renewals', { job_ids: ['job_1', 'job_2', 'job_3'] })
  const expiry = () => timestamp(queue.at + defaultTiming.lease * 1000)
  t.same(leases(), [{ job_id: 'job_1', lease_expires_at: expiry() }], 'only leased jobs')
  queue.pass(50)
  queue.beat('job_1', token, 'g1')
  t.same(leases(), [
    { job_id: 'job_1', lease_expires_at: expiry(), last_heartbeat_at: timestamp(queue.at) },
  ])
  queue.pass(5)
  queue.recover()
  t.same(leases(), [{ job_id: 'job_1', lease_expires_at: expiry() }], 'a new owner knows a bound')
})
