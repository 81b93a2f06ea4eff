/** A nats-server of a test's own, with two connections to it; everything is gone when the test is over. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { connectNats, type Nats } from '../../../nodes/nats/server/connect.ts'
import { createIdentity } from '../../../nodes/nats/server/identity.ts'
import { findServer } from '../../../nodes/nats/server/install.ts'
import { startServer, type Server } from '../../../nodes/nats/server/server.ts'
import { silent } from '../../support/memory.ts'

export interface Store {
  readonly one: Nats
  readonly two: Nats
  connect(name: string): Promise<Nats>
  /** Start another server as this one was started. @param port of its own when 0. */
  start(port: number): Promise<Server>
  /** Kill the server at once. @returns starts it again, on the same port and store. */
  kill(): Promise<() => Promise<void>>
}
/** Start it. */
export async function startStore(sync: string): Promise<Store> {
  const folder = await mkdtemp(join(tmpdir(), 'baton-store-'))
  const { path: binary } = await findServer(process.env)
  const identity = createIdentity()
  const start = (port: number) => startServer({ binary, data: folder, port, sync, identity })
  let server = await start(0)
  const connect = (name: string) =>
    connectNats({ access: server.access, name, log: silent, role: 'test' })
  const [one, two] = [await connect('one'), await connect('two')]
  t.teardown(async () => {
    await Promise.all([one.close(), two.close()])
    await server.stop()
    await rm(folder, { recursive: true, force: true })
  })
  return {
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
