/**
 * The containers and volumes of an installation on its engine. Their labels name the installation,
 * the project and the environment to which they belong.
 */
import type { HostTask } from '../../../protocol/environments/commands.ts'
import { type ContainerSettings, type Labels, label, labelsOf, nameOf } from './container.ts'
import { type Engine, filters, parseResponse } from './engine.ts'

interface Volume {
  readonly project: string
  readonly environment_id: string
}
interface Container extends Volume {
  readonly id: string
  /** Number of the worker. Undefined for the container that prepares a volume. */
  readonly generation: number | undefined
  readonly running: boolean
}
/** All methods throw a `ProviderFault` when the engine does not respond. */
export interface Inventory {
  /** Returns the containers of an environment, or of all environments. */
  containers(environment_id?: string, signal?: AbortSignal): Promise<readonly Container[]>
  /** Creates and starts a container. Returns its id. */
  run(name: string, settings: object, signal: AbortSignal): Promise<string>
  /** Stops and removes a container. Does nothing if it does not exist. */
  removeContainer(id: string, signal?: AbortSignal): Promise<void>
  volumes(): Promise<readonly Volume[]>
  createVolume(task: HostTask, signal: AbortSignal): Promise<void>
  hasVolume(environment_id: string, signal?: AbortSignal): Promise<boolean>
  /** Removes a volume. Does nothing if it does not exist. */
  removeVolume(environment_id: string): Promise<void>
}

interface Labelled {
  readonly Labels: Labels | null
}
interface ListedContainer extends Labelled {
  readonly Id: string
  readonly State: string
}

const volumePath = (environment_id: string): string => `/volumes/${nameOf(environment_id)}`

export function createInventory(
  engine: Engine,
  { installation }: Pick<ContainerSettings, 'installation'>,
): Inventory {
  const ours = filters({ label: [`${label.installation}=${installation}`] })
  /**
   * Returns the environment of a listed object; undefined if the object does not belong to this
   * installation. The filter of the request does not suffice, because engines differ in how they
   * combine several labels.
   */
  const ownerOf = ({ Labels: labels }: Labelled): Volume | undefined => {
    const environment_id = labels?.[label.environment]
    return labels?.[label.installation] === installation && environment_id !== undefined
      ? { project: labels[label.project] ?? '', environment_id }
      : undefined
  }
  const removeContainer = async (id: string, signal?: AbortSignal): Promise<void> => {
    await engine.call('DELETE', `/containers/${id}`, {
      query: { force: 'true' },
      // The engine responds with 409 when the container is already being removed.
      accepts: [404, 409],
      ...(signal && { signal }),
    })
  }
  return {
    async containers(environment_id, signal) {
      const response = await engine.call('GET', '/containers/json', {
        query: { all: 'true', ...ours },
        ...(signal && { signal }),
      })
      const all = parseResponse<readonly ListedContainer[] | null>(response) ?? []
      return all.flatMap((listed): readonly Container[] => {
        const owner = ownerOf(listed)
        if (!owner || (environment_id ?? owner.environment_id) !== owner.environment_id) return []
        const number = listed.Labels?.[label.generation]
        return [
          {
            ...owner,
            id: listed.Id,
            generation: number === undefined ? undefined : Number(number),
            running: listed.State === 'running',
          },
        ]
      })
    },
    async run(name, settings, signal) {
      const created = await engine.call('POST', '/containers/create', {
        query: { name },
        body: settings,
        signal,
      })
      const { Id } = parseResponse<{ readonly Id: string }>(created)
      try {
        await engine.call('POST', `/containers/${Id}/start`, { signal })
      } catch (error) {
        // If this fails, the next attempt or the removal of the environment removes the container.
        await removeContainer(Id).catch(() => {})
        throw error
      }
      return Id
    },
    removeContainer,
    async volumes() {
      const { Volumes } = parseResponse<{ readonly Volumes: readonly Labelled[] | null }>(
        await engine.call('GET', '/volumes', { query: ours }),
      )
      return (Volumes ?? []).flatMap((listed) => ownerOf(listed) ?? [])
    },
    async createVolume(task, signal) {
      const body = { Name: nameOf(task.environment_id), Labels: labelsOf(task, { installation }) }
      await engine.call('POST', '/volumes/create', { body, signal })
    },
    async hasVolume(environment_id, signal) {
      const { status } = await engine.call('GET', volumePath(environment_id), {
        accepts: [404],
        ...(signal && { signal }),
      })
      return status !== 404
    },
    async removeVolume(environment_id) {
      await engine.call('DELETE', volumePath(environment_id), {
        query: { force: 'true' },
        accepts: [404],
      })
    },
  }
}
