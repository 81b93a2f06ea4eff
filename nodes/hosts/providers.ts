/**
 * Opens the configured providers of a host. A provider that cannot work on this machine is left
 * out, and the node starts without it.
 */
import type { EnvironmentConfig } from '../config/environments.ts'
import type { Provider } from './provider.ts'

export interface ProviderParts {
  /** Folder for all data of the node. */
  readonly data: string
  readonly environments: EnvironmentConfig
  /** Networks that may be called on behalf of users, in addition to public addresses. */
  readonly allowed_networks: readonly string[]
  /** Receives a warning about a provider that works, but not as it should. */
  warn(name: string, sentence: string): void
}
/** Why a provider cannot work on this machine, and what to install or set. */
interface Unavailable {
  readonly unavailable: string
}
type Open = (parts: ProviderParts) => Promise<Provider | Unavailable>

/** The providers of this release, by name. */
const builtIn: Readonly<Record<string, Open>> = {
  local: async ({ data, environments, allowed_networks, warn }) => {
    const { createLocalProvider } = await import('./local/provider.ts')
    return createLocalProvider({
      data,
      limits: environments.limits,
      unsafe: environments.unsafe_local,
      allowed_networks,
      warn: (sentence) => warn('local', sentence),
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
  for (const name of parts.environments.providers) {
    const open = Object.hasOwn(builtIn, name) ? builtIn[name] : undefined
    const provider: Provider | Unavailable = open
      ? await open(parts)
      : { unavailable: 'this release does not have it' }
    if ('unavailable' in provider) report(name, provider.unavailable)
    else opened.push(provider)
  }
  return opened
}
