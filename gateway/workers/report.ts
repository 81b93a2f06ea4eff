/**
 * Handles reports of the outcomes of jobs. The queue decides which report counts. A report is
 * acknowledged only after this decision, because some workers send a report only once, and other
 * workers repeat it until it is acknowledged. A malformed job id or lease token is answered with
 * `lease_lost` immediately.
 */

import { errors, isRefusal } from '../../protocol/errors.ts'
import type { JobReport } from '../../protocol/internal.ts'
import type { CommandReply } from '../../protocol/queries/commands.ts'
import { cutText } from '../../protocol/rules/cut-text.ts'
import { reportErrors, sizes, type Up } from '../../protocol/workers/socket.ts'
import { unsafeValueFault } from '../http/validate.ts'
import type { Outcome } from '../ports.ts'
import { backoffMs, sleep } from '../timing.ts'
import { queueOf, sendUntracked, type WorkerEdge } from './edge.ts'
import { updateSubscriptions } from './jobs/offers.ts'
import { checkReferences } from './jobs/references.ts'
import { endLease } from './presence.ts'
import { recordFrame, recordReport, type Session } from './session.ts'

type Frame = Extract<Up, { type: 'job.report' }>
type Result = 'accepted' | 'duplicate' | 'lease_lost'
type Decided = Outcome<CommandReply<'queue', 'queue.report'>>

/**
 * Back-off before a report that was not decided is sent to its queue again, in milliseconds. It
 * starts at `first` and is doubled each time, up to `last`.
 */
const RETRY = { first: 1000, last: 10_000 } as const

/**
 * Handles a `job.report` frame. If the frame repeats a report that is still being decided, the
 * decision answers both. Resolves when the queue has decided the report. Gives up when the session
 * has closed and either the gateway stops or one lease duration has passed.
 * @param bytes size of the frame, which is an upper bound on the size of the result.
 */
export function handleReport(
  edge: WorkerEdge,
  session: Session,
  frame: Frame,
  bytes: number,
): Promise<void> | void {
  const { world } = edge
  const { job_id, lease_token, message_id } = frame
  const to = queueOf(edge, session.project, job_id, lease_token)
  if (!to) return acknowledge(session, job_id, message_id, 'lease_lost')
  const key = `${job_id} ${lease_token}`
  const joined = session.reports.get(key)
  if (joined) return void joined.push(message_id)
  const waiting = [message_id]
  session.reports.set(key, waiting)
  const now = world.monotonic()
  recordFrame(session, job_id, lease_token, now)
  // The report ends the lease, so it is sent after the lease of the remaining lines is confirmed. An
  // owner that has just taken over the shard may decide two waiting messages in any order.
  const confirmed = edge.logs.end(job_id, lease_token)
  recordReport(session, job_id, lease_token, now)
  updateSubscriptions(edge, session)
  const input = outcomeOf(frame, bytes)
  const id = world.newCommandId()
  const end = now + world.settings.timing.lease * 1000
  const decide = (failures: number): Promise<void> =>
    sendUntracked(edge, session.connection.grant, to, 'queue.report', input, id).then((outcome) => {
      const open = transient(outcome)
      if (open && !(session.closed && (edge.stopping || world.monotonic() >= end)))
        return sleep(world, backoffMs(failures, RETRY)).then(() => decide(failures + 1))
      session.reports.delete(key)
      if (!open) conclude(edge, session, frame, waiting, outcome)
    })
  return edge.pending.add(confirmed ? confirmed.then(() => decide(0)) : decide(0))
}

/**
 * Handles the decision about a report.
 * @param waiting the message ids of the report and its repeats.
 */
function conclude(
  edge: WorkerEdge,
  session: Session,
  { job_id, lease_token, result }: Frame,
  waiting: readonly (string | undefined)[],
  outcome: Decided,
): void {
  const decided = isRefusal(outcome) ? 'lease_lost' : outcome.reply.outcome
  endLease(edge, session, job_id, lease_token)
  if (decided === 'accepted' && result) {
    const checked = checkReferences(edge.world, session.project, job_id, result)
    if (checked) void edge.pending.add(checked)
  }
  for (let i = 0; i < waiting.length; i++)
    acknowledge(
      session,
      job_id,
      waiting[i],
      i > 0 && decided === 'accepted' ? 'duplicate' : decided,
    )
}

/** Maximum lengths of the stored error texts in characters. Longer texts are truncated. */
const MAX_LENGTHS = { type: 256, message: 16_384 } as const

/** Whether the worker has executed a job whose result cannot be stored. */
const isUnstorable = (error_type: string | undefined): boolean =>
  error_type === reportErrors.result_invalid || error_type === reportErrors.result_too_large

/**
 * Converts a report to the input of its queue's command. Only a completed job has a result. A
 * result that is invalid or too large makes the job fail.
 */
function outcomeOf(
  { job_id, lease_token, status = 'completed', result, error_type, error_message }: Frame,
  bytes: number,
): JobReport {
  const lease = { job_id, lease_token }
  if (status === 'completed') {
    const fault = result && unsafeValueFault(result)
    if (fault)
      return {
        ...lease,
        status: 'failed',
        final: true,
        error_type: reportErrors.result_invalid,
        error_message: `the result cannot be stored: ${fault.field}: ${fault.message}`.slice(
          0,
          MAX_LENGTHS.message,
        ),
      }
    if (
      bytes > sizes.result &&
      result &&
      Buffer.byteLength(JSON.stringify(result)) > sizes.result
    ) {
      return {
        ...lease,
        status: 'failed',
        final: true,
        error_type: reportErrors.result_too_large,
        error_message: `the result is larger than ${sizes.result} bytes`,
      }
    }
    return { job_id, lease_token, status, ...(result && { result }) }
  }
  return {
    ...lease,
    status,
    ...(status === 'failed' && isUnstorable(error_type) && { final: true as const }),
    ...(error_type !== undefined && { error_type: error_type.slice(0, MAX_LENGTHS.type) }),
    ...(error_message !== undefined && {
      error_message: cutText(error_message, MAX_LENGTHS.message),
    }),
  }
}

const transient = (outcome: Outcome): boolean =>
  isRefusal(outcome) && 'retryable' in errors[outcome.refused]

function acknowledge(
  { connection }: Session,
  job_id: string,
  message_id: string | undefined,
  result: Result,
): void {
  connection.send({
    type: 'job.report.ack',
    ...(message_id !== undefined && { message_id }),
    job_id,
    duplicate: result === 'duplicate',
  })
  if (result === 'lease_lost')
    connection.fail(
      'lease_lost',
      `the lease of ${job_id} is lost; its report was discarded`,
      message_id,
    )
}
