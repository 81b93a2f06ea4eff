/** What gateways may request from addresses outside of the service. */
import type { World } from '../../gateway/ports.ts'
import { createTokenIssuer } from '../repositories/tokens.ts'
import type { Guard } from './guard.ts'
import { createPost } from './post.ts'
import { createVet } from './vet.ts'

/**
 * Creates the ports of a gateway to addresses outside of the service.
 * @param agent value of the header User-Agent.
 */
export const openOutbound = (
  guard: Guard,
  now: () => number,
  agent: string,
): Required<Pick<World, 'unreachable' | 'repositoryToken'>> => ({
  unreachable: createVet(guard),
  repositoryToken: createTokenIssuer({ post: createPost(guard), now, agent }),
})
