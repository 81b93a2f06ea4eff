/**
 * An answer to a NATS request after a reconnection. The permission to answer ends with the
 * connection that received the request, so the server's error does not mean that the node lacks a
 * permission.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Empty } from '@nats-io/transport-node'
import t from 'tap'
import type { Log } from '../../../gateway/ports.ts'
import { connectNats } from '../../../nodes/nats/server/connect.ts'
import { configurationOf, permissionsOf } from '../../../nodes/nats/server/permissions.ts'
import { silentLog } from '../../support/memory.ts'
import { jetstreamBlock, startPlainServer } from '../support/plain-server.ts'

t.test('an answer after a reconnection is not reported as a missing permission', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'baton-late-'))
  const users = (['shards', 'gateway'] as const).map(
    (role) =>
      `{ user: ${role}, password: pw, ${configurationOf(permissionsOf([role], { partitions: 1 }))} }`,
  )
  const server = await startPlainServer(
    folder,
    `${jetstreamBlock(folder)}\nauthorization { users: [${users.join('\n')}] }`,
  )
  const errors: string[] = []
  const late = new Set<string>()
  const log: Log = {
    ...silentLog,
    error: ({ event }) => void errors.push(event),
    debug: ({ event }) => void late.add(event),
  }
  const connectAs = (role: 'shards' | 'gateway') =>
    connectNats({
      access: {
        servers: [server.address],
        credentials: { type: 'password', user: role, password: 'pw' },
      },
      name: role,
      role,
      log,
    })
  const [shards, gateway] = [await connectAs('shards'), await connectAs('gateway')]
  t.teardown(async () => {
    await Promise.all([shards.close(), gateway.close()])
    await server.stop()
    rmSync(folder, { recursive: true, force: true })
  })
  const requested = new Promise<string>((done) => {
    shards.connection.subscribe('shard.*.*', { callback: (_, { reply }) => done(reply ?? '') })
  })
  await shards.connection.flush()
  gateway.ask('shard.0.0', Empty, undefined, 5000).catch(() => {})
  const reply = await requested
  const again = new Promise<void>((done) => shards.onReconnect(done))
  await shards.connection.reconnect()
  await again
  /**
   * Publishes a message and waits until the server has processed it. Fails if a permission is
   * missing.
   */
  const publish = (subject: string) =>
    shards.permitted(
      (async () => {
        shards.send(subject, Empty)
        await shards.flush()
      })(),
    )
  await publish(reply)
  t.ok(late.has('nats_reply_dropped'))
  t.strictSame(errors, [])
  await t.rejects(publish('moved'), { message: /may not publish to "moved"/ })
  t.strictSame(errors, ['nats_permission_missing'])
})
