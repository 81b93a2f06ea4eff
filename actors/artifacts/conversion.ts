/**
 * The conversion of Office files: the commit that makes a file visible also enqueues an errand, so
 * the conversion survives the crash of any process. The errand's result ends it. Used by artifacts
 * and by the files of sessions.
 */
import type { ArtifactCommands, ConversionResult } from '../../protocol/artifacts/commands.ts'
import { limits } from '../../protocol/artifacts/schema.ts'
import type { Kind } from '../../protocol/entry.ts'
import { ERRANDS, errandJob } from '../../protocol/errand.ts'
import type { Cause, Tell } from '../actor.ts'

/**
 * Returns the message that enqueues the errand, and the errand's id.
 * @param owner the actor that waits for the result.
 * @param principal id of the principal that uploaded the file; principals take turns.
 */
export function conversionJob(
  owner: { readonly kind: Kind; readonly id: string },
  principal: string,
  cause: Cause,
): { readonly job_id: string; readonly tell: Tell } {
  const job_id = cause.mint('job')
  return {
    job_id,
    tell: {
      to: { kind: 'queue', id: `${cause.shard}.${ERRANDS}` },
      name: 'queue.enqueue',
      input: errandJob(job_id, owner, principal, cause.at, limits.conversion_losses),
    },
  }
}

/** The outcome of a conversion whose errand has ended. */
export const conversionResult = ({
  outcome,
  result,
}: ArtifactCommands['job.settled']['input']): ConversionResult =>
  outcome === 'completed' && result
    ? (result as unknown as ConversionResult)
    : { state: 'failed', error: 'The service could not convert the file. Upload the file again.' }
