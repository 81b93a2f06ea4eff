/**
 * The conversion of the Office files of a session. The commit that marks a file as stored enqueues
 * an errand; the end of the errand is recorded in the file's record.
 */
import type { Errand } from '../../protocol/errand.ts'
import type { KeptAttachment } from '../../protocol/sessions/attachments.ts'
import type { SessionCommands } from '../../protocol/sessions/commands.ts'
import type { SessionEvent } from '../../protocol/sessions/events.ts'
import type { Cause, Decision } from '../actor.ts'
import { conversionJob, conversionResult } from '../artifacts/conversion.ts'
import { filesOf } from './files.ts'
import type { SessionState } from './state.ts'

/** Returns the errand of a file that is to be converted, as `conversionJob` does. */
export const conversionOfFile = ({ artifact }: KeptAttachment, cause: Cause) =>
  artifact.conversion?.state === 'converting'
    ? conversionJob(cause.self, artifact.created_by ?? '', cause)
    : undefined

const fileOfJob = (state: SessionState, job_id: string): KeptAttachment | undefined =>
  Object.values(filesOf(state)).find((file) => file.convert_job === job_id)
const isWaiting = ({ gone }: SessionState, file: KeptAttachment): boolean =>
  !gone && file.state === 'stored'

/** Returns the task of an errand. Undefined when no file knows it. */
export function conversionErrand(state: SessionState, job_id: string): Errand | undefined {
  const file = fileOfJob(state, job_id)
  if (!file) return undefined
  return isWaiting(state, file)
    ? {
        errand: 'convert',
        artifact_id: file.artifact.id,
        owner: { session_id: state.record?.id ?? '' },
      }
    : { errand: 'none' }
}

/** Records the end of an errand. Undefined when no file waits for it. */
export function conversionSettled(
  state: SessionState,
  input: SessionCommands['job.settled']['input'],
): Decision<SessionEvent, undefined> | undefined {
  const file = fileOfJob(state, input.job_id)
  if (!file || !isWaiting(state, file)) return undefined
  const { id } = file.artifact
  const conversion = conversionResult(input)
  return { events: [{ type: 'attachment.converted', id, conversion }], reply: undefined }
}
