/**
 * The `docker` provider: a volume and a container per environment, on the engine of this machine.
 * All state of the provider is in the engine, so hosts that use the same engine share their
 * environments.
 *
 * Invariants:
 * D1. The container of a worker is named after its environment, so the engine runs at most one
 *     worker per environment. The start of a worker never removes a newer worker.
 * D2. A worker is started only if the volume exists. Only `provision` creates the volume.
 */
import type { HostTask } from '../../../protocol/environments/commands.ts'
import type { Clock } from '../../host/ports.ts'
import { redactSecrets, secretsOf } from '../conceal.ts'
import { isLoopback } from '../loopback.ts'
import { type Presence, type Provider, ProviderFault, type WorkerLaunch } from '../provider.ts'
import {
  type ContainerSettings,
  nameOf,
  preparationSettings,
  workerContainer,
} from './container.ts'
import { createEngine, type Engine, parseResponse } from './engine.ts'
import { downloadMissingImage } from './image.ts'
import { createInventory } from './inventory.ts'
import { readLog } from './logs.ts'
import { openPlace } from './place.ts'
import { watchWorkers } from './watch.ts'

export interface DockerOptions extends ContainerSettings {
  /** Path of the engine's Unix socket. */
  readonly socket: string
  /** URL of the gateway that workers use. */
  readonly gateway_url: string
  readonly clock: Pick<Clock, 'now' | 'elapsed' | 'later'>
  /** Generates the random part of the name of a new place. */
  random(): string
}
/** Maximum number of characters of output that a fault contains. */
const MAX_OUTPUT_LENGTH = 500

/**
 * Opens the provider.
 * @returns the provider, or why it is unavailable: the engine does not respond, or its containers
 *   cannot reach the gateway.
 */
export async function createDockerProvider(
  options: DockerOptions,
): Promise<Provider | { readonly unavailable: string }> {
  const { socket, network, gateway_url } = options
  if (network !== 'host' && isLoopback(gateway_url))
    return {
      unavailable:
        `Containers cannot reach the gateway at ${gateway_url}. Set BATON_GATEWAY_URL to an ` +
        'address of this machine on which the gateway listens, or BATON_DOCKER_NETWORK to host.',
    }
  const engine = createEngine(socket)
  try {
    const { place, isolation } = await openPlace(engine, options)
    return providerOf(engine, options, place, isolation)
  } catch (error) {
    if (!(error instanceof ProviderFault)) throw error
    return {
      unavailable:
        `${error.message} Start Docker, or the API service of Podman, ` +
        `or set BATON_DOCKER_SOCKET, which is ${socket}.`,
    }
  }
}

function providerOf(
  engine: Engine,
  options: DockerOptions,
  place: string,
  isolation: string,
): Provider {
  const { installation, image } = options
  const watch = watchWorkers(engine, options.clock, installation)
  const inventory = createInventory(engine, options)
  const runWorker = async (
    task: HostTask,
    launch: WorkerLaunch,
    signal: AbortSignal,
  ): Promise<string> => {
    try {
      const settings = workerContainer(task, launch, options)
      return await inventory.run(nameOf(task.environment_id), settings, signal)
    } catch (error) {
      if (!(error instanceof ProviderFault)) throw error
      throw new ProviderFault(redactSecrets(error.message, secretsOf(launch)))
    }
  }
  /** Prepares the volume of an environment in a container, which is removed afterwards. */
  const prepare = async (task: HostTask, signal: AbortSignal): Promise<void> => {
    const name = `${nameOf(task.environment_id)}-preparation`
    const container = await inventory.run(name, preparationSettings(task, options), signal)
    try {
      const waited = await engine.call('POST', `/containers/${container}/wait`, { signal })
      if (parseResponse<{ readonly StatusCode: number }>(waited).StatusCode === 0) return
      const { content } = await readLog(engine, container, 'stderr', {
        tail: 10,
        max_bytes: MAX_OUTPUT_LENGTH,
      })
      throw new ProviderFault(`The image ${image} cannot be used: ${content.trim()}`)
    } finally {
      await inventory.removeContainer(container)
    }
  }
  return {
    name: 'docker',
    place,
    isolation,
    async provision(task, signal) {
      await downloadMissingImage(engine, image, signal)
      await inventory.createVolume(task, signal)
      // An interrupted preparation may have left containers.
      for (const { id } of await inventory.containers(task.environment_id, signal))
        await inventory.removeContainer(id, signal)
      await prepare(task, signal)
    },
    async startWorker(task, launch, signal) {
      const { project, environment_id } = task
      const { generation } = launch
      if (!(await inventory.hasVolume(environment_id, signal)))
        throw new ProviderFault('The workspace does not exist any more.')
      watch.forget(environment_id)
      for (const one of await inventory.containers(environment_id, signal)) {
        if ((one.generation ?? 0) > generation)
          throw new ProviderFault('A newer worker was started.')
        await inventory.removeContainer(one.id, signal)
      }
      const container = await runWorker(task, launch, signal)
      watch.follow({ project, environment_id, generation, container })
    },
    async destroy(environment_id) {
      watch.forget(environment_id)
      for (const { id } of await inventory.containers(environment_id))
        await inventory.removeContainer(id)
      await inventory.removeVolume(environment_id)
    },
    async logs(environment_id, request) {
      const found = await inventory.containers(environment_id)
      const worker = found.find(({ generation }) => generation !== undefined)
      if (worker) return readLog(engine, worker.id, request.log_name, request)
      const exists = await inventory.hasVolume(environment_id)
      return exists ? { content: '', truncated: false } : undefined
    },
    async inspect() {
      const volumes = await inventory.volumes()
      const containers = await inventory.containers()
      const found = new Map<string, Presence>()
      for (const { project, environment_id } of [...volumes, ...containers])
        if (!found.has(environment_id)) found.set(environment_id, { project, environment_id })
      const running = containers.filter((one) => one.running)
      await watch.compare(new Set(running.map(({ id }) => id)))
      for (const { id: container, project, environment_id, generation } of running) {
        if (generation === undefined) continue
        found.set(environment_id, { project, environment_id, generation })
        watch.follow({ project, environment_id, generation, container })
      }
      return [...found.values()]
    },
    onExit: watch.onExit,
    close: async () => watch.stop(),
  }
}
