/**
 * Determines the IP address of a client behind reverse proxies, from the address of its TCP peer
 * and the header `X-Forwarded-For`. Each proxy appends the address of its peer to the header,
 * and the client can write anything before these entries.
 */
import type { World } from '../../gateway/ports.ts'
import { type Address, isIn, networksOf, parseAddress, textOf } from '../outbound/addresses.ts'

/** The forms of an entry: an address, optionally with a port (RFC 7239, section 6). */
const ENTRY = /^(?:([\d.]+)(?::\d{1,5})?|\[([\da-f:.]+)\](?::\d{1,5})?|([\da-f:.]+))$/i
/** Four decimal numbers without leading zeros, which some programs read as octal. */
const IPV4 = /^(?:0|[1-9]\d{0,2})(?:\.(?:0|[1-9]\d{0,2})){3}$/

/** Parses an entry of the header. Returns undefined if it is not an address. */
function parseEntry(text: string): Address | undefined {
  const [, v4 = '', bracketed, v6 = bracketed ?? ''] = ENTRY.exec(text) ?? []
  return IPV4.test(v4) || v6.includes(':') ? parseAddress(v4 || v6) : undefined
}

/**
 * Creates the rule for the client's address. If the peer is a trusted proxy, the client is the last
 * entry of the header that is not a trusted proxy, or the first entry if all are trusted. Without
 * entries, and if an entry that is not an address precedes that result, the client is the peer. A
 * header from any other peer is ignored. Returns undefined if no proxy is trusted.
 * @param trusted networks and addresses of the trusted proxies.
 */
export function createClientAddress(trusted: readonly string[]): World['clientAddress'] {
  if (trusted.length === 0) return undefined
  const networks = networksOf(trusted)
  return (peer, forwarded) => {
    const from = forwarded === '' ? undefined : parseAddress(peer)
    if (!from || !isIn(networks, from)) return peer
    let client: Address | undefined
    for (const text of forwarded.split(',').reverse()) {
      // Empty elements of a list are ignored (RFC 9110, section 5.6.1).
      if (text.trim() === '') continue
      client = parseEntry(text.trim())
      if (!client) return peer
      if (!isIn(networks, client)) break
    }
    return client ? textOf(client) : peer
  }
}
