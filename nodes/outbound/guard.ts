/**
 * Decides to which addresses the service connects on behalf of its users: public addresses, and
 * addresses that the operator allows. Users therefore cannot reach internal systems through the
 * service. All other addresses are rejected: this machine, private networks, link-local addresses,
 * and addresses that embed a rejected address.
 *
 * Invariants:
 * G1. A name is rejected if any of its addresses is rejected.
 * G2. The connection uses the checked addresses and does not resolve the name again.
 * G3. Names that are not answered delay only the requests of their own project (`lookups.ts`).
 */
import { lookup } from 'node:dns/promises'
import ipaddr from 'ipaddr.js'
import { type Address, isIn, networksOf, parseAddress } from './addresses.ts'
import { createLookups, type LookupCause, lookupsOf, type Resolve } from './lookups.ts'

/** A checked address to connect to. */
export interface Resolved {
  readonly address: string
  readonly family: 4 | 6
  /** Set when the address is in a network that the operator allows. */
  readonly allowed?: true
}
/** Thrown when the service is not allowed to connect to the host of a request. */
export class AddressRefused extends Error {
  override readonly name = 'AddressRefused'
}
export interface Guard {
  /**
   * Returns the addresses of a host. The host is a name, or an address as in a URL, such as
   * `[::1]`.
   * @throws AddressRefused when the service is not allowed to connect to one of them, or the host
   *   has none.
   * @throws Error the error of the name lookup, or the reason of the signal.
   */
  check(host: string, cause?: LookupCause): Promise<readonly Resolved[]>
}

const global = ipaddr.parseCIDR('2000::/3')
const resolveAll: Resolve = async (name) =>
  (await lookup(name, { all: true, verbatim: true })).map(({ address }) => address)
/** All guards of a process share its lookups. */
const lookUp = createLookups(resolveAll, lookupsOf(process.env['UV_THREADPOOL_SIZE']))

/**
 * Creates a guard.
 * @param allowed networks of the operator that may be reached in addition to public addresses.
 * @param resolve resolver for tests; the system's by default.
 */
export function createGuard(allowed: readonly string[], resolve?: Resolve): Guard {
  const networks = networksOf(allowed)
  const addressesOf = resolve ? createLookups(resolve) : lookUp
  const isAllowed = (address: Address): boolean => isIn(networks, address)
  // Of IPv6, only 2000::/3 is assigned for global unicast (RFC 4291 and the IANA registry). Other
  // ranges have special purposes or embed other addresses.
  const isPublic = (address: Address): boolean =>
    address.range() === 'unicast' && (address.kind() === 'ipv4' || address.match(global))
  const checked = (host: string, text: string): Resolved => {
    const address = parseAddress(text)
    if (!address || (!isPublic(address) && !isAllowed(address)))
      // The error omits the resolved address, because callers could otherwise learn about hosts
      // that only the service can look up.
      throw new AddressRefused(
        host === text
          ? `${host} is not a public address`
          : `${host} does not resolve to a public address`,
      )
    return {
      address: address.toString(),
      family: address.kind() === 'ipv4' ? 4 : 6,
      ...(isAllowed(address) && { allowed: true }),
    }
  }
  return {
    async check(host, cause) {
      const name = host.startsWith('[') && host.endsWith(']') ? host.slice(1, -1) : host
      if (ipaddr.isValid(name)) return [checked(name, name)]
      const found = await addressesOf(name, cause)
      if (found.length === 0) throw new AddressRefused(`${name} cannot be resolved`)
      return found.map((text) => checked(name, text))
    },
  }
}
