/**
 * Looking up what a turn of a run runs with: the agent, its session, its tools, its memory. The run is told, and opens the turn; a
 * job that is done twice tells it twice, and the run hears the first.
 */
import { turnFor } from '../../gateway/sessions/turn-opening.ts'
import type { CapabilityReader } from '../../gateway/queries/agent-capabilities.ts'
import type { Code } from '../../protocol/errors.ts'
import { isRefusal } from '../../protocol/errors.ts'
import type { TurnWanted } from '../../protocol/internal.ts'
import type { Handler } from './handler.ts'
import { refused } from './refused.ts'

/** What refusals are called where a step fails with them. */
const names: Readonly<Partial<Record<Code, string>>> = {
  not_found: 'agent_not_found',
  bad_request: 'agent_invalid',
}

/** The handler of openings. */
export function openings(asking: CapabilityReader): Handler {
  const { world } = asking
  return {
    takes: () => ({}),
    async perform({ project, job }) {
      const { id, run_id, spec, claim_attempt } = job
      // The run does not wait for it any more.
      if (run_id === undefined || typeof spec['turn_id'] !== 'string')
        return { status: 'cancelled' }
      const found = await turnFor(asking, project, spec as unknown as TurnWanted)
      if (isRefusal(found)) {
        const error_type = names[found.refused]
        return { ...refused(found), ...(error_type !== undefined && { error_type }) }
      }
      const told = await world.command({
        project,
        kind: 'run',
        id: run_id,
        command_id: `turn.defined:${id}:${claim_attempt}`,
        name: 'turn.defined',
        input: found,
        origin: {
          at: world.now(),
          principal: { type: 'system', id: 'system' },
          credential: { type: 'internal', id: world.node },
        },
      })
      return isRefusal(told) ? refused(told) : { status: 'completed' }
    },
  }
}
