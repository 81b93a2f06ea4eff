/**
 * Confirmation of new members. Before the gateway sends the command that adds members, it checks
 * that they are active principals. A principal may be disabled between this check and the commit.
 * The commit that adds members therefore also enqueues a background job. The job checks the members
 * again and expels those that are not active. In a direct message, however, a disabled member
 * stays.
 *
 * Invariant: a principal that is disabled before the second check is expelled by that check, except
 * from a direct message. A principal that is disabled later is removed by the job that this change
 * enqueues, because that job already finds the membership (actors/projects/access/partings.ts).
 */

import type { ConfirmationEvent } from '../../protocol/channels/confirmation.ts'
import type { ChannelEvent } from '../../protocol/channels/schema.ts'
import { ERRANDS, errandJob } from '../../protocol/errand.ts'
import type { RunCommands } from '../../protocol/internal.ts'
import { getOwn } from '../../protocol/lookup.ts'
import type { Cause, Decision, Tell } from '../actor.ts'
import type { ChannelState } from './state.ts'

/**
 * Returns the command that enqueues a confirmation job for new members, and the event that records
 * this job.
 */
export function confirm(
  channel_id: string,
  member_ids: readonly string[],
  cause: Cause,
): { readonly event: ConfirmationEvent; readonly tell: Tell } {
  const job_id = cause.mint('job')
  return {
    event: { type: 'confirmation.begun', job_id, member_ids },
    tell: {
      to: { kind: 'queue', id: `${cause.shard}.${ERRANDS}` },
      name: 'queue.enqueue',
      input: errandJob(job_id, { kind: 'channel', id: channel_id }, channel_id, cause.at),
    },
  }
}

/**
 * Handles the end of a confirmation job. If the job did not complete, another job is enqueued.
 * Returns undefined if the job is not a confirmation.
 */
export function confirmationSettled(
  { confirmations, settings }: ChannelState,
  { job_id, outcome }: RunCommands['job.settled']['input'],
  cause: Cause,
): Decision<ChannelEvent, undefined> | undefined {
  const member_ids = getOwn(confirmations, job_id)
  if (!member_ids) return undefined
  const again =
    outcome === 'completed' || !settings ? undefined : confirm(settings.id, member_ids, cause)
  return {
    events: [{ type: 'confirmation.ended', job_id }, ...(again ? [again.event] : [])],
    ...(again && { tells: [again.tell] }),
    reply: undefined,
  }
}

/** Reducers for the events of confirmations. */
export const evolveConfirmations = {
  'confirmation.begun': (
    state: ChannelState,
    { job_id, member_ids }: Extract<ConfirmationEvent, { type: 'confirmation.begun' }>,
  ): ChannelState => {
    state.confirmations[job_id] = member_ids
    return state
  },
  'confirmation.ended': (
    state: ChannelState,
    { job_id }: Extract<ConfirmationEvent, { type: 'confirmation.ended' }>,
  ): ChannelState => {
    delete state.confirmations[job_id]
    return state
  },
}
