/** A service of real processes, each of which can be killed at any moment: one NATS server that writes before it acknowledges, and nodes. */
import { spawn, type ChildProcess } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { findServer } from '../../nodes/nats/install.ts'
import { freePort, startServer } from '../../nodes/nats/server.ts'

/** A process that can be killed without warning. */
interface Killable { kill(): Promise<void> }
/** A node, which can also be told to end; gives its exit code. */
interface Stoppable extends Killable { stop(): Promise<number | null> }
export interface Processes {
  readonly key: string
  readonly nats: Killable & { restart(): Promise<void> }
  /** Start a node; resolves when it serves. @param port of its gateway. */
  node(name: string, roles: string, port?: number): Promise<Stoppable>
  stop(): Promise<void>
}

const main = fileURLToPath(new URL('../../nodes/main.ts', import.meta.url))
const tsx = import.meta.resolve('tsx')

/** Start the NATS server; nodes follow. */
export async function processes(settings: Record<string, string>): Promise<Processes> {
  const data = mkdtempSync(join(tmpdir(), 'baton-kill-'))
  const { path } = await findServer(process.env)
  const start = (port: number) => startServer({ binary: path, data: join(data, 'nats'), port, sync: 'always' })
  let server = await start(0)
  const key = `bat_${'k'.repeat(32)}`
  const children = new Set<ChildProcess>()
  return {
    key,
    nats: {
      kill: async () => {
        server.kill('SIGKILL')
        await server.exited
      },
      restart: async () => { server = await start(server.port) },
    },
    node: async (name, roles, port) => {
      const child = spawn(process.execPath, ['--import', tsx, main, 'node'], {
        env: { ...process.env, ...settings, BATON_NATS: server.url, BATON_ROLES: roles, BATON_NODE_ID: name, BATON_DATA: join(data, name), BATON_PORT: String(port ?? 0), BATON_ROOT_KEY: key, BATON_LOG_LEVEL: process.env['BATON_TEST_LOG'] ?? 'silent', BATON_RATE_KEY: '0', BATON_RATE_ORG: '0' },
        stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      })
      children.add(child)
      const exited = new Promise<void>((done) => child.once('exit', () => { children.delete(child); done() }))
      await Promise.race([new Promise((ready) => child.once('message', ready)), exited.then(() => Promise.reject(new Error(`${name} ended at start`)))])
      return { kill: async () => { child.kill('SIGKILL'); await exited }, stop: async () => { child.kill('SIGTERM'); await exited; return child.exitCode } }
    },
    stop: async () => {
      await Promise.all([...children].map((child) => new Promise((done) => { child.once('exit', done); child.kill('SIGKILL') })))
      await server.stop()
      rmSync(data, { recursive: true, force: true })
    },
  }
}
export const portsFor = (count: number): Promise<number[]> => Promise.all(Array.from({ length: count }, () => freePort()))
