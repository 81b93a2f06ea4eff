/** Publication of the artifacts that workers upload under the lease of a job. */
import type { LeaseFacts } from '../../protocol/artifacts/commands.ts'
import type { QueueCommands } from '../../protocol/internal.ts'
import type { QueueEvent } from '../../protocol/jobs/rows.ts'
import type { Decided } from '../actor.ts'
import { find, type QueueState } from './state.ts'

/**
 * Publishes an artifact if the lease is current. The artifact is in the shard of the job and is
 * completed in the same commit, so an upload under a superseded lease never becomes visible.
 */
export function publishArtifact(
  state: QueueState,
  { lease_token, job_id, artifact_id, ...stored }: QueueCommands['job.publish_artifact']['input'],
): Decided<QueueEvent, QueueCommands['job.publish_artifact']['reply']> {
  const lease = find(state, job_id)?.lease
  if (lease?.token !== lease_token) return { events: [], reply: { outcome: 'lease_lost' } }
  return {
    events: [],
    tells: [
      {
        to: { kind: 'artifact', id: artifact_id },
        name: 'artifact.complete',
        input: { ...stored, lease: { job_id, attempt: lease.attempt } },
      },
    ],
    reply: { outcome: 'published' },
  }
}

/**
 * Returns the facts about the current lease with this token, or null if there is no such lease.
 * @param job_id the only job that is examined. By default, all leased and resting jobs are
 * examined.
 */
export function leaseOf(
  state: QueueState,
  { lease_token, job_id: only }: { readonly lease_token: string; readonly job_id?: string },
): LeaseFacts | null {
  for (const job_id of only === undefined ? state.due : [only]) {
    const held = find(state, job_id)
    if (held?.lease?.token !== lease_token) continue
    const { lease, header } = held
    const { run_id, step_id, step_key, session_id, agent_turn_id } = header
    return {
      job_id,
      attempt: lease.attempt,
      worker_session_id: lease.session,
      worker_instance_id: lease.instance,
      ...(run_id !== undefined && { run_id }),
      ...(step_id !== undefined && { step_id }),
      ...(step_key !== undefined && { step_key }),
      ...(session_id !== undefined && { session_id }),
      ...(agent_turn_id !== undefined && { agent_turn_id }),
    }
  }
  return null
}
