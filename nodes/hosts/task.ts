/** Performs one claimed operation of an environment with its provider. */
import type { World } from '../../gateway/ports.ts'
import type { HostTask } from '../../protocol/environments/commands.ts'
import { type LaunchSettings, launchOf, type ProjectFacts } from './launch.ts'
import { type Provider, ProviderFault } from './provider.ts'

export interface TaskParts {
  readonly world: Pick<World, 'log'>
  readonly launch: LaunchSettings
  /** Looks up a project. @throws ProviderFault when the project cannot be read. */
  project(id: string): Promise<ProjectFacts>
}
/**
 * Whether a provider has the environment after an operation. `unknown` if the operation was not
 * claimed, failed or was aborted.
 */
export type Ended =
  | { readonly has: 'nothing' | 'unknown' }
  | { readonly has: 'environment'; readonly generation?: number }

/**
 * Lets the provider perform a task. `error` is a message for users.
 * @param credential the credential of the worker, for a task that starts one.
 */
export async function performTask(
  parts: TaskParts,
  provider: Provider,
  task: HostTask,
  credential: string | undefined,
  signal: AbortSignal,
): Promise<{ readonly how: Ended; readonly error?: string }> {
  try {
    switch (task.kind) {
      case 'provision':
        await provider.provision(task, signal)
        return { how: { has: 'environment' } }
      case 'start': {
        const project = await parts.project(task.project)
        const launch = launchOf(task, credential ?? '', project, parts.launch)
        await provider.startWorker(task, launch, signal)
        return { how: { has: 'environment', generation: launch.generation } }
      }
      case 'destroy':
        await provider.destroy(task.environment_id)
        return { how: { has: 'nothing' } }
    }
  } catch (error) {
    const how: Ended = { has: 'unknown' }
    if (error instanceof ProviderFault) return { how, error: error.message }
    if (!signal.aborted)
      parts.world.log.error(
        {
          event: 'environment_provider_failed',
          err: error,
          environment: task.environment_id,
          provider: provider.name,
        },
        'provider of environments failed',
      )
    return { how, error: 'An internal error of the provider occurred.' }
  }
}
