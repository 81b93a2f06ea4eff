/**
 * Evaluates the reports of workers. Only reports under the current lease count, with one exception:
 * if the previous lease was lost and no worker has claimed the job since, a report that ends the
 * job is still accepted. The job is then not executed again.
 */
import type { JobReport } from '../../protocol/internal.ts'
import { readAnswer } from '../../protocol/sessions/turns/request.ts'
import { reportErrors } from '../../protocol/workers/socket.ts'
import {
  cancelJob,
  type Ended,
  endJob,
  failAttempt,
  isLastFailure,
  reasons,
  requeueUncounted,
} from './outcomes.ts'
import { find, type Held, isFinished, type QueueState } from './state.ts'

/**
 * Number of times that workers may return a job because they are shutting down. Each further return
 * counts as a failure.
 */
const SHUTDOWNS = 5

export type ReportDecision = Ended & { readonly outcome: 'accepted' | 'duplicate' | 'lease_lost' }

/**
 * Decides the effect of a report on its job.
 * @param at Unix milliseconds.
 * @returns the events, the messages to the owner, and whether the report was accepted, a duplicate,
 * or under a lost lease.
 */
export function judge(state: QueueState, report: JobReport, at: number): ReportDecision {
  const held = find(state, report.job_id)
  if (!held)
    return { outcome: isFinished(state, report.job_id) ? 'duplicate' : 'lease_lost', events: [] }
  if (held.lease?.token === report.lease_token)
    return { outcome: 'accepted', ...valid(held, report, at) }
  if (held.last?.token !== report.lease_token) return { outcome: 'lease_lost', events: [] }
  if (held.last.reported) return { outcome: 'duplicate', events: [] }
  return held.lease
    ? { outcome: 'lease_lost', events: [] }
    : { outcome: 'accepted', ...late(held, report, at) }
}

function valid(held: Held, report: JobReport, at: number): Ended {
  if (report.status === 'completed') return completed(held, report, at)
  const stopped = report.status === 'cancelled' || report.error_type === reportErrors.cancelled
  if (stopped && held.cancel) return cancelJob(held, at)
  if (report.error_type === reportErrors.over_capacity && report.status === 'failed')
    return requeueUncounted(held, 'none', reasons.capacity, at)
  if (report.status === 'cancelled' && held.shutdowns < SHUTDOWNS)
    return requeueUncounted(held, 'none', reasons.shutdown, at)
  return failAttempt(held, faultOf(report), at, report)
}

/**
 * Handles a report under the previous lease while the job waits for its next attempt. Only a report
 * that ends the job has an effect.
 */
function late(held: Held, report: JobReport, at: number): Ended {
  if (report.status === 'completed') return completed(held, report, at)
  const last =
    report.status === 'failed' &&
    report.error_type !== reportErrors.over_capacity &&
    (report.final || isLastFailure(held))
  return last ? failAttempt(held, faultOf(report), at, report) : { events: [] }
}

function completed(held: Held, { result, context, invocation }: JobReport, at: number): Ended {
  const answer = held.header.kind === 'llm_generation' ? readAnswer(result) : undefined
  return typeof answer === 'string'
    ? endJob(
        held,
        {
          outcome: 'failed',
          error_type: 'InvalidResult',
          error_message: `A generation must report {"llm_response": message}: ${answer}.`,
        },
        at,
      )
    : endJob(
        held,
        { outcome: 'completed', ...(result && { result }), ...(context && { context }) },
        at,
        invocation,
      )
}

const faultOf = ({ status, error_type, error_message }: JobReport) => ({
  error_type: error_type ?? (status === 'cancelled' ? reportErrors.cancelled : 'Error'),
  ...(error_message !== undefined && { error_message }),
})
