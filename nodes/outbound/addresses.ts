/** Parses IP addresses and networks, and determines whether a network contains an address. */
import ipaddr from 'ipaddr.js'

export type Address = ipaddr.IPv4 | ipaddr.IPv6
/** An address of the network, and the number of bits that all of its addresses share. */
export type Network = readonly [Address, number]

/**
 * Parses an address. An IPv4-mapped IPv6 address becomes the IPv4 address. Returns undefined when
 * the text is not an address.
 */
export function parseAddress(text: string): Address | undefined {
  if (!ipaddr.isValid(text)) return undefined
  const address = ipaddr.parse(text)
  return address instanceof ipaddr.IPv6 && address.isIPv4MappedAddress()
    ? address.toIPv4Address()
    : address
}

/**
 * Checks one entry of a list of networks. Returns undefined if it is valid, and otherwise an error
 * text that completes a sentence.
 */
export const wrongNetwork = (text: string): string | undefined =>
  // Shortened IPv4 addresses are rejected, because programs interpret them differently.
  (ipaddr.isValidCIDR(text) || ipaddr.isValid(text)) &&
  (text.includes(':') || ipaddr.IPv4.isValidFourPartDecimal(text.split('/')[0] ?? ''))
    ? undefined
    : 'must be networks such as 10.0.0.0/8 or fd00::/8, or addresses, comma-separated'

/** Parses a list of networks and addresses that `wrongNetwork` accepts. */
export function networksOf(texts: readonly string[]): readonly Network[] {
  return texts.map((text) => {
    if (ipaddr.isValidCIDR(text)) return ipaddr.parseCIDR(text)
    const address = ipaddr.parse(text)
    return [address, address.kind() === 'ipv4' ? 32 : 128]
  })
}

/** Returns whether an address is in one of the networks. */
export const isIn = (networks: readonly Network[], address: Address): boolean =>
  networks.some(
    ([network, bits]) => network.kind() === address.kind() && address.match(network, bits),
  )

/** Writes an address in the form that uWS uses: all digits of an IPv6 address are written. */
export const textOf = (address: Address): string =>
  address instanceof ipaddr.IPv6
    ? address.parts.map((part) => part.toString(16).padStart(4, '0')).join(':')
    : address.toString()
