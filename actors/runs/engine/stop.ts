/**
 * Stops the jobs, children and turns that a run waits for. They then end on their own, and the run
 * ends when all of them have ended.
 */

import { type Draft, tellQueue, tellRun, withdraw } from '../draft.ts'
import { progressesOf } from '../state.ts'
import { leaveBranch } from './leave-branches.ts'
import { isWork } from './places.ts'

/**
 * Stops jobs, children and open turns. Branches that wait for anything else end immediately. If the
 * run itself waits for anything else, its wait stays open.
 */
export function stopWork(draft: Draft): void {
  const reason = draft.state.engine.cancel_reason
  const job_ids: string[] = []
  for (const [at, { wait }] of progressesOf(draft.state)) {
    draft.at = at
    if (wait?.kind === 'worker') job_ids.push(wait.job_id)
    else if (wait?.kind === 'run')
      tellRun(draft, wait.run_id, 'child.cancel', {
        reason: reason ?? 'the parent run was cancelled',
      })
    else if (wait && isWork(wait)) withdraw(draft, reason ?? 'the run was cancelled')
    else if (at !== undefined) {
      withdraw(draft, reason ?? 'the run was cancelled')
      leaveBranch(draft, reason ?? 'the run was cancelled')
    }
  }
  draft.at = undefined
  if (job_ids.length > 0)
    tellQueue(draft, 'queue.cancel', { job_ids, ...(reason !== undefined && { reason }) })
}
