/**
 * The embedded NATS server: a child process that stores its data in one folder and accepts only
 * clients that have its credential (identity.ts). It runs in its own process group, so that Ctrl-C
 * reaches only the service, which then decides when the server stops.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { availableParallelism } from 'node:os'
import { join, resolve } from 'node:path'
import { endWithUs } from '../../process/ending.ts'
import { StartFault } from '../../process/fault.ts'
import { privateFile, privateFiles, privateFolder, writePrivate } from '../../storage/private.ts'
import { claimFolder, clearFolder, unclaimFolder } from '../journal/claim.ts'
import type { Access } from './access.ts'
import { createIdentity, type Identity, keepSeed, seedFile } from './identity.ts'

export interface ServerOptions {
  /** Path of the nats-server binary. */
  readonly binary: string
  /** Folder of the configuration and the store; created when absent, reused when present. */
  readonly data: string
  /** Port for clients; 0 selects any free port. */
  readonly port: number
  /**
   * How often the server syncs its data to disk: `always`, or at an interval such as `2m`.
   * Acknowledged data may stay unsynced for up to this time.
   */
  readonly sync: string
  readonly host?: string
  /** Credential of the clients and of the other servers in the cluster; created when absent. */
  readonly identity?: Identity
  /**
   * A nats-server `authorization` block that replaces the single user of the identity, for tests of
   * other accounts.
   */
  readonly authorization?: string
  /** Name of the server, unique in its cluster. */
  readonly name?: string
  /**
   * The cluster to join: its name, this server's port for routes, and the addresses `host:port` of
   * the other servers.
   */
  readonly cluster?: {
    readonly name: string
    readonly port: number
    readonly routes: readonly string[]
  }
  /** Receives each warning and error line of the server's log. */
  readonly warn?: (line: string) => void
  /** Called when the server ends without having been stopped. */
  readonly unexpected?: (reason: string) => void
}
interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}
export interface Server {
  readonly url: string
  /** Address and credential that this process uses to connect to the server. */
  readonly access: Access
  /**
   * Environment variables that a node process of the same user needs to connect to the server. The
   * credential is in a file.
   */
  readonly settings: { readonly BATON_NATS: string; readonly BATON_NATS_NKEY: string }
  readonly port: number
  readonly pid: number
  /**
   * Stops the server gracefully, and kills it if it has not ended after ten seconds. Resolves when
   * it has ended.
   */
  stop(): Promise<void>
  /** Sends a signal to the server, for failure tests. */
  kill(signal: NodeJS.Signals): void
  readonly exited: Promise<Ended>
}

/** Milliseconds within which a started server must be ready. */
const READY_TIMEOUT_MS = 60_000
/** Milliseconds after which a server that does not stop is killed. */
const STOP_TIMEOUT_MS = 10_000

/** Returns a TCP port that is currently free. */
export const freePort = (host = '127.0.0.1'): Promise<number> =>
  new Promise((done, failed) => {
    const probe = createServer().once('error', failed)
    probe.listen(0, host, () => {
      const address = probe.address()
      probe.close(() => done(typeof address === 'object' && address ? address.port : 0))
    })
  })

const text = (value: string): string => JSON.stringify(value)

const ROUTE_USER = 'baton'

/**
 * Returns the configuration of the server: the `nats.conf` of this program with its variables
 * filled in.
 */
function configuration(
  options: ServerOptions,
  { public_key, route_password }: Identity,
  host: string,
  port: number,
): string {
  const names: Readonly<Record<string, string>> = {
    BATON_NATS_NAME: text(options.name ?? `baton-${port}`),
    BATON_NATS_HOST: text(host),
    BATON_NATS_PORT: String(port),
    BATON_NATS_PID: text(join(options.data, 'nats.pid')),
    BATON_NATS_STORE: text(join(options.data, 'store')),
    BATON_NATS_SYNC: text(options.sync),
    BATON_NATS_PUBLIC_KEY: text(public_key),
  }
  const template = readFileSync(new URL('../../../nats.conf', import.meta.url), 'utf8').replace(
    /^#.*\n/gm,
    '',
  )
  const { authorization = '' } = options
  const allowed =
    authorization === ''
      ? template
      : template.replace(/^authorization \{[\s\S]*?^\}/m, () => authorization)
  const filled = allowed.replace(/\$(BATON_\w+)/g, (whole, name: string) => names[name] ?? whole)
  const { cluster } = options
  if (!cluster) return filled
  const routes = cluster.routes
    .map((route) => text(`nats-route://${ROUTE_USER}:${route_password}@${route}`))
    .join(', ')
  const login = `authorization { user: ${ROUTE_USER}, password: ${text(route_password)} }`
  return (
    `${filled}\ncluster {\n  name: ${text(cluster.name)}\n  host: ${text(host)}\n` +
    `  port: ${cluster.port}\n  ${login}\n  routes: [${routes}]\n}\n`
  )
}

/**
 * Resolves when the server logs that it is ready. Rejects with its last log lines when it ends
 * earlier or takes too long.
 */
const readiness = (child: ChildProcess, warn: (line: string) => void): Promise<void> =>
  new Promise((ready, failed) => {
    const last: string[] = []
    let rest = ''
    const timer = setTimeout(
      () =>
        failed(
          new StartFault(
            `The NATS server is not ready after ${READY_TIMEOUT_MS / 1000} s:\n${last.join('\n')}`,
          ),
        ),
      READY_TIMEOUT_MS,
    )
    const settle = (end: () => void) => {
      clearTimeout(timer)
      end()
    }
    child.once('error', (error) =>
      settle(() => failed(new StartFault(`The NATS server cannot be started: ${error.message}`))),
    )
    child.once('exit', () =>
      settle(() => {
        const cause = last.filter((line) => /\[(ERR|FTL)\]/.test(line))
        failed(
          new StartFault(
            `The NATS server exited during its start:\n${(cause.length ? cause : last).join('\n')}`,
          ),
        )
      }),
    )
    child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
      const lines = (rest + chunk).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) {
        last.push(line)
        if (last.length > 12) last.shift()
        if (/\[(WRN|ERR|FTL)\]/.test(line)) warn(line.replace(/^\[\d+\] [\d/]+ [\d:.]+ /, ''))
        else if (line.includes('Server is ready')) settle(ready)
      }
    })
  })

/**
 * Returns the environment of the server. It may use half of the processors, because the service
 * uses the others. The scheduler of Go keeps as many threads active as it may use processors, which
 * costs more than the server gains (bench/HISTORY.md). A value that the operator has set applies.
 */
const environment = (): NodeJS.ProcessEnv => ({
  GOMAXPROCS: String(Math.max(1, Math.floor(availableParallelism() / 2))),
  ...process.env,
})

/**
 * Starts a server and waits until it is ready.
 * @throws StartFault when the folder is in use, the port is taken or the server does not start.
 */
export async function startServer(given: ServerOptions): Promise<Server> {
  const options = { ...given, data: resolve(given.data) }
  const host = options.host ?? '127.0.0.1'
  const identity = given.identity ?? createIdentity()
  privateFiles(options.data)
  privateFolder(join(options.data, 'store'))
  await clearFolder(options.data)
  const port = options.port || (await freePort(host))
  const url = `nats://${host}:${port}`
  const path = join(options.data, 'nats.conf')
  writePrivate(path, configuration(options, identity, host, port))
  keepSeed(options.data, identity)

  const child = spawn(options.binary, ['-c', path], {
    stdio: ['ignore', 'ignore', 'pipe'],
    detached: true,
    env: environment(),
  })
  let expected = false
  const exited = new Promise<Ended>((done) => {
    child.once('exit', (code, signal) => done({ code, signal }))
    child.once('error', () => done({ code: null, signal: null }))
  })
  const release = endWithUs(child)
  const isReady = readiness(child, options.warn ?? (() => {}))
  if (child.pid !== undefined) claimFolder(options.data, child.pid, url)
  void exited.then(() => {
    release()
    unclaimFolder(options.data)
  })

  const stop = async (): Promise<void> => {
    expected = true
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM')
    const hard = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS)
    await exited
    clearTimeout(hard)
  }
  try {
    await isReady
    privateFile(join(options.data, 'nats.pid'))
  } catch (error) {
    await stop()
    throw error
  }
  void exited.then(({ code, signal }) => {
    if (!expected)
      options.unexpected?.(`the NATS server exited unexpectedly (${signal ?? `code ${code}`})`)
  })
  return {
    url,
    access: { servers: [url], credentials: { type: 'nkey', seed: identity.seed } },
    settings: { BATON_NATS: url, BATON_NATS_NKEY: `@${seedFile(options.data)}` },
    port,
    pid: child.pid ?? 0,
    stop,
    kill: (signal) => void child.kill(signal),
    exited,
  }
}
