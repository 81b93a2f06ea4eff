/**
 * Creates the origin of a command: its principal, credential, time and request data. Also
 * determines the base URL of links to this service.
 */
import type { Credential, Origin, Principal } from '../../protocol/entry.ts'
import type { GatewaySettings, World } from '../ports.ts'
import type { Incoming } from './request.ts'

type Writable<T> = { -readonly [K in keyof T]: T[K] }

/**
 * Returns the origin of a command that a request causes.
 * @param request_id the id of the request; the origin contains no request id if it is absent.
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

/**
 * Returns the base URL of links to this service: the configured URL, or else `http://` and the
 * `Host` header of the request. Returns '' if no URL is configured and the header is not valid.
 */
export function baseUrl({ public_url }: Pick<GatewaySettings, 'public_url'>, host = ''): string {
  if (public_url !== undefined) return public_url
  return /^[\w.[\]:-]{1,255}$/.test(host) ? `http://${host}` : ''
}
