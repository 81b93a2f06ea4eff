/**
 * Built-in actions of the service. Agents can call all of them, and steps of runs can call the
 * actions on tables. They run as jobs, so they have leases, attempts and records like all other
 * calls. Each is idempotent, because the id of its command and the ids that it creates are derived
 * from the job.
 */
import type { Directory } from '../../../gateway/directory.ts'
import type { World } from '../../../gateway/ports.ts'
import { REPEATABLE_LOSSES } from '../../../protocol/access/directory.ts'
import {
  type BuiltinName,
  builtinOf,
  inputSchemaOf,
  isTableAction,
} from '../../../protocol/actions/builtin.ts'
import type { ActionCall } from '../../../protocol/actions/invocation.ts'
import { isRefusal, type Refusal, refuseFields } from '../../../protocol/errors.ts'
import { getOwn } from '../../../protocol/lookup.ts'
import { valueFaults } from '../../../protocol/rules/json-schema/validate.ts'
import { parametersOfTexts } from '../../../protocol/tables/texts.ts'
import type { ClaimedJob } from '../../../protocol/workers/socket.ts'
import { callOf } from '../call.ts'
import { type Handler, NOT_OURS } from '../handler.ts'
import { refusedOutcome } from '../refused.ts'
import { hasTexts } from './act.ts'
import { forget, recall, remember } from './memory.ts'
import { callWorkflow, getRun, startRun } from './runs.ts'
import { deleteAction, insertAction, queryAction, searchAction, upsertAction } from './tables.ts'

export interface Service {
  readonly world: Pick<
    World,
    | 'ask'
    | 'command'
    | 'commandRow'
    | 'id'
    | 'later'
    | 'live'
    | 'monotonic'
    | 'now'
    | 'organization'
    | 'seal'
    | 'settings'
    | 'view'
  >
  readonly directory: Directory
}
/** A call that is being performed. */
export interface Called {
  readonly project: string
  readonly job: ClaimedJob
  readonly call: ActionCall
  /**
   * Name of the principal on whose behalf the action is called. It is stored in the origin of the
   * commands that the action sends. Undefined when the name is unknown, for example for the system.
   */
  readonly name: string | undefined
  readonly signal: AbortSignal
}
/** Performs a built-in action. Returns the result, or a refusal. */
export type BuiltinFunction = (
  service: Service,
  called: Called,
) => Promise<Readonly<Record<string, unknown>> | Refusal>

const table: Readonly<Record<BuiltinName, BuiltinFunction>> = {
  'memory.remember': remember,
  'memory.recall': recall,
  'memory.forget': forget,
  'run.start': startRun,
  'run.get': getRun,
  'table.query': queryAction,
  'table.search': searchAction,
  'table.insert': insertAction,
  'table.upsert': upsertAction,
  'table.delete': deleteAction,
}
/** Maximum number of invalid parameters that an outcome lists. */
const MAX_FAULTS = 20

/** Checks the parameters and performs the action. The parameters of steps are checked only here. */
async function perform(
  which: BuiltinName,
  service: Service,
  called: Called,
): ReturnType<BuiltinFunction> {
  const { call } = called
  const input_schema = inputSchemaOf(which)
  const parameters = hasTexts(call)
    ? parametersOfTexts(input_schema, call.parameters)
    : call.parameters
  const faults = valueFaults(input_schema, parameters, '')
  return faults.length > 0
    ? refuseFields(...faults.slice(0, MAX_FAULTS))
    : table[which](service, { ...called, call: { ...call, parameters } })
}
/** Creates the handler of built-in actions and of calls to published workflows. */
export function builtinActions(service: Service): Handler {
  const { world, directory } = service
  const brand = world.settings.brand.toLowerCase()
  const isForSteps = ({ action_name = '' }: Pick<ClaimedJob, 'action_name'>): boolean =>
    isTableAction(brand, action_name)
  return {
    takes: (_, { executor_kind, action_name = '' }) =>
      isForSteps({ action_name })
        ? { losses: REPEATABLE_LOSSES }
        : executor_kind === 'server_worker' && builtinOf(brand, action_name) !== undefined
          ? {}
          : undefined,
    async perform({ project, job, signal }) {
      const which = builtinOf(brand, job.action_name ?? '')
      if (which === undefined) return NOT_OURS
      const call = await callOf(world, project, job)
      if (isRefusal(call)) return NOT_OURS
      if (!call) return { status: 'cancelled' }
      const home = await directory.project(project)
      if (isRefusal(home)) return refusedOutcome(home)
      const { principal_id, principal_type } = call.actor
      const agent = getOwn(home.agents, principal_id)
      if (!agent && (principal_type === 'agent' || !isForSteps(job)))
        return {
          status: 'failed',
          error_type: 'not_found',
          error_message: 'The agent no longer exists.',
          final: true,
        }
      const name = agent?.name ?? getOwn(home.principals, principal_id)?.name
      const called: Called = { project, job, call, name, signal }
      const result = await (typeof which === 'string'
        ? perform(which, service, called)
        : callWorkflow(which.workflow)(service, called))
      return isRefusal(result)
        ? refusedOutcome(result)
        : { status: 'completed', result: { ...result } }
    },
  }
}

/** Combines handlers. Each job is passed to the handlers in order, until one of them accepts it. */
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
