/**
 * Opens the configured providers of a host. A provider that cannot work on this machine is left
 * out, and the node starts without it.
 */
import type { EnvironmentConfig } from '../config/environments.ts'
import type { Clock } from '../host/ports.ts'
import { ALL_NETWORKS, type Guard } from '../outbound/guard.ts'
import { createPost } from '../outbound/post.ts'
import type { Provider } from './provider.ts'

export interface ProviderParts {
  /** Folder for all data of the node. */
  readonly data: string
  readonly environments: EnvironmentConfig
  /**
   * Id of the installation, which distinguishes its environments from those of other installations
   * that use the same engine or service.
   */
  readonly installation: string
  /** URL at which this host reaches a gateway. */
  readonly gateway_url: string
  /** URL of the installation, if it is configured. */
  readonly public_url?: string
  readonly clock: Pick<Clock, 'now' | 'elapsed' | 'later'>
  random(length: number): Uint8Array
  /** Checks the addresses of repository hosts. */
  readonly guard: Guard
  /** Receives warnings for the operator. */
  warn(sentence: string): void
}
/** Why a provider cannot work on this machine, and what to install or set. */
interface Unavailable {
  readonly unavailable: string
}
type Open = (parts: ProviderParts) => Promise<Provider | Unavailable>

/**
 * The providers of this release, by name. A provider that is not configured is not loaded, so that
 * a node starts fast.
 */
const builtIn: Readonly<Record<string, Open>> = {
  docker: async ({ environments: { docker, limits }, random, ...parts }) => {
    const { createDockerProvider } = await import('./docker/docker.ts')
    const { installedProgram, programOfImage } = await import('./docker/program.ts')
    return createDockerProvider({
      ...parts,
      ...docker,
      limits,
      program: docker.command ? programOfImage(docker.command) : installedProgram(),
      random: () => Buffer.from(random(12)).toString('hex'),
    })
  },
  local: async ({ data, environments, guard, warn }) => {
    const { createLocalProvider } = await import('./local/provider.ts')
    return createLocalProvider({
      data,
      limits: environments.limits,
      unsafe: environments.unsafe_local,
      guard,
      warn,
    })
  },
}

/**
 * Opens the providers.
 * @param report receives the name of a provider that cannot work, and the reason.
 */
export async function openProviders(
  parts: ProviderParts,
  report: (name: string, reason: string) => void,
): Promise<readonly Provider[]> {
  const opened: Provider[] = []
  const { limits, gateway_url } = parts.environments
  // Workers that other services run reach the installation at `gateway_url` if it is set, or else
  // at its public URL if it has one.
  const outside = gateway_url ?? parts.public_url ?? parts.gateway_url
  for (const name of parts.environments.providers) {
    const service = parts.environments.http_providers.find((one) => one.name === name)
    const open = Object.hasOwn(builtIn, name) ? builtIn[name] : undefined
    const provider: Provider | Unavailable = service
      ? (await import('./http/http.ts')).createHttpProvider({
          ...parts,
          gateway_url: outside,
          ...service,
          limits,
          // The operator configures the service, so it may have any address.
          post: createPost(parts.guard.allowing(ALL_NETWORKS)),
        })
      : ((await open?.(parts)) ?? { unavailable: 'This release does not have it.' })
    if ('unavailable' in provider) report(name, provider.unavailable)
    else opened.push(provider)
  }
  return opened
}
