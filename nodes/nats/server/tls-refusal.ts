/**
 * Determines why a server ended a TLS connection immediately after the handshake. With TLS 1.3 a
 * client may consider the handshake complete before the server has checked the client's
 * certificate. The rejection follows as an alert (RFC 8446, appendix D.3). The client library drops
 * the alert, and later reports a timeout. This module connects once more and listens for the alert.
 * It sends no credentials.
 */
import { readFileSync } from 'node:fs'
import { connect as connectTcp, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { Access } from './access.ts'

/** Milliseconds to wait for the alert of one server. */
const ALERT_TIMEOUT_MS = 500
const DEFAULT_PORT = 4222

/**
 * Returns the TLS error from the first server in the list that reports one, usually the alert with
 * which it rejects the client. Returns undefined if no server reports an error in time, or no
 * server offers TLS.
 */
export async function tlsRefusal(access: Access): Promise<Error | undefined> {
  const answers = await Promise.all(access.servers.map((server) => alertOf(server, access)))
  return answers.find((answer) => answer !== undefined)
}

const pem = (file: string | undefined): Buffer | undefined =>
  file === undefined ? undefined : readFileSync(file)

function alertOf(server: string, { tls = {} }: Access): Promise<Error | undefined> {
  const { hostname, port } = new URL(server.includes('://') ? server : `nats://${server}`)
  const host = hostname.replace(/^\[|\]$/g, '')
  return new Promise((done) => {
    const sockets: Socket[] = []
    const settle = (alert?: Error) => {
      clearTimeout(timer)
      for (const socket of sockets) socket.destroy()
      done(alert)
    }
    const timer = setTimeout(settle, ALERT_TIMEOUT_MS)
    const plain = connectTcp(Number(port) || DEFAULT_PORT, host)
    sockets.push(plain)
    plain.once('error', () => settle())
    // Before the handshake, a server sends a line that states whether it offers or requires TLS.
    plain.once('data', (line) => {
      if (!/"tls_(required|available)":true/.test(line.toString('latin1'))) return settle()
      try {
        const [ca, cert, key] = [pem(tls.ca), pem(tls.cert), pem(tls.key)]
        const secured = connectTls({
          socket: plain,
          ...(/[a-z]/i.test(host) && !host.includes(':') && { servername: host }),
          ...(ca && { ca }),
          ...(cert && { cert }),
          ...(key && { key }),
        })
        sockets.push(secured)
        secured.on('error', settle)
      } catch {
        // A file that cannot be read is ignored, because the regular connection attempt reports it.
        settle()
      }
    })
  })
}
