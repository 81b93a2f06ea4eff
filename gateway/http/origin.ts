/** Creates the origin of a command: its principal, credential, time and request data. */
import type { Credential, Origin, Principal } from '../../protocol/entry.ts'
import type { World } from '../ports.ts'
import type { Incoming } from './request.ts'

type Writable<T> = { -readonly [K in keyof T]: T[K] }

/**
 * The origin of a command that a request causes.
 * @param request_id the id of the request; without it, the origin contains none.
 */
export function originOf(
  world: Pick<World, 'now'>,
  { principal, credential }: { readonly principal: Principal; readonly credential: Credential },
  incoming: Pick<Incoming, 'header' | 'ip'>,
  request_id?: string,
): Origin {
  const agent = incoming.header('user-agent')?.slice(0, 256)
  const origin: Writable<Origin> = { at: world.now(), principal, credential }
  if (request_id !== undefined) origin.request_id = request_id
  if (incoming.ip !== '') origin.ip = incoming.ip
  if (agent !== undefined) origin.user_agent = agent
  return origin
}
