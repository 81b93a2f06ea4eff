/**
 * Jobs that are pinned to a managed environment. The environment decides when they may be claimed.
 * Until then, the queue offers them to no worker. The effects of a queue (deliveries.ts) notify the
 * environment when a job arrives and when it ends.
 */
import { timestamp } from '../../protocol/common.ts'
import type { EnvironmentQueueCommands } from '../../protocol/environments/commands.ts'
import type { QueueEvent } from '../../protocol/jobs/rows.ts'
import type { Decided } from '../actor.ts'
import { endJob, mergeEnded } from './outcomes.ts'
import { find, type Held, type QueueState } from './state.ts'

type Input<N extends keyof EnvironmentQueueCommands> = EnvironmentQueueCommands[N]['input']

/**
 * Returns the given jobs that are pinned to a managed environment and not leased, without
 * duplicates.
 */
const unleased = (state: QueueState, ids: readonly string[]): Held[] =>
  [...new Set(ids)].flatMap((id) => {
    const held = find(state, id)
    return held?.header.environment && !held.lease ? [held] : []
  })

/**
 * Makes jobs available for claims. A job that was already admitted keeps its fence, so a repeat
 * changes nothing.
 */
export const admit = (
  state: QueueState,
  { job_ids, fence }: Input<'queue.admit'>,
  { at }: { readonly at: number },
): Decided<QueueEvent, undefined> => ({
  events: unleased(state, job_ids)
    .filter(({ gated }) => gated)
    .map(({ header: { id } }) => ({
      type: 'job.admitted',
      id,
      fence,
      job: { updated_at: timestamp(at) },
    })),
  reply: undefined,
})

/** Fails jobs that no worker of their environment can execute, even if they have attempts left. */
export const unavailable = (
  state: QueueState,
  { job_ids, error_type, error_message }: Input<'queue.unavailable'>,
  { at }: { readonly at: number },
): Decided<QueueEvent, undefined> => ({
  ...mergeEnded(
    unleased(state, job_ids).map((held) =>
      endJob(held, { outcome: 'failed', error_type, error_message }, at),
    ),
  ),
  reply: undefined,
})
