/** The `hosts` role: opens the environment providers of this node and starts its host. */
import type { World } from '../../gateway/ports.ts'
import { environmentCredential } from '../../protocol/environments/credential.ts'
import type { Config } from '../config.ts'
import type { Bus } from '../host/ports.ts'
import { startHost } from '../hosts/host.ts'
import { readProject } from '../hosts/project.ts'
import { openProviders } from '../hosts/providers.ts'
import type { Guard } from '../outbound/guard.ts'
import { repositoryNetworks } from '../outbound/networks.ts'

interface Role {
  readonly config: Config
  readonly world: World
  readonly bus: Bus
  readonly guard: Guard
  /** Id of the organization, which identifies the installation. */
  readonly installation: string
  /** URL of the gateway of this node; absent when the node has no gateway. */
  readonly own_gateway?: string
}

/**
 * Returns a URL at which processes on this machine can reach the gateway. `0.0.0.0` and `[::]` are
 * not valid destinations, so they are replaced with the loopback address.
 */
const reachable = (url: string): string =>
  url.replace(/^(http:\/\/)(0\.0\.0\.0|\[::\])(:\d+)$/, '$1127.0.0.1$3')

/** Starts the host. Returns a function that stops it gracefully. */
export async function startHostsRole({
  config,
  world,
  bus,
  installation,
  own_gateway,
  guard,
}: Role): Promise<() => Promise<void>> {
  const { environments, brand, key_prefix, log_level } = config
  const gateway_url =
    environments.gateway_url ??
    (own_gateway === undefined ? config.public_url : reachable(own_gateway))
  const providers = await openProviders(
    {
      data: config.data,
      environments,
      installation,
      gateway_url: gateway_url ?? '',
      ...(config.public_url !== undefined && { public_url: config.public_url }),
      clock: { now: world.now, elapsed: world.monotonic, later: world.later },
      random: world.random,
      guard: guard.allowing(repositoryNetworks(config)),
      warn: (reason) =>
        world.log.warn(
          { event: 'environment_provider_warning', reason },
          'a provider of environments works with restrictions',
        ),
    },
    (provider, reason) =>
      world.log.warn(
        { event: 'environment_provider_unavailable', provider, reason },
        'a provider of environments cannot be used on this machine',
      ),
  )
  return startHost({
    world,
    bus,
    providers,
    limits: environments.host,
    launch: { brand, log_level, gateway_url: gateway_url ?? '' },
    credential: (of, random) => environmentCredential(key_prefix, of, random),
    project: (id) => readProject(world, id),
  })
}
