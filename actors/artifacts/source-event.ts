/** The source event of an artifact that has become visible. */
import type { ArtifactRecord } from '../../protocol/artifacts/schema.ts'
import type { ServicePublication } from '../../protocol/events/sources.ts'
import type { Tell } from '../actor.ts'

/** The origin of an artifact, and the causal chain of its source event. */
interface Source extends Pick<ServicePublication, 'depth' | 'chain'> {
  /** Key of the step that produced the artifact. */
  readonly step?: string | undefined
  /** Id of the session whose job produced the artifact, or to which it is attached. */
  readonly session_id?: string | undefined
  /** True if the artifact is an attachment of the session. */
  readonly attachment?: true | undefined
}

/**
 * Returns the message that publishes a new artifact, for the `events` actor of the project. The run
 * publishes its own artifacts, because only the run stores the causal chain. The artifact actor
 * publishes all others. It cannot tell whether a session is private, so it marks the events of all
 * sessions as private. If the session is not private, its readers still receive the event. The
 * event of a private artifact is marked with its owner.
 */
export function artifactSourceEvent(
  project: string,
  artifact: ArtifactRecord,
  { step, session_id, attachment, ...cause }: Source,
): Tell {
  const { name, size_bytes, sha256, visibility, ...record } = artifact
  const { id: artifact_id, mime_type, run_id } = record
  const meta = {
    artifact_id,
    kind: attachment ? 'attachment' : 'file',
    content_type: mime_type,
    ...(run_id !== undefined && { loop_run_id: run_id }),
  }
  const input: ServicePublication = {
    event_type: 'artifact.created',
    source_kind: 'artifact',
    source_id: artifact_id,
    event: {
      ...meta,
      name,
      ...(step !== undefined && { step }),
      size_bytes,
      sha256,
      visibility,
    },
    meta,
    // The other fields of the record are already in the payload.
    record,
    ...(session_id !== undefined && { private_session: session_id }),
    ...(visibility === 'private' && { private_owner: artifact.owned_by ?? '' }),
    ...cause,
  }
  return { to: { kind: 'events', id: project }, name: 'source.publish', input }
}
