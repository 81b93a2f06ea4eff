/** The source event of an artifact that has become visible. */
import type { ArtifactRecord } from '../../protocol/artifacts/schema.ts'
import type { ServicePublication } from '../../protocol/events/sources.ts'

/**
 * Returns the source event of a new artifact. An artifact of a run is published by the run, which
 * knows the causal chain; any other one is published by the artifact itself.
 * @param about the causal chain, the step (`step`) and the session (`session_id`) that produced the
 *   artifact. Whether the session is private is not known here, so the event counts as private: for
 *   a session that everybody may read, that restricts no reader.
 */
export function artifactCreated(
  { id: artifact_id, name, mime_type, run_id, size_bytes, sha256, visibility }: ArtifactRecord,
  {
    step,
    session_id,
    ...cause
  }: Pick<ServicePublication, 'depth' | 'chain'> & {
    readonly step?: string | undefined
    readonly session_id?: string | undefined
  },
): ServicePublication {
  const meta = {
    artifact_id,
    kind: 'file',
    content_type: mime_type,
    ...(run_id !== undefined && { loop_run_id: run_id }),
  }
  return {
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
    ...(session_id !== undefined && { private_session: session_id }),
    ...cause,
  }
}
