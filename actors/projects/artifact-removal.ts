/**
 * Removal of the data of a deleted project: its artifacts, its environments, the stored definitions
 * of its agents, and the log lines of its jobs. Only views store the lists of artifacts and
 * environments, so the commit that ends the project also enqueues an errand that removes the data.
 * The errand is repeated until it succeeds.
 */
import type { ArtifactRemovalEvent } from '../../protocol/artifacts/events.ts'
import { ERRANDS, errandJob } from '../../protocol/errand.ts'
import { isRefusal } from '../../protocol/errors.ts'
import type { ProjectCommands } from '../../protocol/projects/configuration.ts'
import type { Cause, Decision, Tell } from '../actor.ts'
import type { ProjectState } from './state.ts'

type Begun = Extract<ArtifactRemovalEvent, { readonly type: 'artifact_removal.begun' }>
function begin(cause: Cause): { readonly event: ArtifactRemovalEvent; readonly tell: Tell } {
  const { self, shard, at } = cause
  const job_id = cause.mint('job')
  return {
    event: { type: 'artifact_removal.begun', job_id },
    tell: {
      to: { kind: 'queue', id: `${shard}.${ERRANDS}` },
      name: 'queue.enqueue',
      input: errandJob(job_id, { kind: 'project', id: self.id }, 'artifacts', at),
    },
  }
}

/**
 * Wraps the decision that ends a project, so that the first such decision also enqueues the errand.
 */
export const removingArtifacts =
  <I, E extends { readonly type: string }>(
    decide: (state: ProjectState, input: I) => Decision<E, undefined>,
  ) =>
  (state: ProjectState, input: I, cause: Cause): Decision<E | ArtifactRemovalEvent, undefined> => {
    const decision = decide(state, input)
    if (isRefusal(decision) || state.ended !== undefined) return decision
    const { event, tell } = begin(cause)
    return {
      ...decision,
      events: [...decision.events, event],
      tells: [...(decision.tells ?? []), tell],
    }
  }

/** Whether a job is the removal errand of the project. */
export const isRemoval = ({ removing }: ProjectState, job_id: string): boolean =>
  removing === job_id
/** Handles the end of the errand. If it did not complete, another errand is enqueued. */
export function removalSettled(
  { job_id, outcome }: ProjectCommands['job.settled']['input'],
  cause: Cause,
): Decision<ArtifactRemovalEvent, undefined> {
  if (outcome === 'completed')
    return { events: [{ type: 'artifact_removal.ended', job_id }], reply: undefined }
  const { event, tell } = begin(cause)
  return { events: [event], tells: [tell], reply: undefined }
}

/** Reducers for the events of the errand. */
export const evolveRemoval = {
  'artifact_removal.begun': (state: ProjectState, { job_id }: Begun): ProjectState =>
    Object.assign(state, { removing: job_id }),
  'artifact_removal.ended': (state: ProjectState): ProjectState => {
    delete state.removing
    return state
  },
}
