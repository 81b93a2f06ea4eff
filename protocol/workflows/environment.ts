/**
 * The environment policy of a definition: which environment its actions and its agents work in.
 *
 * An action that works in an environment uses the first of these that is given: the environment of
 * its step, that of the policy, that of the owner that the mode of the policy names, and that of the
 * run. A turn of an agent uses that of the policy, that of the owner that its mode names, that of the
 * run when the run has repositories, and otherwise that of the agent.
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

/** What the policy says about an environment that is created for an owner. */
export const wishes = ({
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
