/**
 * A service that consists of real processes, each of which can be killed at any moment: nodes, and
 * one NATS server that syncs to disk before it acknowledges writes.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Child, startNodeProcess } from '../../../nodes/commands/child.ts'
import type { Access } from '../../../nodes/nats/server/access.ts'
import { createIdentity } from '../../../nodes/nats/server/identity.ts'
import { findServer } from '../../../nodes/nats/server/install.ts'
import { startServer } from '../../../nodes/nats/server/server.ts'
import { freePort } from '../../support/ports.ts'
import { until } from './given.ts'

interface Killable {
  kill(): Promise<void>
}
/**
 * A node, which can also be stopped gracefully. `stop` returns its exit code, or the signal that
 * ended it.
 */
interface Stoppable extends Killable {
  stop(): Promise<string>
}
export interface Processes {
  readonly key: string
  /** How this process connects to the NATS server. */
  readonly access: Access
  folder(name: string): string
  readonly nats: Killable & { restart(): Promise<void> }
  /**
   * Starts a node and resolves once it is ready.
   * @param port the port of its gateway; by default any free port.
   */
  node(name: string, roles: string, port?: number): Promise<Stoppable>
  stop(): Promise<void>
}

/** Starts the NATS server. Nodes are started separately, each with the given settings. */
export async function processes(settings: Record<string, string>): Promise<Processes> {
  const data = mkdtempSync(join(tmpdir(), 'baton-kill-'))
  const { path } = await findServer(process.env)
  const identity = createIdentity()
  const start = (port: number) =>
    startServer({ binary: path, data: join(data, 'nats'), port, sync: 'always', identity })
  let server = await start(0)
  const key = `bat_${'k'.repeat(32)}`
  const children = new Set<Child>()
  return {
    key,
    access: server.access,
    folder: (name) => join(data, name),
    nats: {
      kill: async () => {
        server.kill('SIGKILL')
        await server.exited
      },
      restart: async () => {
        server = await start(server.port)
      },
    },
    node: async (name, roles, port) => {
      const child = startNodeProcess(name, {
        ...settings,
        ...server.settings,
        BATON_ROLES: roles,
        BATON_NODE_ID: name,
        BATON_DATA: join(data, name),
        BATON_PORT: String(port ?? 0),
        BATON_ROOT_KEY: key,
        BATON_LOG_LEVEL: process.env['BATON_TEST_LOG'] ?? 'silent',
        BATON_RATE_KEY: '0',
        BATON_RATE_ORG: '0',
      })
      children.add(child)
      void child.exited.then(() => children.delete(child))
      await child.ready
      return {
        kill: async () => {
          child.kill('SIGKILL')
          await child.exited
        },
        stop: async () => {
          child.kill('SIGTERM')
          return child.exited
        },
      }
    },
    stop: async () => {
      await Promise.all(
        [...children].map((child) => {
          child.kill('SIGKILL')
          return child.exited
        }),
      )
      await server.stop()
      rmSync(data, { recursive: true, force: true })
    },
  }
}
type Answer = { readonly status: number; readonly body: Record<string, never> }
/**
 * Returns a function that repeats a request to a gateway until the answer is not a server error.
 * The request fails after the time limit of `until`.
 * @param base prefix of all paths.
 */
export const persistent =
  ({ key }: Pick<Processes, 'key'>, port: number, base = '/v1') =>
  (
    method: string,
    path: string,
    body?: object,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Answer> =>
    until(
      async () => {
        try {
          const answer = await fetch(`http://127.0.0.1:${port}${base}${path}`, {
            method,
            headers: {
              authorization: `Bearer ${key}`,
              ...(body && { 'content-type': 'application/json' }),
              ...headers,
            },
            ...(body && { body: JSON.stringify(body) }),
          })
          return {
            status: answer.status,
            body: JSON.parse((await answer.text()) || '{}') as Answer['body'],
          }
        } catch {
          return { status: 503, body: {} }
        }
      },
      ({ status }) => status < 500,
    )
export const portsFor = (count: number): Promise<number[]> =>
  Promise.all(Array.from({ length: count }, () => freePort()))
