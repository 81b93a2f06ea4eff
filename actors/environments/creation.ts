/**
 * The records of new environments. The actor of the name (`name.ts`) creates an environment for a
 * client, or for a worker that attaches its workspace. The environment actor creates its own record
 * if the environment belongs to a run, an agent or a loop.
 */

import { timestamp } from '../../protocol/common.ts'
import type {
  EnvironmentBinding,
  EnvironmentCommands,
} from '../../protocol/environments/commands.ts'
import type { EnvironmentEvent, EnvironmentOrigin } from '../../protocol/environments/events.ts'
import type {
  CreateEnvironment,
  Environment,
  EnvironmentMode,
  Lifetime,
  RetentionPolicy,
} from '../../protocol/environments/schema.ts'
import { getOwn } from '../../protocol/lookup.ts'
import type { Cause } from '../actor.ts'
import type { EnvironmentSettings } from './draft.ts'

/** Default lifetime and retention policy of an environment, by mode. */
const byMode: Readonly<
  Record<EnvironmentMode, { readonly lifetime: Lifetime; readonly retention: RetentionPolicy }>
> = {
  manual: { lifetime: 'explicit', retention: 'manual' },
  run: { lifetime: 'run', retention: 'destroy_on_success' },
  agent: { lifetime: 'lease', retention: 'retain_always' },
  loop: { lifetime: 'lease', retention: 'retain_always' },
}

/** Returns the default name of an environment, which is unique because it contains the id. */
const generatedName = (id: string): string => `env-${id.slice(id.indexOf('_') + 1)}`

/** Returns the record of a new environment. `provider` must not be an alias. */
export function newEnvironment(
  id: string,
  input: CreateEnvironment & { readonly provider: string },
  at: number,
): Environment {
  const { name = generatedName(id), mode = 'manual', lifetime, retention_policy, ...rest } = input
  const now = timestamp(at)
  return {
    id,
    name,
    ...rest,
    status: rest.provider === 'worker' ? 'ready' : 'provisioning',
    lifetime: lifetime ?? byMode[mode].lifetime,
    retention_policy: retention_policy ?? byMode[mode].retention,
    cleanup_status: 'none',
    mode,
    created_at: now,
    updated_at: now,
  }
}

/** Returns the event that creates the environment of a run, an agent or a loop. */
export function createBound(
  binding: EnvironmentBinding,
  { default_provider, aliases }: Pick<EnvironmentSettings, 'default_provider' | 'aliases'>,
  { self: { id }, at, principal }: Cause,
): EnvironmentEvent {
  const { mode, owner_id, provider, template_id, retention_policy, owned_by, repositories } =
    binding
  const environment = newEnvironment(
    id,
    {
      mode,
      provider: provider === undefined ? default_provider : (getOwn(aliases, provider) ?? provider),
      owned_by: owned_by ?? principal.id,
      [`${mode}_id`]: owner_id,
      ...(template_id === 'coding-default' && { template_id }),
      ...(retention_policy !== undefined && { retention_policy }),
      ...(repositories && repositories.length > 0 && { repositories: [...repositories] }),
    },
    at,
  )
  return {
    type: 'environment.created',
    id,
    environment,
    origin: {
      ...(binding.runtime_version !== undefined && { runtime_version: binding.runtime_version }),
    },
  }
}

/**
 * Whether the use of an environment ends with its run. The use of an environment with a name ends
 * with the run only if its lifetime is `run`.
 */
const endsWithRun = ({ mode, lifetime }: Environment, { holder }: EnvironmentOrigin): boolean =>
  mode === 'run' && (holder === undefined || lifetime === 'run')
/** Returns the event that creates an environment with the given record and origin. */
export const createdEvent = (
  { environment, origin }: EnvironmentCommands['environment.open']['input'],
  id: string,
): EnvironmentEvent => ({
  type: 'environment.created',
  id,
  environment,
  origin,
  ...(endsWithRun(environment, origin) && { notifies_run: true }),
})
