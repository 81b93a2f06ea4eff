/**
 * The installation of a chaos run: three NATS servers, which keep three replicas of each stream,
 * two gateways, two shard nodes, two view nodes, an executor and two workers. Each process can be
 * killed, paused and cut off. Invariant: `stop` leaves no process behind.
 */
import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Child, startChild, startNodeProcess } from '../../nodes/commands/child.ts'
import { connectNats, type Nats } from '../../nodes/nats/server/connect.ts'
import { createIdentity, seedFile } from '../../nodes/nats/server/identity.ts'
import { startServer } from '../../nodes/nats/server/server.ts'
import { bundleProgram } from '../support/bundle.ts'
import { silentLog } from '../support/memory.ts'
import { freePort } from '../support/ports.ts'
import { createAccounts, OBSERVER } from './accounts.ts'
import type { Net, Place } from './net.ts'

export type Role = 'nats' | 'gateway' | 'shards' | 'views' | 'executor' | 'worker'
/** A process that can be restarted under the same name. */
export interface Member {
  readonly name: string
  readonly role: Role
  readonly pid: number
  start(): Promise<void>
  kill(): Promise<void>
  /**
   * Shuts the process down gracefully, as an operator does.
   * @throws {Error} when it does not end cleanly.
   */
  end(): Promise<void>
  signal(signal: 'SIGSTOP' | 'SIGCONT'): void
}
export interface Stack {
  readonly members: readonly Member[]
  readonly urls: readonly string[]
  readonly key: string
  /**
   * Processes that ended unexpectedly, and permission violations that the NATS servers reported.
   */
  readonly deaths: readonly string[]
  /**
   * Resolves when every stream has a leader and at least two other replicas, all of which are
   * current and lag by at most 500 messages.
   * @throws {Error} after `within` milliseconds.
   */
  whole(within: number): Promise<void>
  stop(): Promise<void>
}
interface Options {
  readonly net: Net
  /** Folder for all files. The caller removes it. */
  readonly folder: string
  readonly binary: string
  readonly say: (line: string) => void
  /**
   * Whether NATS runs in operator mode, with one user for each node role, which has exactly the
   * permissions that `baton nats-permissions` prints.
   */
  readonly accounts: boolean
}
type Running = Pick<Child, 'pid' | 'exited' | 'kill'>

const root = fileURLToPath(new URL('../..', import.meta.url))
const PORT = { client: 4222, route: 6222, http: 8080 }
/**
 * Leases are long enough for a busy machine and short enough to expire during a long fault. With
 * the short keepalive interval, followers detect dead streams quickly.
 */
const timing = {
  BATON_WORKER_CADENCE: '2s',
  BATON_WORKER_LEASE: '8s',
  BATON_WORKER_POLL: '1s',
  BATON_WORKER_STALE: '10s',
  BATON_WORKER_TAKEOVER: '4s',
  BATON_KEEPALIVE: '3',
}
/** The number of concurrent jobs of one worker process. */
const SLOTS = 256
/** The maximum number of reported permission violations. */
const MAX_VIOLATIONS = 20

export async function startStack(options: Options): Promise<Stack> {
  const { net, folder, binary, say } = options
  const identity = createIdentity()
  const worker = await bundleProgram(root, 'test/chaos/worker.ts')
  const accounts = options.accounts ? await createAccounts(folder) : undefined
  const key = `bat_${'c'.repeat(32)}`
  const members: Member[] = []
  const alive = new Set<Running>()
  const deaths: string[] = []
  let stopped = false

  function member(
    name: string,
    role: Role,
    launch: (life: number, born: (one: Running) => void) => Promise<void>,
  ): Member {
    let running: Running | undefined
    let expected = false
    let lives = 0
    const one: Member = {
      name,
      role,
      get pid() {
        return running?.pid ?? 0
      },
      start: () => {
        expected = false
        return launch(lives++, (born) => {
          running = born
          alive.add(born)
          if (stopped) born.kill('SIGKILL')
          void born.exited.then((how) => {
            alive.delete(born)
            if (expected || stopped || born !== running) return
            deaths.push(`${name} ended by itself (${String(how)})`)
            say(deaths.at(-1) ?? '')
          })
        })
      },
      kill: async () => {
        expected = true
        running?.kill('SIGKILL')
        await running?.exited
      },
      end: async () => {
        expected = true
        running?.kill('SIGTERM')
        const how = await running?.exited
        if (how !== '0' && !stopped) throw new Error(`${name} was to end and ended with ${how}`)
      },
      signal: (signal) => running?.kill(signal),
    }
    members.push(one)
    return one
  }

  const places = new Map<string, Place>()
  const names = [
    'nats-1',
    'nats-2',
    'nats-3',
    'gateway-1',
    'gateway-2',
    'shards-1',
    'shards-2',
    'views-1',
    'views-2',
    'executor-1',
    'worker-1',
    'worker-2',
  ]
  for (const name of names) places.set(name, await net.place(name))
  const at = (name: string): Place => places.get(name) ?? { host: '127.0.0.1', before: [] }
  const of = (role: Role) => names.filter((name) => name.startsWith(role))

  // If links can be cut, each process has its own address, so all processes of a role use one port.
  const ports = async (role: Role, usual: number) =>
    Promise.all(of(role).map((name) => (net.cuts ? usual : freePort(at(name).host))))
  const [clients, between, http] = [
    await ports('nats', PORT.client),
    await ports('nats', PORT.route),
    await ports('gateway', PORT.http),
  ]
  const routes = of('nats').map((name, i) => `${at(name).host}:${between[i]}`)
  for (const [i, name] of of('nats').entries()) {
    const { host, before } = at(name)
    const script = join(folder, `${name}.sh`)
    // Three servers and nine other processes share this machine. Each server gets few threads,
    // because idle threads that spin would take processor time from the other processes.
    writeFileSync(
      script,
      `#!/bin/sh\nexport GOMAXPROCS=${Math.max(1, Math.floor(availableParallelism() / 2))}\n` +
        `exec ${[...before, binary].join(' ')} "$@"\n`,
    )
    chmodSync(script, 0o700)
    member(name, 'nats', async (_, born) => {
      const server = await startServer({
        binary: script,
        data: join(folder, name),
        host,
        port: clients[i] ?? 0,
        sync: 'always',
        identity,
        name,
        ...(accounts && { authorization: accounts.authorization }),
        // Permission violations of nodes are detected in the servers' logs. The right to answer a
        // request ends with the connection that received the request. Violations caused by late
        // answers to an inbox are therefore ignored.
        warn: (line) => {
          const violation = /\bViolation\b/.test(line) && !/Subject "_INBOX\./.test(line)
          if (violation && deaths.length < MAX_VIOLATIONS) deaths.push(line)
        },
        cluster: { name: 'chaos', port: between[i] ?? 0, routes: routes.filter((_, k) => k !== i) },
      })
      born({
        pid: server.pid,
        exited: server.exited.then(({ code, signal }) => signal ?? String(code)),
        kill: server.kill,
      })
    })
  }
  const nkey = seedFile(join(folder, 'nats-1'))
  const servers = of('nats').map((name, i) => `nats://${at(name).host}:${clients[i]}`)
  const urls = of('gateway').map((name, i) => `http://${at(name).host}:${http[i]}`)
  const settings = {
    ...timing,
    BATON_NATS: servers.join(','),
    BATON_REPLICAS: '3',
    BATON_ROOT_KEY: key,
    BATON_RATE_KEY: '0',
    BATON_RATE_ORG: '0',
    BATON_LOG_LEVEL: process.env['BATON_TEST_LOG'] ?? 'silent',
  }
  const nodes: readonly Role[] = ['shards', 'views', 'executor', 'gateway']
  for (const role of nodes) {
    for (const [i, name] of of(role).entries()) {
      const { host, before } = at(name)
      member(name, role, async (life, born) => {
        // A returning node has its old id or, as in dynamic environments, a new one. Both cases are
        // tested.
        const id = life % 2 === 0 ? name : `${name}-${life}`
        const child = startNodeProcess(
          name,
          {
            ...settings,
            ...(accounts
              ? { BATON_NATS_CREDS: accounts.credsOf(role, name === 'shards-1' && life === 0) }
              : { BATON_NATS_NKEY: `@${nkey}` }),
            BATON_ROLES: role,
            BATON_NODE_ID: id,
            BATON_DATA: join(folder, name),
            BATON_HOST: host,
            BATON_PORT: String(role === 'gateway' ? http[i] : 0),
          },
          before,
        )
        born(child)
        await child.ready
      })
    }
  }
  for (const [i, name] of of('worker').entries()) {
    member(name, 'worker', async (life, born) => {
      const turned = i % 2 === 0 ? urls : [...urls].reverse()
      const child = startChild(
        name,
        worker.args,
        {
          CHAOS_URLS: turned.join(','),
          CHAOS_KEY: key,
          CHAOS_SLOTS: String(SLOTS),
          CHAOS_NAME: `${name}-${life}`,
        },
        at(name).before,
      )
      born(child)
      await child.ready
    })
  }

  let nats: Nats | undefined
  const stop = async () => {
    stopped = true
    await nats?.close().catch(() => {})
    for (const one of alive) one.kill('SIGKILL')
    await Promise.all([...alive].map((one) => one.exited))
    worker.remove()
    net.close()
  }
  try {
    const begin = async (role: Role) => {
      await Promise.all(members.filter((one) => one.role === role).map((one) => one.start()))
    }
    await begin('nats')
    say('three NATS servers run')
    await members.find((one) => one.name === 'shards-1')?.start()
    await Promise.all(
      members
        .filter((one) => nodes.includes(one.role) && one.name !== 'shards-1')
        .map((one) => one.start()),
    )
    await begin('worker')
    const connection = (nats = await connectNats({
      access: {
        servers,
        credentials: accounts
          ? { type: 'creds', creds: readFileSync(accounts.observer, 'utf8') }
          : { type: 'nkey', seed: identity.seed },
      },
      name: 'chaos',
      log: silentLog,
      role: OBSERVER,
    }))
    return { members, urls, key, deaths, whole: (within) => whole(connection, within), stop }
  } catch (error) {
    await stop()
    throw error
  }
}

async function whole({ manager }: Nats, within: number): Promise<void> {
  let missing = 'nothing was looked at'
  for (const end = Date.now() + within; Date.now() < end; ) {
    try {
      const names: string[] = []
      for await (const name of manager.streams.names()) names.push(name)
      const infos = await Promise.all(names.map((name) => manager.streams.info(name)))
      const bad = infos.filter(
        ({ cluster }) =>
          !cluster?.leader ||
          (cluster.replicas ?? []).length < 2 ||
          cluster.replicas?.some(
            ({ current, offline, lag }) => !current || offline || (lag ?? 0) > 500,
          ),
      )
      if (bad.length === 0 && names.length > 0) return
      missing = bad.map(({ config }) => config.name).join(', ')
    } catch (error) {
      missing = String(error)
    }
    await new Promise((again) => setTimeout(again, 200))
  }
  throw new Error(`not all replicas are current after ${within / 1000} s: ${missing}`)
}
