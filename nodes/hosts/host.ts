/**
 * A host, which runs providers of environments. It performs operations on request, reports the
 * environments of its providers, and answers requests for logs. The host stores nothing. After a
 * restart, `inspect()` of each provider returns the existing environments.
 *
 * Invariants:
 * H1. While the host has no capacity left, it does not listen for requests from environments
 *     without a place, so other hosts receive them.
 */
import type { World } from '../../gateway/ports.ts'
import type { HostRequest } from '../../protocol/environments/commands.ts'
import { CREDENTIAL_BYTES } from '../../protocol/environments/credential.ts'
import type { LogsAnswer, LogsRequest } from '../../protocol/environments/logs.ts'
import { subjects } from '../../protocol/subjects.ts'
import type { Bus } from '../host/ports.ts'
import { createActors } from './actors.ts'
import type { LaunchSettings, ProjectFacts } from './launch.ts'
import { type HostLimits, Operations } from './operations.ts'
import { createPresence } from './presence.ts'
import type { Provider } from './provider.ts'

export interface HostParts {
  readonly world: Pick<
    World,
    'node' | 'now' | 'monotonic' | 'later' | 'random' | 'newCommandId' | 'hash' | 'command' | 'log'
  >
  readonly bus: Pick<Bus, 'subscribe'>
  readonly providers: readonly Provider[]
  readonly limits: HostLimits
  readonly launch: LaunchSettings
  /** Looks up the project of an environment. @throws ProviderFault when it cannot be read. */
  project(id: string): Promise<ProjectFacts>
  /** Creates the credential of an environment's worker from random bytes. */
  credential(
    of: { readonly project: string; readonly environment_id: string },
    random: Uint8Array,
  ): string
}

/** Starts a host. Returns a function that stops it gracefully. */
export function startHost(parts: HostParts): () => Promise<void> {
  const { world, bus, providers } = parts
  const actors = createActors(world)
  let unlisten: (() => void)[] | undefined
  let stopping = false

  const operations = new Operations({
    world,
    actors,
    limits: parts.limits,
    launch: parts.launch,
    credential: (of) => parts.credential(of, world.random(CREDENTIAL_BYTES)),
    project: (id) => parts.project(id),
    environments: () => presences.reduce((sum, presence) => sum + presence.count(), 0),
    ended: (provider, of, how) => presences[providers.indexOf(provider)]?.ended(of, how),
    changed: () => listen(),
  })
  const presences = providers.map((provider) =>
    createPresence({ world, actors, provider, operations, changed: () => listen() }),
  )
  /**
   * Starts to listen for requests from environments without a place if the host has capacity, and
   * stops otherwise.
   */
  function listen(): void {
    if (stopping || !operations.hasRoom()) {
      for (const end of unlisten ?? []) end()
      unlisten = undefined
      return
    }
    unlisten ??= providers.map((provider) =>
      bus.subscribe(
        subjects.hostsOf(provider.name),
        (message) => operations.request(provider, message as HostRequest),
        subjects.hostGroup,
      ),
    )
  }
  const ends = providers.flatMap((provider) => [
    bus.subscribe(subjects.hostsAt(provider.place), (message) =>
      operations.request(provider, message as HostRequest),
    ),
    bus.subscribe(
      subjects.hostLogs(provider.place),
      (message) => readLogs(provider, message as LogsRequest),
      subjects.hostGroup,
    ),
  ])
  listen()
  for (const presence of presences) void presence.begin()

  return async () => {
    stopping = true
    for (const end of ends) end()
    listen()
    await operations.stop()
    for (const presence of presences) presence.stop()
    await Promise.all(providers.map((provider) => provider.close()))
  }
}

/**
 * Returns the end of a log, or undefined (no answer) if the environment is not at the provider's
 * place.
 */
const readLogs = (
  provider: Provider,
  { environment_id, ...request }: LogsRequest,
): Promise<LogsAnswer | undefined> => provider.logs(environment_id, request)
