/**
 * Validation of the environment policy of a workflow, and of the locations at which its actions are
 * performed.
 */
import type { FieldError } from '../../errors.ts'
import { isId } from '../../ids.ts'
import { type EnvironmentPolicy, needsEnvironment } from '../../workflows/environment.ts'
import type { Spec, Step } from '../../workflows/spec.ts'
import { below } from './path.ts'
import { placesIn } from './places.ts'

/** The facts about a loop that the validation of its workflow needs. */
export interface LoopFacts {
  /** Id or name of the agent of the loop. */
  readonly agent_id?: string
  /** Ids of the system steps that prepare the repositories of the loop. */
  readonly prepares: readonly string[]
}

/**
 * Returns the paths of `environment_id` in action steps that need an environment but do not specify
 * one.
 */
const unnamed = (steps: readonly Step[], path: string): string[] =>
  placesIn(steps, path, ({ kind, config }, at) =>
    kind === 'action' && config.environment_id === undefined && needsEnvironment(config)
      ? [below(at(), 'environment_id')]
      : [],
  )

/** Returns the faults of the `execution_location` of one action. */
export const checkLocation = (
  config: Parameters<typeof needsEnvironment>[0],
  path: string,
): FieldError[] => {
  if (config.execution_location !== 'managed' || !needsEnvironment(config)) return []
  return config.environment_id === undefined
    ? [
        {
          field: below(path, 'execution_location'),
          message: 'must be environment: only the worker of an environment performs this action',
          actual: config.execution_location,
        },
      ]
    : [
        {
          field: below(path, 'environment_id'),
          message: 'is not allowed for actions that the service executes',
        },
      ]
}

function checkMode(
  { mode, environment_id }: EnvironmentPolicy,
  path: string,
  uses: boolean,
  loop: LoopFacts | undefined,
): FieldError[] {
  if (environment_id !== undefined) return []
  const at = below(path, 'mode')
  if (mode === 'manual')
    return [{ field: below(path, 'environment_id'), message: 'is required by the mode manual' }]
  if (mode === 'loop' && !loop)
    return [{ field: at, message: 'is allowed only for loops', actual: mode }]
  return mode === 'agent' && uses && !isId(loop?.agent_id ?? '', 'agent')
    ? [
        {
          field: at,
          message: 'requires a loop whose agent_id contains the id of an agent',
          actual: mode,
        },
      ]
    : []
}

/**
 * Returns the faults of the environment policy and of the steps without an environment.
 * @param path path of the spec.
 * @param loop facts about the loop, for the spec of a loop.
 */
export function checkEnvironments(
  { steps, cleanup = [], defaults }: Spec,
  path: string,
  loop: LoopFacts | undefined,
): FieldError[] {
  const policy = defaults?.environment
  if (!policy) return []
  const without = [
    ...unnamed(steps, below(path, 'steps')),
    ...unnamed(cleanup, below(path, 'cleanup')),
  ]
  const prepares = (loop?.prepares.length ?? 0) > 0
  const at = below(below(path, 'defaults'), 'environment')
  if (!policy.disabled) return checkMode(policy, at, prepares || without.length > 0, loop)
  return [
    ...without.map((field) => ({
      field,
      message: 'is required: defaults.environment is disabled',
    })),
    ...(prepares
      ? [
          {
            field: below(path, 'repositories'),
            message: 'need an environment, but defaults.environment is disabled',
          },
        ]
      : []),
  ]
}
