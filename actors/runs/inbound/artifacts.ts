/** Messages to a run about the artifacts that its workers have published. */
import type { RunCommands } from '../../../protocol/internal.ts'
import type { RunEvent } from '../../../protocol/runs/events.ts'
import type { Cause, Decision } from '../../actor.ts'
import { artifactSourceEvent } from '../../artifacts/source-event.ts'
import { emit, emptyDecision, newDraft, withoutReply } from '../draft.ts'
import { causeOf } from '../outbound/source-events.ts'
import { hasEnded, type RunState } from '../state.ts'

/**
 * Records an artifact in the timeline and publishes its source event. The timeline of a run that
 * has ended does not change, because the end must stay its last event.
 */
export function artifactPublished(
  state: RunState | null,
  { artifact, step, session_id }: RunCommands['run.artifact']['input'],
  cause: Cause,
): Decision<RunEvent, undefined> {
  if (!state) return emptyDecision
  const { id: artifact_id, name, mime_type: content_type } = artifact
  const draft = newDraft(state, cause)
  const tell = artifactSourceEvent(cause.self.project, artifact, {
    ...causeOf(state),
    step,
    session_id,
  })
  const note = { tell }
  if (hasEnded(state)) emit(draft, 'artifact.published', { note })
  else
    emit(draft, 'artifact.created', {
      ...(step !== undefined && { step }),
      payload: { artifact_id, name, content_type, ...(step !== undefined && { step }) },
      note,
    })
  return withoutReply(draft)
}
