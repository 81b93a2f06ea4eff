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
  type Labels,
  label,
  labelsOf,
  nameOf,
  preparationSettings,
  workerContainer,
} from './container.ts'
import { createEngine, type Engine, filters, parseResponse } from './engine.ts'
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
/** Milliseconds without progress after which the download of an image fails. */
const PULL_SILENCE_MS = 180_000
/** Maximum number of characters of output that a fault contains. */
const MAX_OUTPUT_LENGTH = 500

interface Labelled {
  readonly Labels: Labels | null
}
interface Listed extends Labelled {
  readonly Id: string
  readonly State: string
}

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

const runningOf = (containers: readonly Listed[]): ReadonlySet<string> =>
  new Set(containers.filter(({ State }) => State === 'running').map(({ Id }) => Id))

function providerOf(
  engine: Engine,
  options: DockerOptions,
  place: string,
  isolation: string,
): Provider {
  const { installation, image } = options
  const watch = watchWorkers(engine, options.clock, installation)
  const ours = filters({ label: [`${label.installation}=${installation}`] })
  /**
   * Returns the volumes or containers that belong to this installation and, if `id` is given, to
   * that environment. Their labels are checked again, because engines differ in how they combine
   * several labels in a filter.
   */
  const belonging = <T extends { readonly Labels: Labels | null }>(
    all: readonly T[] | null,
    id?: string,
  ): (T & { readonly Labels: Labels })[] =>
    (all ?? []).flatMap((one) => {
      const { Labels: labels } = one
      const environment = labels?.[label.environment]
      return labels?.[label.installation] === installation &&
        environment !== undefined &&
        (id === undefined || environment === id)
        ? [{ ...one, Labels: labels }]
        : []
    })
  const list = async (id?: string, signal?: AbortSignal) =>
    belonging(
      parseResponse<readonly Listed[]>(
        await engine.call('GET', '/containers/json', {
          query: { all: 'true', ...ours },
          ...(signal && { signal }),
        }),
      ),
      id,
    )
  const generationOf = ({ Labels: labels }: Labelled): number | undefined => {
    const text = labels?.[label.generation]
    return text === undefined ? undefined : Number(text)
  }
  const remove = (container: string, signal?: AbortSignal) =>
    engine.call('DELETE', `/containers/${container}`, {
      query: { force: 'true' },
      // The engine responds with 409 when the container is already being removed.
      accepts: [404, 409],
      ...(signal && { signal }),
    })
  /** Creates and starts a container. Returns its id. */
  const run = async (name: string, container: object, signal: AbortSignal): Promise<string> => {
    const created = await engine.call('POST', '/containers/create', {
      query: { name },
      body: container,
      signal,
    })
    const { Id } = parseResponse<{ readonly Id: string }>(created)
    try {
      await engine.call('POST', `/containers/${Id}/start`, { signal })
    } catch (error) {
      // If this fails, the next attempt or the removal of the environment removes the container.
      await remove(Id).catch(() => {})
      throw error
    }
    return Id
  }
  const runWorker = async (
    task: HostTask,
    launch: WorkerLaunch,
    signal: AbortSignal,
  ): Promise<string> => {
    try {
      const container = workerContainer(task, launch, options)
      return await run(nameOf(task.environment_id), container, signal)
    } catch (error) {
      if (!(error instanceof ProviderFault)) throw error
      throw new ProviderFault(redactSecrets(error.message, secretsOf(launch)))
    }
  }

  /** Downloads the image if the engine does not have it. */
  async function haveImage(signal: AbortSignal): Promise<void> {
    const name = encodeURI(image)
    const found = await engine.call('GET', `/images/${name}/json`, { accepts: [404], signal })
    if (found.status !== 404) return
    let output = ''
    await engine.stream(
      'POST',
      '/images/create',
      (part) => {
        output = (output + part.toString()).slice(-4096)
      },
      { query: { fromImage: image }, signal, silence_ms: PULL_SILENCE_MS },
    )
    const error = /"error":\s*("(?:[^"\\]|\\.)*")/.exec(output)?.[1]
    if (error !== undefined)
      throw new ProviderFault(
        `The image ${image} cannot be downloaded: ${(JSON.parse(error) as string).slice(0, MAX_OUTPUT_LENGTH)}`,
      )
  }

  return {
    name: 'docker',
    place,
    isolation,
    async provision(task, signal) {
      const id = task.environment_id
      await haveImage(signal)
      await engine.call('POST', '/volumes/create', {
        body: { Name: nameOf(id), Labels: labelsOf(task, options) },
        signal,
      })
      // An interrupted preparation may have left containers.
      for (const one of await list(id, signal)) await remove(one.Id, signal)
      const name = `${nameOf(id)}-preparation`
      const container = await run(name, preparationSettings(task, options), signal)
      try {
        const waited = await engine.call('POST', `/containers/${container}/wait`, { signal })
        if (parseResponse<{ readonly StatusCode: number }>(waited).StatusCode === 0) return
        const { content } = await readLog(engine, container, 'stderr', {
          tail: 10,
          max_bytes: MAX_OUTPUT_LENGTH,
        })
        throw new ProviderFault(`The image ${image} cannot be used: ${content.trim()}`)
      } finally {
        await remove(container)
      }
    },
    async startWorker(task, launch, signal) {
      const id = task.environment_id
      const { generation } = launch
      const volume = await engine.call('GET', `/volumes/${nameOf(id)}`, { accepts: [404], signal })
      if (volume.status === 404) throw new ProviderFault('The workspace does not exist any more.')
      watch.forget(id)
      for (const one of await list(id, signal)) {
        if ((generationOf(one) ?? 0) > generation)
          throw new ProviderFault('A newer worker was started.')
        await remove(one.Id, signal)
      }
      const container = await runWorker(task, launch, signal)
      watch.follow({ project: task.project, environment_id: id, generation, container })
    },
    async destroy(environment_id) {
      watch.forget(environment_id)
      for (const { Id } of await list(environment_id)) await remove(Id)
      const volume = `/volumes/${nameOf(environment_id)}`
      await engine.call('DELETE', volume, { query: { force: 'true' }, accepts: [404] })
    },
    async logs(environment_id, request) {
      const found = await list(environment_id)
      const container = found.find((one) => generationOf(one) !== undefined)
      if (container) return readLog(engine, container.Id, request.log_name, request)
      const path = `/volumes/${nameOf(environment_id)}`
      const { status } = await engine.call('GET', path, { accepts: [404] })
      return status === 404 ? undefined : { content: '', truncated: false }
    },
    async inspect() {
      const { Volumes } = parseResponse<{ readonly Volumes: readonly Labelled[] | null }>(
        await engine.call('GET', '/volumes', { query: ours }),
      )
      const containers = await list()
      const found = new Map<string, Presence>()
      const add = (labels: Labels, generation?: number) => {
        const { [label.environment]: environment_id = '', [label.project]: project = '' } = labels
        found.set(environment_id, {
          project,
          environment_id,
          ...(generation !== undefined && { generation }),
        })
        return { project, environment_id }
      }
      for (const { Labels: labels } of belonging(Volumes)) add(labels)
      for (const one of containers)
        if (!found.has(one.Labels[label.environment] ?? '')) add(one.Labels)
      const running = runningOf(containers)
      await watch.compare(running)
      for (const one of containers) {
        const generation = generationOf(one)
        if (generation === undefined || !running.has(one.Id)) continue
        const of = add(one.Labels, generation)
        watch.follow({ ...of, generation, container: one.Id })
      }
      return [...found.values()]
    },
    onExit: watch.onExit,
    close: async () => watch.stop(),
  }
}
