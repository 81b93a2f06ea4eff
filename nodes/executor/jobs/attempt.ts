/** One attempt of a job by its handler, and the outcome that is reported for it. */
import { openLeaseGate } from '../../../gateway/lease-gate.ts'
import type { Log, World } from '../../../gateway/ports.ts'
import { reportErrors, sizes } from '../../../protocol/workers/socket.ts'
import { type Handlers, NOT_OURS, type Outcome, type Work } from '../handler.ts'

/** The reason why an attempt was aborted. */
export type AbortReason = 'lost' | 'cancelled' | 'stopping'

/** The report with which a job returns to its queue. No attempt is used. */
const RETURNED: Outcome = { status: 'failed', error_type: reportErrors.over_capacity }

/**
 * Returns a function that makes one attempt. The attempt begins only while the node's own lease is
 * fresh. If the lease stays stale, the job is not ours.
 */
export function createAttempts(
  world: Pick<World, 'later' | 'fresh'> & { readonly log: Log },
  handlers: Handlers,
): (work: Work) => Promise<Outcome | typeof NOT_OURS> {
  const becomesFresh = openLeaseGate(world)
  return async (work) => {
    const { job, signal } = work
    try {
      if (!(await becomesFresh()) || signal.aborted) return NOT_OURS
      const outcome = (await handlers[job.kind]?.perform(work)) ?? NOT_OURS
      return outcome === NOT_OURS ? outcome : withinLimit(outcome)
    } catch (error) {
      world.log.error(
        { event: 'executor_job_failed', err: error, job: job.id },
        'executor job failed',
      )
      return {
        status: 'failed',
        error_type: 'internal',
        error_message: 'an internal error occurred',
      }
    }
  }
}

/**
 * Replaces an outcome whose result exceeds the limit with a failure. The same limit applies to
 * workers. The failure is final, because another attempt would not make the result smaller.
 */
const withinLimit = (outcome: Outcome): Outcome =>
  outcome.result && Buffer.byteLength(JSON.stringify(outcome.result)) > sizes.result
    ? {
        status: 'failed',
        error_type: reportErrors.result_too_large,
        error_message: `the result is larger than ${sizes.result} bytes`,
        final: true,
      }
    : outcome

/**
 * Returns the outcome that is reported for an attempt. Undefined if its lease was lost.
 * @param why the reason why the attempt was aborted, if it was.
 */
export function outcomeToReport(
  outcome: Outcome | typeof NOT_OURS,
  why: AbortReason | undefined,
): Outcome | undefined {
  if (why === 'lost') return undefined
  if (why === 'cancelled') return { status: 'cancelled' }
  return why === 'stopping' || outcome === NOT_OURS ? RETURNED : outcome
}
