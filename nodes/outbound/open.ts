/** Opens the ports through which gateways and hosts reach addresses outside of the service. */
import type { World } from '../../gateway/ports.ts'
import type { Config } from '../config.ts'
import { createTokenIssuer } from '../repositories/tokens.ts'
import { createGuard, type Guard } from './guard.ts'
import { repositoryNetworks } from './networks.ts'
import { createPost } from './post.ts'
import { createVet } from './vet.ts'

type Ports = Required<Pick<World, 'unreachable' | 'unreachableRepository' | 'repositoryToken'>>
/** Creates the checks of URLs and the token issuer of a node. */
export const openOutbound = (guard: Guard, now: () => number, config: Config): Ports => ({
  unreachable: createVet(guard),
  unreachableRepository: createVet(createGuard(repositoryNetworks(config))),
  repositoryToken: createTokenIssuer({ post: createPost(guard), now, agent: config.brand }),
})
