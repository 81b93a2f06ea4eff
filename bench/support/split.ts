/**
 * Baton as three processes: a NATS server, a node with all other roles, and a node that is only a
 * gateway, so that the memory of the gateway can be measured. The data folder is deleted at the end.
 */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { program, startChild } from '../../nodes/commands/child.ts'
import { createIdentity } from '../../nodes/nats/server/identity.ts'
import { findServer } from '../../nodes/nats/server/install.ts'
import { freePort, startServer } from '../../nodes/nats/server/server.ts'
import { newFolder, type Target } from './baton.ts'
import { COLLECT } from './memory.ts'

export interface Split extends Target {
  /** Process id of the gateway, which collects garbage on request (`settled`). */
  readonly gateway: number
  readonly data: string
  stop(): Promise<void>
}

/**
 * Starts the processes, and waits until they are ready.
 * @param sync when the NATS server syncs to disk: `always`, or an interval.
 * @param settings further settings of both nodes.
 */
export async function startSplit(
  sync: string,
  settings: Readonly<Record<string, string>> = {},
): Promise<Split> {
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
  const start = async (name: string, roles: string, more: readonly string[] = []) => {
    const child = startChild(name, [...more, ...program(), 'node'], {
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
    return child
  }
  const rest = await start('rest', 'shards,views,executor')
  const gateway = await start('gateway', 'gateway', COLLECT)
  return {
    port,
    key,
    gateway: gateway.pid,
    data,
    stop: async () => {
      for (const child of [gateway, rest]) {
        child.kill('SIGTERM')
        await child.exited
      }
      await server.stop()
      rmSync(data, { recursive: true, force: true })
    },
  }
}
