/**
 * The configuration that a gateway or executor caches: the directories of the organization and its
 * projects, and the specs of workflows. It is read from the owning actors on demand.
 *
 * Invariants:
 * D1. A configuration change is answered only after every gateway and executor has dropped its
 *     cached copy, so no cache is older than the last answered change. If a `forget` arrives during
 *     a load, the load is discarded and repeated.
 * D2. Every load yields a new object. A value derived from it is valid while that object is cached.
 * D3. While this node's lease is not fresh, the node may miss `forget` messages. It then caches no
 *     directory. A lookup waits for the next renewal for a limited time, loads the directory anew,
 *     and is refused with `service_unavailable` if the lease stays stale.
 * D4. A gateway that dies between a change and its answer may not have notified the others.
 *     Therefore each node drops all of its cached directories when it detects that a gateway has
 *     ended. The change takes effect at that time at the latest.
 */
import type {
  Definition,
  OrganizationDirectory,
  ProjectDirectory,
} from '../protocol/access/directory.ts'
import { isRefusal, type Refusal, refuse } from '../protocol/errors.ts'
import { getOwn } from '../protocol/lookup.ts'
import { openLeaseGate } from './lease-gate.ts'
import type { MaybePromise } from './maybe-promise.ts'
import type { World } from './ports.ts'
import { every } from './timing.ts'

export interface Directory {
  /** Returns the organization's directory, synchronously when it is cached. */
  organization(): MaybePromise<OrganizationDirectory | Refusal>
  /** Returns the directory of the project with this id, which must belong to the organization. */
  project(project: string): MaybePromise<ProjectDirectory | Refusal>
  /**
   * Reads the directory from its owner now, for fields that change without a `forget`, such as the
   * time when a key was last used.
   */
  refreshOrganization(): MaybePromise<OrganizationDirectory | Refusal>
  refreshProject(project: string): MaybePromise<ProjectDirectory | Refusal>
  /** Returns the latest version of a workflow; undefined when the project has no such workflow. */
  definition(project: string, id: string): Promise<Definition | undefined | Refusal>
  /**
   * Drops the cached directory of the project or organization with this id. Must be called before a
   * message of type `forget` is answered.
   */
  forget(id: string): void
  /**
   * Calls `listener` with the dropped id after each `forget`, and with undefined when anything may
   * have changed. Returns a function that removes the listener.
   */
  onChange(listener: (id: string | undefined) => void): () => void
  close(): void
}

interface Load<T> {
  readonly answer: Promise<T | Refusal>
  /** The directory, once it has been loaded and its id has been checked. */
  known?: T
}
/** Maximum number of cached workflow specs. */
const MAX_DEFINITIONS = 200
/**
 * Maximum number of loads for one lookup. If a `forget` arrives or the lease lapses during each of
 * them, the lookup is refused with `service_unavailable`.
 */
const MAX_LOADS = 10
/**
 * Interval in milliseconds at which this node checks whether its lease is fresh, and whether a
 * gateway has ended.
 */
const CHECK_EVERY_MS = 250
const unavailable = (): Refusal => refuse('service_unavailable')

/** Creates a directory without cached entries. */
export function openDirectory(world: World): Directory {
  const caches: Map<string, unknown>[] = []
  const definitions = new Map<string, Definition>()
  const listeners = new Set<(id: string | undefined) => void>()
  const becomesFresh = openLeaseGate(world)
  let lapsed = false

  const changed = (id: string | undefined): void => {
    for (const listener of [...listeners]) listener(id)
  }
  const clear = (): void => {
    for (const loads of caches) loads.clear()
  }
  const trusted = (): boolean => {
    if (world.fresh()) return true
    lapsed = true
    clear()
    return false
  }
  let ended = world.ended?.() ?? 0
  const watch = (): void => {
    const before = ended
    ended = world.ended?.() ?? 0
    if (trusted() && (lapsed || ended !== before)) {
      lapsed = false
      clear()
      changed(undefined)
    }
  }
  watch()
  const stopWatching = every(world, CHECK_EVERY_MS, watch)

  /**
   * Creates a cache of the directories of one kind of actor, and returns its lookup function.
   * @param lacking default values of the fields that a shard owner of an older release does not
   * send.
   */
  function directories<T extends { readonly id: string }>(
    kind: 'organization' | 'project',
    lacking: Partial<T>,
    read: (id: string) => Promise<T | Refusal>,
  ) {
    const loads = new Map<string, Load<T>>()
    caches.push(loads)
    const begin = (id: string) => {
      const load: Load<T> = { answer: read(id) }
      loads.set(id, load)
      load.answer.then(
        (answer) => {
          if (isRefusal(answer) && loads.get(id) === load) loads.delete(id)
        },
        () => {
          if (loads.get(id) === load) loads.delete(id)
        },
      )
      return load
    }
    async function wait(id: string): Promise<T | Refusal> {
      for (let attempt = 0; attempt < MAX_LOADS && id !== ''; attempt++) {
        if (!trusted() && !(await becomesFresh())) break
        const load = loads.get(id) ?? begin(id)
        try {
          const answer = await load.answer
          if (isRefusal(answer)) return unavailable()
          // An organization that is not initialized yet has an empty directory without an id. With
          // this directory, every credential would be refused as unknown, so the lookup is refused
          // instead.
          if (answer?.id !== id) {
            if (loads.get(id) === load) loads.delete(id)
            return unavailable()
          }
          if (trusted() && loads.get(id) === load) return (load.known ??= { ...lacking, ...answer })
        } catch (error) {
          world.log.warn(
            { event: 'configuration_read_failed', err: error, kind, id },
            'configuration read failed',
          )
          return unavailable()
        }
      }
      return unavailable()
    }
    return (id: string): MaybePromise<T | Refusal> => {
      const known = loads.get(id)?.known
      return known !== undefined && trusted() ? known : wait(id)
    }
  }
  const organizationOf = directories<OrganizationDirectory>('organization', { skills: {} }, (id) =>
    world.ask({ project: id, kind: 'organization', id }, 'directory', { id }),
  )
  const organization = () => organizationOf(world.organization())
  const project = directories<ProjectDirectory>('project', { agents: {} }, (id) =>
    world.ask({ project: id, kind: 'project', id }, 'directory', { id }),
  )
  const drop = (id: string): void => {
    for (const loads of caches) loads.delete(id)
  }

  return {
    organization,
    project,
    refreshOrganization() {
      drop(world.organization())
      return organization()
    },
    refreshProject(id) {
      drop(id)
      return project(id)
    },
    async definition(home, id) {
      const known = await project(home)
      if (isRefusal(known)) return known
      const workflow = getOwn(known.workflows, id)
      if (!workflow) return undefined
      const key = `${id}@${workflow.latest_version}`
      const kept = definitions.get(key)
      if (kept) return kept
      try {
        const answer = await world.ask({ project: home, kind: 'project', id: home }, 'definition', {
          id,
        })
        if (isRefusal(answer)) return unavailable()
        if (!answer) return undefined
        if (definitions.size >= MAX_DEFINITIONS)
          definitions.delete(definitions.keys().next().value ?? '')
        definitions.set(`${id}@${answer.version}`, answer)
        return answer
      } catch (error) {
        world.log.warn(
          { event: 'workflow_read_failed', err: error, project: home, id },
          'workflow read failed',
        )
        return unavailable()
      }
    },
    forget(id) {
      drop(id)
      changed(id)
    },
    onChange(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    close: stopWatching,
  }
}
