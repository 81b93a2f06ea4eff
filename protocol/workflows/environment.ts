/**
 * The environment policy of a definition, which selects the environment of its actions and agents.
 *
 * An action that requires an environment uses the first of these environments that is specified:
 * 1. the environment in the config of the step
 * 2. the environment in the policy
 * 3. the environment of the owner (run, agent or loop) that the mode of the policy selects
 * 4. the environment of the run
 *
 * A turn of an agent uses the first of these environments that is specified:
 * 1. the environment in the policy
 * 2. the environment of the owner that the mode of the policy selects
 * 3. the environment of the run, if the run has repositories
 * 4. the environment of the agent
 *
 * With the mode `disabled`, an action uses only the environment in the config of its step, and a
 * turn uses no environment.
 */
import type { Static } from 'typebox'
import type { EnvironmentBinding } from '../environments/commands.ts'
import type { Environment } from './spec.ts'
import type { Step } from './steps.ts'

export type EnvironmentPolicy = Static<typeof Environment>
type ActionConfig = Extract<Step, { kind: 'action' }>['config']

/** Whether only a worker of an environment may perform the action. */
export const needsEnvironment = ({
  action_name,
  execution_location,
  environment_id,
}: ActionConfig): boolean =>
  environment_id !== undefined ||
  execution_location === 'environment' ||
  action_name.startsWith('environment.')

/** Returns the settings of the policy for an environment that is created for an owner. */
export const environmentSettings = ({
  provider,
  template_id,
  runtime_version,
  retention_policy,
}: EnvironmentPolicy): Omit<EnvironmentBinding, 'mode' | 'owner_id'> => ({
  ...(provider !== undefined && { provider }),
  ...(template_id !== undefined && { template_id }),
  ...(runtime_version !== undefined && { runtime_version }),
  ...(retention_policy !== undefined && { retention_policy }),
})
