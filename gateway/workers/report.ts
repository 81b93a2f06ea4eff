/**
 * Handles reports of the outcomes of jobs. The queue decides which report counts. A report is
 * acknowledged only after this decision, because some workers send a report only once, and the
 * others repeat it until it is acknowledged. A malformed job id or lease token is answered with
 * `lease_lost` at once.
 */

import { errors, isRefusal } from '../../protocol/errors.ts'
import type { JobReport } from '../../protocol/internal.ts'
import type { AddressOf } from '../../protocol/queries/owners.ts'
import { sizes, type Up } from '../../protocol/workers/socket.ts'
import { unsafe } from '../http/validate.ts'
import type { Outcome } from '../ports.ts'
import { backoffMs, sleep } from '../timing.ts'
import { command, type Edge, queueOf, secret, track } from './edge.ts'
import { ended } from './jobs/held-leases.ts'
import { settle } from './jobs/offers.ts'
import { checkReferences } from './jobs/references.ts'
import { hear, reported, type Session } from './session.ts'

type Frame = Extract<Up, { type: 'job.report' }>
type Result = 'accepted' | 'duplicate' | 'lease_lost'

/**
 * Back-off before a report that was not decided is sent to its queue again, in milliseconds. It
 * starts at `first` and is doubled each time, up to `last`.
 */
const RETRY = { first: 1000, last: 10_000 } as const

/**
 * Handles a `job.report` frame. A repeat while the report is being decided waits for the same
 * decision.
 * @param bytes size of the frame, which is an upper bound of the size of the result.
 */
export async function report(
  edge: Edge,
  session: Session,
  frame: Frame,
  bytes: number,
): Promise<void> {
  const { job_id, lease_token, message_id } = frame
  const to = queueOf(edge, session.project, job_id, lease_token)
  if (!to) return acknowledge(session, job_id, message_id, 'lease_lost')
  const key = `${job_id} ${lease_token}`
  const joined = session.reports.get(key)
  if (joined) return void joined.push(message_id)
  const waiting = [message_id]
  session.reports.set(key, waiting)
  hear(session, job_id, lease_token, edge.world.now())
  reported(session, job_id, lease_token, edge.world.now())
  settle(edge, session)
  const result = await track(edge, settled(edge, session, to, outcomeOf(frame, bytes)))
  session.reports.delete(key)
  if (!result) return
  ended(edge, session, job_id, lease_token)
  if (result === 'accepted' && frame.result)
    void track(edge, checkReferences(edge.world, session.project, job_id, frame.result))
  for (const [index, id] of waiting.entries())
    acknowledge(session, job_id, id, index > 0 && result === 'accepted' ? 'duplicate' : result)
}

/** Maximum lengths of the stored error texts in characters. Longer texts are truncated. */
const MAX_LENGTHS = { type: 256, message: 16_384 } as const

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
    const fault = result && unsafe(result)
    if (fault)
      return {
        ...lease,
        status: 'failed',
        error_type: 'ResultInvalid',
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
        error_type: 'ResultTooLarge',
        error_message: `the result is larger than ${sizes.result} bytes`,
      }
    }
    return { ...lease, status, ...(result && { result }) }
  }
  return {
    ...lease,
    status,
    ...(error_type !== undefined && { error_type: error_type.slice(0, MAX_LENGTHS.type) }),
    ...(error_message !== undefined && {
      error_message: error_message.slice(0, MAX_LENGTHS.message),
    }),
  }
}

/**
 * Sends a report to its queue until the queue decides it. Returns undefined when the session has
 * closed and either the gateway stops or one lease duration has passed.
 */
async function settled(
  edge: Edge,
  session: Session,
  to: AddressOf<'queue'>,
  input: JobReport,
): Promise<Result | undefined> {
  const { world } = edge
  const id = secret(world, 12)
  const end = world.now() + world.settings.timing.lease * 1000
  for (let failures = 0; ; failures++) {
    const outcome = await command(edge, session.connection.grant, to, 'queue.report', input, id)
    if (!transient(outcome)) return isRefusal(outcome) ? 'lease_lost' : outcome.reply.outcome
    if (session.closed && (edge.stopping || world.now() >= end)) return undefined
    await sleep(world, backoffMs(failures, RETRY))
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
