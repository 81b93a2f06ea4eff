/** The part of an IP address that limits per client address count. */

/**
 * Returns the text under which limits count an address: an IPv4 address itself, and the /64 network
 * of an IPv6 address, because one client usually has such a network for itself. Another text is
 * returned unchanged.
 */
export function limitedAddress(address: string): string {
  if (!address.includes(':')) return address
  const [first = '', last] = address.split('::')
  const groupsOf = (text: string): string[] => (text === '' ? [] : text.split(':'))
  const [head, tail] = [groupsOf(first), groupsOf(last ?? '')]
  // An IPv4 address at the end stands for two groups.
  const count = head.length + tail.length + (address.includes('.') ? 1 : 0)
  const groups = [...head, ...Array<string>(Math.max(0, 8 - count)).fill('0'), ...tail]
  const network = groups.slice(0, 4).map((group) => Number.parseInt(group, 16).toString(16))
  return `${network.join(':')}::/64`
}
