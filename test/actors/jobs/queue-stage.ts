/** The actor of one queue for tests, with a method for each command that tests use often. */
import { queueActor } from '../../../actors/jobs/queue.ts'
import type { QueueState } from '../../../actors/jobs/state.ts'
import { timestamp } from '../../../protocol/common.ts'
import type { QueueCommands } from '../../../protocol/internal.ts'
import type { Job, JobHeader, LeaseGrant } from '../../../protocol/jobs/rows.ts'
import { defaultTiming } from '../../../protocol/workers/timing.ts'
import { type Done, Stage } from '../support/stage.ts'

const header = (id: string, fields: Partial<JobHeader> = {}): JobHeader => ({
  id,
  kind: 'action_execution',
  origin: 'loop_action_step',
  executor_kind: 'customer_worker',
  action_name: 'mail',
  run_id: 'run_1',
  step_id: 'run_1:mail',
  step_key: 'mail',
  priority: 0,
  fairness_key: 'all',
  enqueued_at: 1_000_000,
  max_attempts: 2,
  max_losses: 2,
  ...fields,
})
const record = (job: JobHeader): Job => ({
  id: job.id,
  kind: job.kind === 'llm_generation' ? job.kind : 'action_execution',
  origin: job.origin,
  executor_kind: job.executor_kind,
  queue: 'default',
  status: 'queued',
  claim_attempt: 0,
  max_attempts: job.max_attempts,
  cancel_requested: false,
  created_at: timestamp(job.enqueued_at),
  updated_at: timestamp(job.enqueued_at),
})

export class QueueStage extends Stage<QueueState, QueueCommands> {
  constructor(name = 'default') {
    super(queueActor(defaultTiming), { project: 'prj_1', kind: 'queue', id: `0.${name}` })
  }
  put(id: string, fields: Partial<JobHeader> = {}): Done<undefined> {
    const job = header(id, { enqueued_at: this.at, ...fields })
    return this.run('queue.enqueue', { job, record: record(job) })
  }
  /** Claims jobs for a session. Returns the token of the last claimed job. */
  claim(ids: string | readonly string[], session = 'wst_1', gateway = 'g1'): string {
    const done = this.run('queue.claim', {
      gateway,
      takes: [ids].flat().map((job_id) => ({ job_id, session, instance: `box-${session}` })),
    })
    const last = done.events.at(-1) as
      | ((typeof done.events)[number] & { readonly lease: LeaseGrant })
      | undefined
    return last?.lease.token ?? ''
  }
  report(
    job_id: string,
    lease_token: string,
    status: 'completed' | 'failed' | 'cancelled' = 'completed',
    more: {
      error_type?: string
      error_message?: string
      result?: Record<string, unknown>
      retry_in?: number
      final?: true
    } = {},
  ) {
    return this.run('queue.report', { job_id, lease_token, status, ...more })
  }
  beat(job_id: string, lease_token: string, gateway = 'g1') {
    return this.run('queue.heartbeat', { job_id, lease_token, gateway })
  }
  /** Returns the ids of the waiting jobs, in the order in which they are offered. */
  line(limit = 1000): string[] {
    return this.ask<JobHeader[]>('waiting', { limit }).map(({ id }) => id)
  }
}
/**
 * Returns the tells to runs, each as `name job outcome`, or as `name job reason` if there is no
 * outcome.
 */
export const told = (done: {
  readonly tells: readonly { name: string; input: unknown }[]
}): string[] =>
  done.tells.map(({ name, input }) => {
    const { job_id, outcome, reason } = input as {
      job_id: string
      outcome?: string
      reason?: string
    }
    return `${name} ${job_id} ${outcome ?? reason}`
  })
