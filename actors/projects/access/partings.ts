/**
 * Removal of disabled or archived principals from channels. Disabled principals stay in direct
 * messages. Only views store the channels of a principal. The commit that disables or archives a
 * principal therefore also enqueues a background job that removes the principal. The job is
 * repeated until it succeeds.
 */

import type { Event } from '../../../protocol/entry.ts'
import { ERRANDS, type Errand, errandJob } from '../../../protocol/errand.ts'
import { isRefusal } from '../../../protocol/errors.ts'
import { getOwn } from '../../../protocol/lookup.ts'
import type { PartingEvent, ProjectCommands } from '../../../protocol/projects/configuration.ts'
import type { Cause, Decision, Tell } from '../../actor.ts'
import type { ProjectState } from '../state.ts'

/**
 * Returns the id of the principal that an event disables or archives, or undefined if the event
 * does neither.
 */
function shutOut(event: Event): string | undefined {
  const { type, id, principal } = event as Event & {
    readonly id?: string
    readonly principal?: { readonly state?: string | null }
  }
  return type === 'principal.deleted' ||
    (type === 'principal.updated' && principal?.state === 'disabled')
    ? id
    : undefined
}

/**
 * Wraps a decision that may disable or archive principals, so that it also enqueues their removal
 * from channels.
 */
export const parting =
  <I, E extends Event, R>(
    decide: (state: ProjectState, input: I, cause: Cause) => Decision<E, R>,
  ) =>
  (state: ProjectState, input: I, cause: Cause): Decision<E | PartingEvent, R> => {
    const decision = decide(state, input, cause)
    if (isRefusal(decision)) return decision
    const gone = decision.events
      .flatMap((event) => shutOut(event) ?? [])
      .map((id) => begin(id, cause))
    if (gone.length === 0) return decision
    return {
      ...decision,
      events: [...decision.events, ...gone.map(({ event }) => event)],
      tells: [...(decision.tells ?? []), ...gone.map(({ tell }) => tell)],
    }
  }
function begin(id: string, cause: Cause): { readonly event: PartingEvent; readonly tell: Tell } {
  const { self, shard, at } = cause
  const job_id = cause.mint('job')
  return {
    event: { type: 'parting.begun', id, job_id },
    tell: {
      to: { kind: 'queue', id: `${shard}.${ERRANDS}` },
      name: 'queue.enqueue',
      input: errandJob(job_id, { kind: 'project', id: self.id }, id, at),
    },
  }
}

/** Handles the end of a removal job. If the job did not complete, another job is enqueued. */
export function partingSettled(
  { partings }: ProjectState,
  { job_id, outcome }: ProjectCommands['job.settled']['input'],
  cause: Cause,
): Decision<PartingEvent, undefined> {
  const id = getOwn(partings, job_id)
  if (id === undefined) return { events: [], reply: undefined }
  const again = outcome === 'completed' ? undefined : begin(id, cause)
  return {
    events: [{ type: 'parting.ended', job_id }, ...(again ? [again.event] : [])],
    ...(again && { tells: [again.tell] }),
    reply: undefined,
  }
}

/** Reducers for the events of pending removals. */
export const evolvePartings = {
  'parting.begun': (
    state: ProjectState,
    { id, job_id }: Extract<PartingEvent, { type: 'parting.begun' }>,
  ): ProjectState => {
    state.partings[job_id] = id
    return state
  },
  'parting.ended': (
    state: ProjectState,
    { job_id }: Extract<PartingEvent, { type: 'parting.ended' }>,
  ): ProjectState => {
    delete state.partings[job_id]
    return state
  },
}

/** Returns the input of a removal job, for its executor. */
export function partingOf(
  { partings }: ProjectState,
  { job_id }: { readonly job_id: string },
): Errand {
  const principal_id = getOwn(partings, job_id)
  return principal_id === undefined ? { errand: 'none' } : { errand: 'leave', principal_id }
}
