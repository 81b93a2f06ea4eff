/** The setting for the reverse proxies and load balancers in front of the gateways. */
import { each, network, type Parse } from './parse.ts'
import { setting } from './setting.ts'

/** Parses a network of proxies. A network of all addresses would let clients choose their address. */
const proxy: Parse<string> = (text) =>
  /\/0+$/.test(text) ? { wrong: 'must not contain a network of all addresses' } : network(text)

export const proxyTable = {
  BATON_TRUSTED_PROXIES: setting(
    '',
    each(proxy),
    'Addresses and networks of the reverse proxies in front of the gateways, comma-separated, ' +
      'such as 10.0.0.0/8,fd00::1; the header X-Forwarded-For of their requests determines the ' +
      'address of the client',
  ),
} as const
