/**
 * A nats-server for one test file, with two connections to it. After the tests of the file, the
 * connections are closed, the server is stopped and the data is deleted.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import type { Access } from '../../../nodes/nats/server/access.ts'
import { connectNats, type Nats } from '../../../nodes/nats/server/connect.ts'
import { createIdentity } from '../../../nodes/nats/server/identity.ts'
import { findServer } from '../../../nodes/nats/server/install.ts'
import { type Server, startServer } from '../../../nodes/nats/server/server.ts'
import { silentLog } from '../../support/memory.ts'

export interface Store {
  readonly access: Access
  readonly one: Nats
  readonly two: Nats
  connect(name: string): Promise<Nats>
  /**
   * Starts another server with the same data folder.
   * @param port the port of the server; 0 selects any free port.
   */
  start(port: number): Promise<Server>
  /** Kills the server. Returns a function that starts it again, on the same port and folder. */
  kill(): Promise<() => Promise<void>>
}
/**
 * Timeout of requests in milliseconds. It is long, because requests are not repeated and other
 * tests use the disk.
 */
const REQUEST_TIMEOUT_MS = 20_000

/**
 * Starts the server and the connections.
 * @param sync the sync interval of the server, such as `always`.
 */
export async function startStore(sync: string): Promise<Store> {
  const folder = await mkdtemp(join(tmpdir(), 'baton-store-'))
  const { path: binary } = await findServer(process.env)
  const identity = createIdentity()
  const start = (port: number) => startServer({ binary, data: folder, port, sync, identity })
  let server = await start(0)
  const connect = (name: string) =>
    connectNats({
      access: server.access,
      name,
      log: silentLog,
      role: 'test',
      requestTimeout: REQUEST_TIMEOUT_MS,
    })
  const [one, two] = [await connect('one'), await connect('two')]
  t.teardown(async () => {
    await Promise.all([one.close(), two.close()])
    await server.stop()
    await rm(folder, { recursive: true, force: true })
  })
  return {
    access: server.access,
    one,
    two,
    connect,
    start,
    kill: async () => {
      server.kill('SIGKILL')
      await server.exited
      return async () => {
        server = await start(server.port)
      }
    },
  }
}
