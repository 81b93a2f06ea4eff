/**
 * Three NATS servers in operator mode. Each node's user has only the permissions that `baton
 * nats-permissions` prints for its role. No guarantee to clients is violated while processes are
 * killed, and the error for a missing permission contains the name of the permission.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { readConfig } from '../../../nodes/config.ts'
import { findServer } from '../../../nodes/nats/server/install.ts'
import {
  type AccountRole,
  type Permissions,
  permissionsOf,
} from '../../../nodes/nats/server/permissions.ts'
import { type RunningNode, startNode } from '../../../nodes/node.ts'
import { loopback } from '../../chaos/net.ts'
import { runChaos } from '../../chaos/run.ts'
import { createOperatorAccount } from '../../nodes/support/operator.ts'
import { silentLog } from '../../support/memory.ts'
import { natsServers } from '../support/clusters.ts'

t.setTimeout(300_000)
const folder = mkdtempSync(join(tmpdir(), 'baton-permissions-'))
t.teardown(() => rmSync(folder, { recursive: true, force: true }))

t.test('no guarantee is violated while processes are killed', async (t) => {
  const { path: binary } = await findServer(process.env)
  const said: string[] = []
  const chaos = join(folder, 'chaos')
  mkdirSync(chaos)
  const { history, violations } = await runChaos({
    seconds: 12,
    rate: 5,
    seed: 7,
    net: loopback(),
    folder: chaos,
    binary,
    signal: new AbortController().signal,
    say: (line) => said.push(line),
    accounts: true,
  })
  // Slow responses are ignored, because they usually only reflect other load on this machine.
  const broken = violations.filter(({ kind }) => kind !== 'slow')
  t.strictSame(broken, [], said.join('\n'))
  t.ok(history.strikes.length > 0, 'something was killed')
  t.ok(history.runs.length > 0, 'runs were acknowledged')
})

t.test('a missing permission is named', async (t) => {
  const account = await createOperatorAccount(folder)
  const servers = await natsServers(join(folder, 'cluster'), 3, account.authorization)
  t.teardown(() => Promise.all(servers.map((server) => server.stop())))
  const scope = { partitions: 1 }
  let users = 0
  const start = async (
    roles: readonly AccountRole[],
    permissions: Permissions = permissionsOf(roles, scope),
  ): Promise<RunningNode> => {
    const name = `node-${users++}`
    const read = readConfig(
      {
        BATON_NATS: servers.map(({ url }) => url).join(','),
        BATON_NATS_CREDS: await account.user(name, permissions),
        BATON_PARTITIONS: '1',
        BATON_SHARDS: '2',
        BATON_REPLICAS: '3',
        BATON_ROLES: roles.filter((role) => role !== 'provision').join(','),
        BATON_DATA: join(folder, name),
        BATON_PORT: '0',
        BATON_VIEW_THREADS: 'off',
      },
      [],
    )
    if ('faults' in read) throw new Error(read.faults.join('\n'))
    const { config } = read
    return startNode(config, { servers: config.nats, ...config.nats_access }, silentLog)
  }
  const first = await start(['shards', 'provision'])
  t.teardown(() => first.stop())
  for (const [role, subject, sentence] of [
    ['gateway', 'shard.*.*', /may not publish to "shard\.0\.\d": grant it that permission/],
    ['views', '$JS.API.CONSUMER.CREATE.JOURNAL_0.>', /may not publish to "\$JS\.API\.CONSUMER\./],
    ['executor', '$KV.CLUSTER.*', /may not publish to "\$KV\.CLUSTER\.node/],
  ] as const) {
    const { publish, subscribe } = permissionsOf([role], scope)
    t.ok(publish.includes(subject))
    await t.rejects(
      start([role], { publish: publish.filter((one) => one !== subject), subscribe }),
      { name: 'StartFault', message: sentence },
      `${role} without ${subject}`,
    )
  }
})
