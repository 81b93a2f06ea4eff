/**
 * Uploads by workers: the job to which a lease token belongs, and publication only under the
 * current lease.
 */
import t from 'tap'
import type { LeaseFacts } from '../../../protocol/artifacts/commands.ts'
import { QueueStage } from './queue-stage.ts'

const stored = { size_bytes: 1, sha256: 'aa', name: 'a.txt', mime_type: 'text/plain' }
const publish = (queue: QueueStage, lease_token: string, job_id = 'job_1') =>
  queue.run('job.publish_artifact', { lease_token, job_id, artifact_id: 'art_1', ...stored })
const leaseOf = (queue: QueueStage, lease_token: string) =>
  queue.ask<LeaseFacts | null>('lease', { lease_token })

t.test('a token belongs to the job under its lease', async (t) => {
  const queue = new QueueStage()
  queue.put('job_1')
  queue.put('job_2')
  queue.claim('job_2', 'wst_2')
  const token = queue.claim('job_1', 'wst_1')
  t.same(leaseOf(queue, token), {
    job_id: 'job_1',
    attempt: 1,
    worker_session_id: 'wst_1',
    worker_instance_id: 'box-wst_1',
    run_id: 'run_1',
    step_id: 'run_1:mail',
    step_key: 'mail',
  })
  t.equal(leaseOf(queue, `${token}x`), null)
})
t.test('the current lease publishes', async (t) => {
  const queue = new QueueStage()
  queue.put('job_1')
  const token = queue.claim('job_1')
  const done = publish(queue, token)
  t.same(done.reply, { outcome: 'published' })
  t.same(done.tells, [
    {
      to: { kind: 'artifact', id: 'art_1' },
      name: 'artifact.complete',
      input: { ...stored, lease: { job_id: 'job_1', attempt: 1 } },
    },
  ])
})
t.test('a superseded, ended or foreign lease publishes nothing', async (t) => {
  const queue = new QueueStage()
  queue.put('job_1')
  queue.put('job_2')
  const first = queue.claim('job_1')
  const foreign = queue.claim('job_2')
  const refused = (token: string) => {
    const done = publish(queue, token)
    t.same([done.reply, done.tells], [{ outcome: 'lease_lost' }, []])
  }
  refused(foreign)
  queue.run('queue.lose', { session: 'wst_1', job_ids: ['job_1'] })
  refused(first)
  t.equal(leaseOf(queue, first), null)
  const second = queue.claim('job_1')
  refused(first)
  t.same(publish(queue, second).reply, { outcome: 'published' })
  queue.report('job_1', second)
  refused(second)
})
