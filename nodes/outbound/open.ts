/** Opens the ports through which gateways and hosts reach addresses outside of the service. */
import type { World } from '../../gateway/ports.ts'
import type { Config } from '../config.ts'
import { createTokenIssuer } from '../repositories/tokens.ts'
import { openResolver, type ResolverParts } from '../resolver/open.ts'
import type { Guard } from './guard.ts'
import { repositoryNetworks } from './networks.ts'
import { openSignIn } from './oidc/open.ts'
import { createPost } from './post.ts'
import { createVet } from './vet.ts'

type Ports = Required<
  Pick<World, 'unreachable' | 'unreachableRepository' | 'repositoryToken' | 'definitions'>
> &
  Pick<World, 'provider'>
/** Creates the ports through which a node reaches addresses outside of the service. */
export function openOutbound(
  guard: Guard,
  config: Config,
  parts: Omit<ResolverParts, 'post' | 'brand'>,
): Ports {
  const { now } = parts.clock
  const { brand } = config
  const { oidc } = config.console
  const post = createPost(guard)
  return {
    unreachable: createVet(guard),
    unreachableRepository: createVet(guard.allowing(repositoryNetworks(config))),
    repositoryToken: createTokenIssuer({ post, now, agent: brand }),
    definitions: openResolver({ ...parts, post, brand }),
    ...(oidc && { provider: openSignIn(guard, oidc, { now, log: parts.log }) }),
  }
}
