/**
 * Limits of a run: how often the lease of its job may be lost, and how much output it may store.
 */
import t from 'tap'
import { service, type TestWorker } from '../../support/service.ts'
import { acting, ended, until } from '../support/given.ts'
import { hasty, jobOf } from '../support/sockets.ts'

const s = await service(hasty)
t.teardown(() => s.stop())

/** Claims the next job of an action and drops the worker's connection. Returns the job. */
async function lose(action: string): Promise<Record<string, never>> {
  const worker: TestWorker = await s.worker({ action_names: [action] })
  const job = await worker.job()
  worker.socket.terminate()
  return job
}

t.test(
  'a job of a repeatable action may lose two leases, unless its step allows fewer',
  async (t) => {
    for (const [name, annotations] of [
      ['reads', { read_only: true }],
      ['sets', { idempotent: true }],
    ] as const)
      await s.ok('action.create', { name, endpoint_kind: 'worker', annotations })
    const run = await s.ok('run.start', { spec: acting('reads') })
    const once = await s.ok('run.start', {
      spec: acting('sets', { retry: { max_attempts: 1 } }),
    })
    t.match(await lose('sets'), { claim_attempt: 1 })
    t.match(await lose('reads'), { claim_attempt: 1 })
    t.match(await lose('reads'), { claim_attempt: 2 })
    const worker = await s.worker({ action_names: ['reads'] })
    const job = await worker.job()
    t.match(job, { claim_attempt: 3 })
    await worker.report(job, { result: { by: 'the third' } })
    t.match(await ended(s, run['id']), {
      status: 'completed',
      result: { call: { by: 'the third' } },
    })
    t.match(await ended(s, once['id']), { status: 'failed', error_type: 'lease_expired' })
    t.match(
      await until(
        () => jobOf(s, once),
        ({ status }) => status === 'failed',
        'the end of the job',
        200,
      ),
      { claim_attempt: 1 },
    )
    worker.close()
  },
)

t.test('a step whose output exceeds the limit of its run fails and is named', async (t) => {
  const worker = await s.worker({ action_names: ['big'] })
  const steps = [...'abcdefg'].map((id) => ({
    id,
    kind: 'action',
    config: { action_name: 'big' },
  }))
  const run = await s.ok('run.start', { spec: { steps, output: { done: true } } })
  for (const _ of steps)
    await worker.report(await worker.job(), { result: { text: 'x'.repeat(1_000_000) } })
  t.match(await ended(s, run['id']), {
    status: 'failed',
    error_type: 'outputs_too_large',
    error_message: /^The output of the step g has 1000011 bytes/,
  })
  worker.close()
})
