/** Finds free ports for servers that are started later or restarted. */
import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

/** Ports outside of the default range that Linux uses for outgoing connections. */
const [FIRST, LAST] = [12_000, 32_000]

/**
 * Returns a TCP port that is currently free. With the default settings of Linux, no outgoing
 * connection uses the port before the server starts.
 */
export const freePort = (host = '127.0.0.1'): Promise<number> =>
  new Promise((done, failed) => {
    const port = randomInt(FIRST, LAST)
    const probe = createServer().once('error', (error: NodeJS.ErrnoException) =>
      error.code === 'EADDRINUSE' ? done(freePort(host)) : failed(error),
    )
    probe.listen(port, host, () => probe.close(() => done(port)))
  })
