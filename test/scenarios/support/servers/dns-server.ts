/** A DNS server for TXT records on loopback, for tests of SPF and DKIM (RFC 1035, 4.1). */
import { createSocket } from 'node:dgram'
import type { AddressInfo } from 'node:net'

export interface DnsServer {
  /** The form that resolvers expect: `127.0.0.1:<port>`. */
  readonly address: string
  close(): void
}

/**
 * Serves one TXT record per name. Other names do not exist, and there are no records of other
 * types.
 */
export async function dnsServer(records: Readonly<Record<string, string>>): Promise<DnsServer> {
  const socket = createSocket('udp4')
  socket.on('message', (query, { port, address }) => {
    const labels: string[] = []
    let at = 12
    for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
      labels.push(query.subarray(at + 1, at + 1 + length).toString())
      at += length + 1
    }
    const question = query.subarray(12, at + 5)
    const text = records[labels.join('.').toLowerCase()]
    const isText = query.readUInt16BE(at + 1) === 16
    const header = Buffer.from(query.subarray(0, 12))
    // The flags of a response with recursion available. Response code 3: the name does not exist.
    header.writeUInt16BE(0x8180 | (text === undefined ? 3 : 0), 2)
    header.writeUInt16BE(text !== undefined && isText ? 1 : 0, 6)
    header.writeUInt32BE(0, 8)
    const strings = (text?.match(/.{1,255}/gs) ?? []).map((part) =>
      Buffer.concat([Buffer.from([part.length]), Buffer.from(part)]),
    )
    const data = Buffer.concat(strings)
    // A compressed name that points to the question, then the type TXT, the class IN and a TTL of
    // 60 s.
    const answer = Buffer.from([
      0xc0,
      12,
      0,
      16,
      0,
      1,
      0,
      0,
      0,
      60,
      data.length >> 8,
      data.length & 255,
    ])
    socket.send(
      Buffer.concat([header, question, ...(text !== undefined && isText ? [answer, data] : [])]),
      port,
      address,
    )
  })
  await new Promise<void>((open) => void socket.bind(0, '127.0.0.1', open))
  return {
    address: `127.0.0.1:${(socket.address() as AddressInfo).port}`,
    close: () => void socket.close(),
  }
}
