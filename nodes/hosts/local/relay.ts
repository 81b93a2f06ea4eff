/**
 * The two ways out of a sandbox, as sockets in a folder that is mounted into the sandbox:
 *
 *     gateway.sock  requests and WebSockets of the worker to the gateway
 *     proxy.sock    an HTTP proxy to the repository hosts
 *
 * Invariants:
 * R1. The proxy connects only to the hosts that are listed for the worker. The proxy resolves a
 *     name itself, and connects only to addresses that are public or allowed by the operator. Other
 *     addresses are reached only if the address itself is listed.
 * R2. The relay forwards no worker socket without a credential. The gateway would otherwise accept
 *     the worker as an anonymous worker of this machine.
 */
import { chmod, open, rm } from 'node:fs/promises'
import {
  createServer,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  request as plainRequest,
  type RequestOptions,
  type Server,
  type ServerResponse,
} from 'node:http'
import { request as secureRequest } from 'node:https'
import { connect, isIP, type Socket } from 'node:net'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { socketBearerPrefix } from '../../../protocol/workers/socket.ts'
import { AddressRefused, type Guard } from '../../outbound/guard.ts'

export interface RelayParts {
  readonly folder: string
  /** URL at which this process reaches the gateway. */
  readonly gateway_url: string
  /** Hosts (`name:port`) to which the proxy may connect. */
  readonly allowed_hosts: readonly string[]
  readonly guard: Guard
  /** Called with each destination that the proxy refuses. */
  refused(destination: string): void
}
export interface Relay {
  close(): Promise<void>
}
export const GATEWAY_SOCKET = 'gateway.sock'
export const PROXY_SOCKET = 'proxy.sock'
/** Maximum number of concurrent connections through each socket. */
const MAX_CONNECTIONS = 256
/** Milliseconds within which a connection to the destination must be established. */
const CONNECT_TIMEOUT_MS = 15_000

/** Hop-by-hop headers, which are not forwarded. */
const HOP = ['connection', 'keep-alive', 'proxy-authorization', 'proxy-connection', 'te', 'upgrade']
function forwarded(headers: IncomingMessage['headers'], host?: string): OutgoingHttpHeaders {
  const kept = Object.entries(headers).filter(([name]) => !HOP.includes(name))
  return { ...Object.fromEntries(kept), ...(host !== undefined && { host }) }
}
/** Connects two streams. When one of them closes, the other is destroyed. */
function joinStreams(one: Duplex, other: Duplex): void {
  for (const [from, to] of [
    [one, other],
    [other, one],
  ] as const) {
    from.on('error', () => to.destroy())
    from.on('close', () => to.destroy())
    from.pipe(to)
  }
}
const reply = (socket: Duplex, status: string, reason: string): void =>
  void socket.end(
    `HTTP/1.1 ${status}\r\nContent-Type: text/plain\r\nContent-Length: ${Buffer.byteLength(reason)}` +
      `\r\nConnection: close\r\n\r\n${reason}`,
  )
function answerWith(response: ServerResponse, status: number, reason: string): void {
  if (response.headersSent) response.destroy()
  else response.writeHead(status, { 'content-type': 'text/plain' }).end(reason)
}
function pass(
  from: IncomingMessage,
  to: ServerResponse,
  send: typeof plainRequest,
  options: RequestOptions,
): void {
  const request = send(options, (answer) => {
    to.writeHead(answer.statusCode ?? 502, forwarded(answer.headers))
    answer.pipe(to)
    answer.on('error', () => to.destroy())
  })
  request.on('error', () => answerWith(to, 502, 'The destination cannot be reached.\n'))
  to.on('close', () => request.destroy())
  from.pipe(request)
}

/**
 * Creates the server of `gateway.sock`. It is a reverse proxy, because the gateway may require TLS
 * and requests to its own host name.
 */
function gatewayServer(gateway: URL): Server {
  const secure = gateway.protocol === 'https:'
  const send = secure ? secureRequest : plainRequest
  const base = gateway.pathname.replace(/\/$/, '')
  const optionsOf = (request: IncomingMessage): RequestOptions => ({
    hostname: gateway.hostname.replace(/^\[|\]$/g, ''),
    port: gateway.port || (secure ? 443 : 80),
    method: request.method,
    path: base + (request.url?.startsWith('/') ? request.url : '/'),
    headers: forwarded(request.headers, gateway.host),
  })
  const server = createServer((request, response) =>
    pass(request, response, send, optionsOf(request)),
  )
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on('error', () => socket.destroy())
    const offered = request.headers['sec-websocket-protocol']?.split(',') ?? []
    const isOffered = offered.some((name) => name.trim().startsWith(socketBearerPrefix))
    if (!request.headers.authorization && !isOffered)
      return reply(socket, '401 Unauthorized', 'A worker of an environment needs its credential.\n')
    const options = optionsOf(request)
    const onward = send({
      ...options,
      headers: { ...options.headers, connection: 'Upgrade', upgrade: request.headers.upgrade },
    } as RequestOptions)
    onward.on('error', () => reply(socket, '502 Bad Gateway', 'The gateway cannot be reached.\n'))
    onward.on('response', (answer) => {
      const headers = Object.entries(forwarded(answer.headers))
        .filter(([name]) => name !== 'transfer-encoding')
        .map(([name, value]) => `${name}: ${value}\r\n`)
      socket.write(
        `HTTP/1.1 ${answer.statusCode} ${answer.statusMessage}\r\n${headers.join('')}connection: close\r\n\r\n`,
      )
      answer.pipe(socket)
    })
    onward.on('upgrade', (answer, far, first) => {
      const lines = answer.rawHeaders.map((text, i) => (i % 2 === 0 ? `${text}: ` : `${text}\r\n`))
      socket.write(`HTTP/1.1 101 Switching Protocols\r\n${lines.join('')}\r\n`)
      if (first.length > 0) socket.write(first)
      if (head.length > 0) far.write(head)
      joinStreams(far, socket)
    })
    socket.on('close', () => onward.destroy())
    onward.end()
  })
  return server
}

/**
 * Connects to one of the checked addresses of a host.
 * @throws AddressRefused when the host or its addresses are not allowed.
 */
async function connectTo(
  host: string,
  port: number,
  { allowed_hosts, guard, refused }: RelayParts,
): Promise<Socket> {
  const target = `${host.toLowerCase()}:${port}`
  const name = host.replace(/^\[|\]$/g, '')
  try {
    if (!allowed_hosts.includes(target)) throw new AddressRefused(`${target} is not allowed`)
    const isLiteral = isIP(name) !== 0 || name === 'localhost'
    const addresses = isLiteral ? [name] : (await guard.check(host)).map(({ address }) => address)
    let failure: unknown
    for (const address of addresses)
      try {
        return await connected(address, port)
      } catch (error) {
        failure = error
      }
    throw failure
  } catch (error) {
    if (error instanceof AddressRefused) refused(target)
    throw error
  }
}
const connected = (host: string, port: number): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const socket = connect({ host, port, timeout: CONNECT_TIMEOUT_MS })
    socket.once('connect', () => {
      socket.setTimeout(0)
      resolve(socket)
    })
    socket.once('timeout', () => socket.destroy(new Error('the connection timed out')))
    socket.once('error', reject)
  })
/** Splits `name:port` or `[address]:port`. Returns undefined for any other text. */
function destinationOf(text: string): readonly [host: string, port: number] | undefined {
  const match = /^([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):(\d{1,5})$/.exec(text)
  return match ? [match[1] ?? '', Number(match[2])] : undefined
}

/** Creates the server of `proxy.sock`, for `CONNECT` and requests with an absolute `http:` URL. */
function proxyServer(parts: RelayParts): Server {
  const why = (error: unknown): readonly [status: number, reason: string] =>
    error instanceof AddressRefused
      ? [403, `${error.message}: this environment may not connect to it.\n`]
      : [502, 'The destination cannot be reached.\n']
  const server = createServer((request, response) => {
    const url = URL.canParse(request.url ?? '') ? new URL(request.url ?? '') : undefined
    if (url?.protocol !== 'http:')
      return answerWith(response, 400, 'An absolute http:// URL is required.\n')
    connectTo(url.hostname, Number(url.port || 80), parts).then(
      (socket) =>
        pass(request, response, plainRequest, {
          createConnection: () => socket,
          method: request.method,
          path: url.pathname + url.search,
          headers: { ...forwarded(request.headers, url.host), connection: 'close' },
        }),
      (error: unknown) => answerWith(response, ...why(error)),
    )
  })
  server.on('connect', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on('error', () => socket.destroy())
    const destination = destinationOf(request.url ?? '')
    if (!destination) return reply(socket, '400 Bad Request', 'CONNECT requires name:port.\n')
    connectTo(...destination, parts).then(
      (far) => {
        socket.write('HTTP/1.1 200 Connection Established\r\n\r\n')
        if (head.length > 0) far.write(head)
        joinStreams(far, socket)
      },
      (error: unknown) => {
        const [status, reason] = why(error)
        reply(socket, status === 403 ? '403 Forbidden' : '502 Bad Gateway', reason)
      },
    )
  })
  return server
}

/**
 * Listens on a socket in a folder. The path of a socket can have at most 107 bytes, so the
 * descriptor of the folder is used instead of its path.
 */
async function listen(server: Server, folder: string, name: string): Promise<() => Promise<void>> {
  const path = join(folder, name)
  await rm(path, { force: true })
  server.maxConnections = MAX_CONNECTIONS
  // Uploads and streams may take any amount of time, so requests have no timeout.
  server.requestTimeout = 0
  const sockets = new Set<Duplex>()
  server.on('connection', (socket: Duplex) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  const handle = await open(folder)
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(`/proc/self/fd/${handle.fd}/${name}`, () => resolve())
  })
  // Any user may connect, because only this process and the sandbox can reach the folder.
  await chmod(path, 0o666)
  return async () => {
    await new Promise<void>((done) => {
      server.close(() => done())
      for (const socket of sockets) socket.destroy()
    })
    await handle.close()
  }
}

/** Opens both sockets. They exist until the relay is closed. */
export async function openRelay(parts: RelayParts): Promise<Relay> {
  const closes = [
    await listen(gatewayServer(new URL(parts.gateway_url)), parts.folder, GATEWAY_SOCKET),
    await listen(proxyServer(parts), parts.folder, PROXY_SOCKET),
  ]
  return {
    close: async () => {
      for (const close of closes) await close()
    },
  }
}
