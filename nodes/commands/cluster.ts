/**
 * `baton cluster`: a whole installation on this machine. It has three NATS servers (three replicas
 * of each stream), two gateways, two shard nodes and one node with the roles views and executor.
 * The first gateway also has the role hosts. Each server and node runs in a separate process, which
 * is restarted when it ends. Users can kill any of the processes to check that nothing is lost.
 */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type ClusterConfig, type ClusterNode, nodeSettings } from '../config/cluster.ts'
import type { Config } from '../config.ts'
import { createIdentity, seedFile } from '../nats/server/identity.ts'
import { findServer } from '../nats/server/install.ts'
import { freePort, type Server, startServer } from '../nats/server/server.ts'
import { createLog } from '../observe/log.ts'
import { portFault, urlOf } from '../process/port-fault.ts'
import { ensureDataFolder } from '../storage/data-folder.ts'
import { newOwnerKey } from '../storage/owner-key.ts'
import { letOthersEnter, privateFolder, writePrivate } from '../storage/private.ts'
import { type Child, startNodeProcess } from './child.ts'

/** Milliseconds before a node that ended, or did not start again, is started. */
const NODE_RESTART_MS = 500

interface Member {
  readonly name: string
  stop(): Promise<void>
}

/**
 * Creates the folder of the cluster, which contains a private folder for each server and node. The
 * users of environments must be able to enter this folder and the data folder, but not to list
 * them, because the workspaces of a node are below both. Only root can use other users.
 */
function createFolder(data: string): string {
  const folder = join(data, 'cluster')
  ensureDataFolder(data)
  privateFolder(folder)
  if (process.getuid?.() === 0) for (const path of [data, folder]) letOthersEnter(path)
  return folder
}

/**
 * Returns the owner key that all nodes use. The first start creates the key and stores it in the
 * folder with mode 0600.
 */
function ownerKey(folder: string, prefix: string): string {
  const file = join(folder, 'root.key')
  if (!existsSync(file)) {
    writePrivate(file, `${newOwnerKey(prefix)}\n`)
  }
  return readFileSync(file, 'utf8').trim()
}

/**
 * Returns the ports of the two gateways. Free ports are selected here and not by the gateways, so
 * that their addresses are known and remain the same after a restart.
 */
async function gatewayPorts({ host, port }: Config): Promise<readonly [number, number]> {
  if (port !== 0) return [port, port + 1]
  try {
    return [await freePort(host), await freePort(host)]
  } catch {
    throw await portFault(host, port)
  }
}

/** Starts all processes and runs until a stop signal. Prints every process with its id. */
export async function runCluster({ config, variables, remarks }: ClusterConfig): Promise<void> {
  const warn = (line: string) => void process.stderr.write(`${line}\n`)
  for (const remark of remarks) warn(remark)
  const env = { ...process.env, ...variables }
  const log = createLog({ level: env.BATON_LOG_LEVEL ?? config.log_level })
  const folder = createFolder(config.data)
  const { path } = await findServer(env, warn)
  const key = config.root_key ?? ownerKey(folder, config.key_prefix)
  const identity = createIdentity()
  const members: Member[] = []
  let stopping = false
  const say = (line: string) => process.stdout.write(`${line}\n`)

  const ports = await Promise.all(
    [0, 1, 2].map(async () => ({ client: await freePort(), route: await freePort() })),
  )
  const addresses = ports.map(({ client }) => `nats://127.0.0.1:${client}`).join(',')
  const common = {
    ...variables,
    BATON_NATS: addresses,
    BATON_NATS_NKEY: `@${seedFile(join(folder, 'nats-1'))}`,
    BATON_REPLICAS: '3',
    BATON_ROOT_KEY: key,
  }

  async function nats(i: number): Promise<void> {
    const name = `nats-${i + 1}`
    let server: Server
    const start = async (): Promise<void> => {
      server = await startServer({
        binary: path,
        data: join(folder, name),
        port: ports[i]?.client ?? 0,
        sync: config.sync,
        identity,
        name,
        cluster: {
          name: 'baton',
          port: ports[i]?.route ?? 0,
          routes: ports.filter((_, k) => k !== i).map(({ route }) => `127.0.0.1:${route}`),
        },
        warn: (line) =>
          log.debug({ event: 'nats_server_warning', name, line }, 'NATS server warning'),
        unexpected: () => {
          if (!stopping) {
            say(`${name} exited; restarting it`)
            void again()
          }
        },
      })
      say(`${name.padEnd(10)} pid ${server.pid}`)
    }
    const again = async (): Promise<void> => {
      await new Promise((done) => setTimeout(done, 1000))
      if (!stopping) await start().catch(again)
    }
    await start()
    members.push({ name, stop: () => server.stop() })
  }

  async function node(name: ClusterNode, port?: number): Promise<void> {
    let child: Child
    members.push({
      name,
      stop: async () => {
        child.kill('SIGTERM')
        await child.exited
      },
    })
    const start = async (): Promise<void> => {
      const started = (child = startNodeProcess(name, {
        ...common,
        ...nodeSettings(config, name),
        ...(port !== undefined && { BATON_PORT: String(port) }),
        BATON_NODE_ID: `${name}-${Date.now().toString(36)}`,
        BATON_DATA: join(folder, name),
      }))
      await started.ready
      const url = port === undefined ? '' : `  ${urlOf(config, port)}`
      say(`${name.padEnd(10)} pid ${started.pid}${url}`)
      void started.exited.then((how) => {
        if (stopping) return
        say(`${name} exited (${how}); restarting it`)
        void again()
      })
    }
    const again = async (): Promise<void> => {
      await new Promise((done) => setTimeout(done, NODE_RESTART_MS))
      if (stopping) return
      await start().catch((error: Error) => {
        if (stopping) return
        say(`${error.message}; restarting it`)
        void again()
      })
    }
    await start()
  }

  /** @param code the exit code of this process. */
  const stop = async (code = 0): Promise<void> => {
    if (stopping) return
    stopping = true
    for (const member of members.reverse()) await member.stop().catch(() => {})
    process.exit(code)
  }
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => void stop())

  try {
    await Promise.all(ports.map((_, i) => nats(i)))
    await node('shards-1')
    await Promise.all([node('shards-2'), node('views-1')])
    const [first, second] = await gatewayPorts(config)
    await Promise.all([node('gateway-1', first), node('gateway-2', second)])
    const [url, other] = [urlOf(config, first), urlOf(config, second)]
    say(`\nThe cluster is ready: ${url} and ${other}`)
    if (config.root_key === undefined) say(`The owner key is in ${join(folder, 'root.key')}`)
    say(`Try next:  npm run tour -- --server ${url},${other}`)
  } catch (error) {
    if (stopping) return
    warn(`The cluster did not start: ${(error as Error).message}. Its other processes are stopped.`)
    await stop(1)
  }
}
