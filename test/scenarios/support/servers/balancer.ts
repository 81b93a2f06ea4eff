/**
 * A minimal load balancer: it distributes connections, round robin, over the gateways whose
 * `/readyz` answered the latest probe with 200. While no gateway is ready, connections wait, as a
 * load balancer queues them: on a busy machine, the only gateway may answer a probe late.
 */
import { connect, createServer, type Socket } from 'node:net'

export interface Balancer {
  readonly url: string
  /** Ports of the gateways that passed their latest probe. */
  ready(): readonly number[]
  /**
   * Reasons for failed connections: no gateway became ready, or the gateway failed before it sent a
   * byte.
   */
  readonly faults: string[]
  add(port: number): void
  remove(port: number): void
  stop(): void
}

/** Maximum time in milliseconds for which a connection waits for a gateway. */
const QUEUE_MS = 5000

/** Starts a load balancer that probes its gateways every `every` milliseconds. */
export async function balancer(every: number): Promise<Balancer> {
  const ready = new Map<number, boolean>()
  const faults: string[] = []
  const sockets = new Set<Socket>()
  let turn = 0
  const asking = new Set<number>()
  const ask = async (port: number): Promise<void> => {
    if (asking.has(port)) return
    asking.add(port)
    const good = await fetch(`http://127.0.0.1:${port}/readyz`, {
      signal: AbortSignal.timeout(1000),
      headers: { connection: 'close' },
    }).then(
      ({ status }) => status === 200,
      () => false,
    )
    asking.delete(port)
    if (ready.has(port)) ready.set(port, good)
  }
  const timer = setInterval(() => {
    for (const port of ready.keys()) void ask(port)
  }, every)
  const open = () => [...ready].filter(([, good]) => good).map(([port]) => port)
  const added = (socket: Socket): Socket => {
    sockets.add(socket)
    return socket.setNoDelay(true).once('close', () => sockets.delete(socket))
  }
  const distribute = (client: Socket, until: number): void => {
    const choice = open()
    const port = choice[turn++ % choice.length]
    if (client.destroyed) return
    if (port !== undefined) join(client, port)
    else if (Date.now() < until) setTimeout(() => distribute(client, until), every)
    else {
      faults.push('no gateway is ready')
      client.destroy()
    }
  }
  const join = (client: Socket, port: number): void => {
    const gateway = added(connect({ port, host: '127.0.0.1', allowHalfOpen: true }))
    // A stopping gateway and its client may close a connection at the same time. Therefore an error
    // after the gateway's first byte does not count as a failed request.
    gateway.on('error', (error) => {
      if (gateway.bytesRead === 0) faults.push(`${port}: ${error.message}`)
      client.destroy()
    })
    client.on('error', () => gateway.destroy())
    client.pipe(gateway)
    gateway.pipe(client)
  }
  const server = createServer({ allowHalfOpen: true }, (client) => {
    distribute(
      added(client).on('error', () => {}),
      Date.now() + QUEUE_MS,
    )
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  const address = server.address()
  return {
    url: `http://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}`,
    ready: open,
    faults,
    add: (port) => void ready.set(port, false),
    remove: (port) => void ready.delete(port),
    stop: () => {
      clearInterval(timer)
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}
