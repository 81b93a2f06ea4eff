/**
 * Built-in actions of the service for agents. They run as jobs, so they have leases, attempts and
 * records like all other calls. Each is idempotent, because the id of its command and the ids that
 * it creates are derived from the job.
 */
import type { Directory } from '../../../gateway/directory.ts'
import type { World } from '../../../gateway/ports.ts'
import { type BuiltinName, builtinOf } from '../../../protocol/actions/builtin.ts'
import type { ActionCall } from '../../../protocol/actions/invocation.ts'
import { isRefusal, type Refusal } from '../../../protocol/errors.ts'
import { getOwn } from '../../../protocol/lookup.ts'
import type { ClaimedJob } from '../../../protocol/workers/socket.ts'
import { callOf } from '../call.ts'
import { type Handler, NOT_OURS } from '../handler.ts'
import { refused } from '../refused.ts'
import { forget, recall, remember } from './memory.ts'
import { callWorkflow, getRun, startRun } from './runs.ts'

export interface Service {
  readonly world: Pick<
    World,
    'ask' | 'command' | 'id' | 'later' | 'live' | 'now' | 'settings' | 'view' | 'organization'
  >
  readonly directory: Directory
}
/** A call that is being performed. */
export interface Called {
  readonly project: string
  readonly job: ClaimedJob
  readonly call: ActionCall
  /** Name of the agent, as shown in records of its actions. */
  readonly agent: string
  readonly signal: AbortSignal
}
/** Performs a built-in action. Returns the result, or a refusal. */
export type Does = (
  service: Service,
  called: Called,
) => Promise<Readonly<Record<string, unknown>> | Refusal>

const table: Readonly<Record<BuiltinName, Does>> = {
  'memory.remember': remember,
  'memory.recall': recall,
  'memory.forget': forget,
  'run.start': startRun,
  'run.get': getRun,
}

/** The handler of built-in actions and of published workflows. */
export function builtinActions(service: Service): Handler {
  const { world, directory } = service
  const brand = world.settings.brand.toLowerCase()
  return {
    takes: (_, { executor_kind, action_name = '' }) =>
      executor_kind === 'server_worker' && builtinOf(brand, action_name) !== undefined
        ? {}
        : undefined,
    async perform({ project, job, signal }) {
      const which = builtinOf(brand, job.action_name ?? '')
      if (which === undefined) return NOT_OURS
      const call = await callOf(world, project, job)
      if (isRefusal(call)) return NOT_OURS
      if (!call) return { status: 'cancelled' }
      const home = await directory.project(project)
      if (isRefusal(home)) return refused(home)
      const agent = getOwn(home.agents, call.actor.principal_id)
      if (!agent)
        return {
          status: 'failed',
          error_type: 'not_found',
          error_message: 'The agent no longer exists.',
          final: true,
        }
      const called: Called = { project, job, call, agent: agent.name, signal }
      const result = await (typeof which === 'string'
        ? table[which](service, called)
        : callWorkflow(which.workflow)(service, called))
      return isRefusal(result) ? refused(result) : { status: 'completed', result: { ...result } }
    },
  }
}

/** Combines handlers: each job is passed to them in order, until one of them accepts it. */
export const firstOf = (...handlers: readonly Handler[]): Handler => ({
  async takes(project, job) {
    for (const handler of handlers) {
      const taken = await handler.takes(project, job)
      if (taken !== undefined) return taken
    }
    return undefined
  },
  async perform(work) {
    for (const handler of handlers) {
      const outcome = await handler.perform(work)
      if (outcome !== NOT_OURS) return outcome
    }
    return NOT_OURS
  },
})
