/**
 * Starts Baton as several processes: a NATS server, and nodes with separate roles. The last node
 * has only the role `gateway`. The data folder is deleted at the end.
 */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { programArguments, startChild } from '../../nodes/commands/child.ts'
import { createIdentity } from '../../nodes/nats/server/identity.ts'
import { findServer } from '../../nodes/nats/server/install.ts'
import { freePort, startServer } from '../../nodes/nats/server/server.ts'
import { newFolder, type Target } from './baton.ts'

export interface Split extends Target {
  /** Process id of the gateway. */
  readonly gateway: number
  /** Process id of the NATS server. */
  readonly nats: number
  /** Process ids of all nodes, by the name of the node, which is its first role. */
  readonly nodes: ReadonlyMap<string, number>
  readonly data: string
  stop(): Promise<void>
}
export interface SplitOptions {
  /** When the NATS server syncs to disk: `always`, or an interval. */
  readonly sync: string
  /** Additional settings of all nodes, by name. */
  readonly settings?: Readonly<Record<string, string>>
  /**
   * The nodes besides the gateway, each as a comma-separated list of its roles. By default, there
   * is one node with `shards`, `views` and `executor`.
   */
  readonly roles?: readonly string[]
  /** Node.js arguments that start the program; by default, the program of this working tree. */
  readonly program?: readonly string[]
  /** Additional flags for Node.js. */
  readonly node?: readonly string[]
}

/** Starts the processes, and waits until they are ready. */
export async function startSplit({
  sync,
  settings = {},
  roles: others = ['shards,views,executor'],
  program: started = programArguments(),
  node = [],
}: SplitOptions): Promise<Split> {
  const data = newFolder()
  const { path } = await findServer(process.env)
  const server = await startServer({
    binary: path,
    data: join(data, 'nats'),
    port: 0,
    sync,
    identity: createIdentity(),
  })
  const key = `bat_${'b'.repeat(32)}`
  const port = await freePort()
  const start = async (roles: string) => {
    const name = roles.split(',')[0] ?? roles
    const child = startChild(name, [...node, ...started, 'node'], {
      ...server.settings,
      ...settings,
      BATON_ROLES: roles,
      BATON_NODE_ID: name,
      BATON_DATA: join(data, name),
      BATON_PORT: roles === 'gateway' ? String(port) : '0',
      BATON_ROOT_KEY: key,
      BATON_RATE_KEY: '0',
      BATON_RATE_ORG: '0',
      BATON_LOG_LEVEL: settings['BATON_LOG_LEVEL'] ?? 'error',
    })
    await child.ready
    return { name, child }
  }
  const children: Awaited<ReturnType<typeof start>>[] = []
  for (const roles of others) children.push(await start(roles))
  const gateway = await start('gateway')
  children.push(gateway)
  return {
    port,
    key,
    gateway: gateway.child.pid,
    nats: server.pid,
    nodes: new Map(children.map(({ name, child }) => [name, child.pid])),
    data,
    stop: async () => {
      for (const { child } of children.toReversed()) {
        child.kill('SIGTERM')
        await child.exited
      }
      await server.stop()
      rmSync(data, { recursive: true, force: true })
    },
  }
}
