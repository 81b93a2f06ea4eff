/**
 * Looks up the data for a turn of a run: the agent, its session, its tools, its memory. The run
 * receives the data and opens the turn. If a job is performed twice, the run uses the first result.
 */

import type { CapabilityReader } from '../../gateway/queries/agent-capabilities.ts'
import { turnFor } from '../../gateway/sessions/turn-opening.ts'
import type { Code } from '../../protocol/errors.ts'
import { isRefusal } from '../../protocol/errors.ts'
import type { TurnWanted } from '../../protocol/runs/turns.ts'
import type { Handler } from './handler.ts'
import { refusedOutcome } from './refused.ts'
import { systemOrigin } from './system-origin.ts'

/** Error types of failed steps, by the code of the refusal. Other codes are used unchanged. */
const names: Readonly<Partial<Record<Code, string>>> = {
  not_found: 'agent_not_found',
  bad_request: 'agent_invalid',
}

/** Creates the handler of jobs that look up the data for turns of runs. */
export function createOpeningHandler(asking: CapabilityReader): Handler {
  const { world } = asking
  return {
    takes: () => ({}),
    async perform({ project, job }) {
      const { id, run_id, spec, claim_attempt } = job
      // A missing turn id means that the run no longer waits for the turn.
      if (run_id === undefined || typeof spec['turn_id'] !== 'string')
        return { status: 'cancelled' }
      const found = await turnFor(asking, project, spec as unknown as TurnWanted)
      if (isRefusal(found)) {
        const error_type = names[found.refused]
        return { ...refusedOutcome(found), ...(error_type !== undefined && { error_type }) }
      }
      const reply = await world.command({
        project,
        kind: 'run',
        id: run_id,
        command_id: `turn.defined:${id}:${claim_attempt}`,
        name: 'turn.defined',
        input: found,
        origin: systemOrigin(world, world.node),
      })
      if (!isRefusal(reply)) return { status: 'completed' }
      // `conflict` means that the run has already stored a different definition of the agent. The
      // next attempt, which starts immediately, uses that definition.
      if (reply.refused !== 'conflict') return refusedOutcome(reply)
      const { final: _, ...outcome } = refusedOutcome(reply)
      return { ...outcome, retry_in: 0 }
    },
  }
}
