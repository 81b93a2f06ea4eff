/**
 * Determines the environments that the actions and turns of a run use, and the repositories that
 * its system steps prepare. `protocol/workflows/environment.ts` defines the precedence.
 */
import { boundEnvironment, type JobEnvironment } from '../../../protocol/environments/commands.ts'
import { isId } from '../../../protocol/ids.ts'
import {
  allowedRepositories,
  type Preparation,
  preparations,
} from '../../../protocol/loops/repositories.ts'
import type { TurnWanted } from '../../../protocol/runs/turns.ts'
import type { TurnEnvironment } from '../../../protocol/sessions/turns/definition.ts'
import {
  type EnvironmentPolicy,
  environmentSettings,
  needsEnvironment,
} from '../../../protocol/workflows/environment.ts'
import type { Tell } from '../../actor.ts'
import type { Draft } from '../draft.ts'
import type { RunFault } from '../engine/ending.ts'
import type { Note, RunState } from '../state.ts'
import type { ActionStep } from './action.ts'

const policyOf = ({ spec }: RunState): EnvironmentPolicy => spec.defaults?.environment ?? {}
const invalid = (error: string): RunFault => ({ error_type: 'environment_invalid', error })

/**
 * Returns the holder for which the run's jobs use an environment. For a direct call, this is the
 * caller, who may have leased the environment. For any other run, it is the run itself.
 */
const holderOf = ({ record, engine }: RunState): JobEnvironment['holder'] =>
  engine.invoked && engine.actor
    ? { kind: 'principal', id: engine.actor.principal_id }
    : { kind: 'run', id: record.id }
const useOf = (state: RunState, binding?: JobEnvironment['binding']): JobEnvironment => ({
  holder: holderOf(state),
  ...(binding && { binding }),
  ...(policyOf(state).auto_start_worker === false && { passive: true }),
})
/**
 * Returns the use of an environment that must already exist. Unlike an owned environment, it is not
 * created by its first job.
 */
const existing = (state: RunState, id: string): TurnEnvironment => ({ id, use: useOf(state) })
function owned(state: RunState, mode: 'run' | 'agent' | 'loop', owner_id: string): TurnEnvironment {
  const { record, engine } = state
  const repositories = allowedRepositories(engine.repositories ?? [], record.input ?? {})
  return {
    id: boundEnvironment(owner_id),
    use: useOf(state, {
      mode,
      owner_id,
      ...environmentSettings(policyOf(state)),
      ...(mode === 'run' && engine.actor && { owned_by: engine.actor.principal_id }),
      ...(repositories.length > 0 && { repositories }),
    }),
  }
}

/**
 * Returns the environment of an action step, or undefined if the action needs none. Returns a fault
 * if the definition specifies no valid environment, which is possible only for definitions that
 * earlier releases saved.
 */
export function actionEnvironment(
  state: RunState,
  config: ActionStep['config'],
): TurnEnvironment | RunFault | undefined {
  if (!needsEnvironment(config)) return undefined
  const { record, engine } = state
  const policy = policyOf(state)
  if (config.environment_id !== undefined) return existing(state, config.environment_id)
  if (policy.disabled) return invalid('The definition uses no environment, and the step names none')
  if (policy.environment_id !== undefined) return existing(state, policy.environment_id)
  switch (policy.mode) {
    case 'manual':
      return invalid('The mode manual needs an environment_id')
    case 'loop':
      return record.loop_id === undefined
        ? invalid('Only runs of loops have the environment of a loop')
        : owned(state, 'loop', record.loop_id)
    case 'agent':
      return engine.agent_id !== undefined && isId(engine.agent_id, 'agent')
        ? owned(state, 'agent', engine.agent_id)
        : invalid('The mode agent needs the id of the agent of the loop')
    default:
      return owned(state, 'run', record.id)
  }
}

/** Returns the fields of `TurnWanted` that determine the environment of the turn's tools. */
export function turnEnvironment(
  state: RunState,
): Pick<TurnWanted, 'environment' | 'agent_environment' | 'no_environment'> {
  const { record, engine, spec } = state
  const { disabled, environment_id, mode } = policyOf(state)
  if (disabled) return { no_environment: true }
  if (environment_id !== undefined) return { environment: existing(state, environment_id) }
  if (mode === 'run' || (mode === undefined && engine.repositories))
    return { environment: owned(state, 'run', record.id) }
  if (mode === 'loop' && record.loop_id !== undefined)
    return { environment: owned(state, 'loop', record.loop_id) }
  if (!spec.defaults?.environment) return {}
  const { binding, ...use } = owned(state, 'agent', '').use
  const { mode: _, owner_id: __, ...wanted } = binding ?? {}
  return { agent_environment: { ...use, ...wanted } }
}

const isOwn = ({ record }: RunState, environment: TurnEnvironment | undefined): boolean =>
  environment?.use.binding?.mode === 'run' && environment.use.binding.owner_id === record.id
/**
 * Returns the note that records the first use of the run's own environment. Because of the note,
 * the environment is notified of the end of the run. Returns an empty object for any other use.
 */
export const ownUse = (
  state: RunState,
  environment: TurnEnvironment | undefined,
): { readonly engine?: { readonly own_environment: true } } =>
  !state.engine.own_environment && isOwn(state, environment)
    ? { engine: { own_environment: true } }
    : {}
/** Returns the command that notifies an environment of the end of the run. */
export const runEnded = (id: string, run_id: string, status: string): Tell => ({
  to: { kind: 'environment', id },
  name: 'environment.run_ended',
  input: { run_id, status },
})
/** Returns the commands that notify the environments of the run of the end of the run. */
export const environmentEnds = (
  { record: { id }, engine: { own_environment, environments } }: RunState,
  status: 'completed' | 'failed' | 'cancelled',
): Pick<Note, 'tell' | 'tells'> => ({
  ...(own_environment && { tell: runEnded(boundEnvironment(id), id, status) }),
  ...(environments && { tells: environments.map((one) => runEnded(one, id, status)) }),
})

/**
 * Returns the repository that the current step clones, or undefined if the step is not a system
 * step that prepares a repository.
 */
export function preparationAt({ state, at }: Draft): Preparation | undefined {
  const { repositories, ending, position } = state.engine
  return at !== undefined || ending || !repositories || position >= repositories.length
    ? undefined
    : preparations(repositories, state.record.input ?? {})[position]
}
