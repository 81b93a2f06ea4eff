/**
 * The conversion of Office files: the commit that makes a file visible also enqueues an errand, so
 * the conversion survives the crash of any process. The errand's result ends the conversion.
 */
import type {
  ArtifactCommands,
  ArtifactState,
  ConversionResult,
} from '../../protocol/artifacts/commands.ts'
import type { ArtifactEvent } from '../../protocol/artifacts/events.ts'
import { type Artifact, limits } from '../../protocol/artifacts/schema.ts'
import { timestamp } from '../../protocol/common.ts'
import { ERRANDS, errandJob } from '../../protocol/errand.ts'
import { conversionOf } from '../../protocol/sessions/attachments.ts'
import type { Cause, Decision, Tell } from '../actor.ts'
import { toSession } from './session.ts'

type Conversion = NonNullable<Artifact['conversion']>

/**
 * Returns the tell that enqueues the job. The job's fairness key is the id of the principal that
 * uploaded the file.
 */
function conversionJob(
  principal: string,
  cause: Cause,
): { readonly job_id: string; readonly tell: Tell } {
  const job_id = cause.mint('job')
  return {
    job_id,
    tell: {
      to: { kind: 'queue', id: `${cause.shard}.${ERRANDS}` },
      name: 'queue.enqueue',
      input: errandJob(job_id, cause.self, principal, cause.at, limits.conversion_losses),
    },
  }
}

const tooLarge: Conversion = {
  state: 'failed',
  error: `Files of more than ${limits.conversion_bytes / 1_048_576} MiB are not converted. Split the file.`,
}
/**
 * Begins the conversion of an artifact. Returns undefined if the file is not an Office file. The
 * conversion of a file that is too large fails immediately, without an errand.
 * @param principal id of the principal that uploaded the file.
 */
export function beginConversion(
  { mime_type, size_bytes }: Pick<Artifact, 'mime_type' | 'size_bytes'>,
  principal: string,
  cause: Cause,
):
  | { readonly conversion: Conversion; readonly job?: ReturnType<typeof conversionJob> }
  | undefined {
  const conversion = conversionOf(mime_type)
  if (!conversion) return undefined
  if (size_bytes > limits.conversion_bytes) return { conversion: tooLarge }
  return { conversion, job: conversionJob(principal, cause) }
}

/** Returns the outcome of a conversion from the result of its errand. */
export const conversionResult = ({
  outcome,
  result,
}: ArtifactCommands['job.settled']['input']): ConversionResult =>
  outcome === 'completed' && result
    ? (result as unknown as ConversionResult)
    : { state: 'failed', error: 'The service could not convert the file. Upload the file again.' }

/** The outcome of a conversion that no executor finished before its deadline. */
export const TIMED_OUT_CONVERSION: ConversionResult = {
  state: 'failed',
  error: 'No executor converted the file in time. Upload the file again.',
}
/**
 * Records the outcome of a conversion. The session of an attachment is informed in the same commit.
 */
export const settleConversion = (
  artifact: ArtifactState & { readonly state: 'ready' },
  conversion: ConversionResult,
  { at, self: { id } }: Pick<Cause, 'at' | 'self'>,
): Decision<ArtifactEvent, undefined> => ({
  events: [{ type: 'artifact.converted', id, artifact: { conversion, updated_at: timestamp(at) } }],
  tells: toSession(artifact, 'attachment.converted', { artifact_id: id, conversion }),
  reply: undefined,
})
