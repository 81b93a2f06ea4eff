/**
 * Which addresses the service connects to on behalf of its users: public ones, and those that the operator allows. Everything
 * else (this machine, private networks, link-local, what merely wraps one of these) is refused, so that nobody reaches through
 * the service what only the service can reach.
 *
 * Invariants:
 * G1. A name counts as all of its addresses: one that is refused refuses the name.
 * G2. What was checked is what is connected to: the addresses go to the connection, which asks nobody again.
 */
import { lookup } from 'node:dns/promises'
import ipaddr from 'ipaddr.js'

type Address = ipaddr.IPv4 | ipaddr.IPv6
/** An address to connect to. */
export interface Resolved {
  readonly address: string
  readonly family: 4 | 6
  /** The operator allows it by name. */
  readonly allowed?: true
}
/** The host of a request is none that may be connected to. */
export class AddressRefused extends Error {
  override readonly name = 'AddressRefused'
}
/** Finds all addresses of a name. */
export type Resolve = (name: string) => Promise<readonly string[]>
export interface Guard {
  /** The addresses of a host as a URL spells it. Throws AddressRefused, or what looking up the name throws. */
  check(host: string): Promise<readonly Resolved[]>
}

/** An address in its plainest form: IPv4 inside IPv6 counts as what it stands for. Undefined: no address. */
function plain(text: string): Address | undefined {
  if (!ipaddr.isValid(text)) return undefined
  const address = ipaddr.parse(text)
  return address instanceof ipaddr.IPv6 && address.isIPv4MappedAddress()
    ? address.toIPv4Address()
    : address
}

/** What is wrong with a list of networks, as a sentence; undefined: nothing. */
export const wrongNetwork = (text: string): string | undefined =>
  // Shortened IPv4 means something else to everybody.
  (ipaddr.isValidCIDR(text) || ipaddr.isValid(text)) &&
  (text.includes(':') || ipaddr.IPv4.isValidFourPartDecimal(text.split('/')[0] ?? ''))
    ? undefined
    : 'must be networks such as 10.0.0.0/8 or fd00::/8, or addresses, comma-separated'

/** Networks as they can be matched. */
function networksOf(texts: readonly string[]): readonly (readonly [Address, number])[] {
  return texts.map((text) => {
    if (ipaddr.isValidCIDR(text)) return ipaddr.parseCIDR(text)
    const address = ipaddr.parse(text)
    return [address, address.kind() === 'ipv4' ? 32 : 128]
  })
}

const global = ipaddr.parseCIDR('2000::/3')
const resolveAll: Resolve = async (name) =>
  (await lookup(name, { all: true, verbatim: true })).map(({ address }) => address)

/**
 * A guard. @param allowed networks of the operator's own that may be reached as well. @param resolve for tests; the system's by default.
 */
export function createGuard(allowed: readonly string[], resolve: Resolve = resolveAll): Guard {
  const networks = networksOf(allowed)
  const isAllowed = (address: Address): boolean =>
    networks.some(
      ([network, bits]) => network.kind() === address.kind() && address.match(network, bits),
    )
  // Of IPv6 only 2000::/3 is given out for general use (RFC 4291 with the IANA registry); what lies outside wraps or reserves something.
  const isPublic = (address: Address): boolean =>
    address.range() === 'unicast' && (address.kind() === 'ipv4' || address.match(global))
  const checked = (host: string, text: string): Resolved => {
    const address = plain(text)
    if (!address || (!isPublic(address) && !isAllowed(address)))
      // What a name resolves to is not repeated: callers would learn of hosts that only the service can look up.
      throw new AddressRefused(
        host === text
          ? `${host} is not a public address`
          : `${host} does not lead to a public address`,
      )
    return {
      address: address.toString(),
      family: address.kind() === 'ipv4' ? 4 : 6,
      ...(isAllowed(address) && { allowed: true }),
    }
  }
  return {
    async check(host) {
      const name = host.startsWith('[') && host.endsWith(']') ? host.slice(1, -1) : host
      if (ipaddr.isValid(name)) return [checked(name, name)]
      const found = await resolve(name)
      if (found.length === 0) throw new AddressRefused(`${name} has no address`)
      return found.map((text) => checked(name, text))
    },
  }
}
