/**
 * One node per role on a NATS server in operator mode, under a prefix. Each node has its own user
 * with only the permissions that `baton nats-permissions` prints. The tour passes, a backup is
 * taken and restored, and a missing permission or wrong credentials are reported in one sentence.
 */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { runTour } from '../../../client/tour/tour.ts'
import { Worker } from '../../../client/worker.ts'
import type { Log } from '../../../gateway/ports.ts'
import { takeBackup } from '../../../nodes/backup/backup.ts'
import { restoreBackup } from '../../../nodes/backup/restore.ts'
import { readConfig } from '../../../nodes/config.ts'
import { createBus } from '../../../nodes/nats/bus.ts'
import { baseStreams, deleteStream } from '../../../nodes/nats/journal/copy.ts'
import type { Access } from '../../../nodes/nats/server/access.ts'
import { connectNats } from '../../../nodes/nats/server/connect.ts'
import {
  type AccountRole,
  accountRoles,
  type Permissions,
  permissionsOf,
} from '../../../nodes/nats/server/permissions.ts'
import { type RunningNode, startNode } from '../../../nodes/node.ts'
import { systemClock } from '../../../nodes/system.ts'
import { startOperatorMode } from '../../nodes/support/operator.ts'
import { silentLog } from '../../support/memory.ts'
import { MemoryPlace } from '../../support/memory-provider.ts'
import { freePort } from '../../support/ports.ts'
import { startOwner, startTestHost, worldOn } from '../support/hosts.ts'

t.setTimeout(240_000)
const nats = await startOperatorMode()
t.teardown(() => nats.stop())
const scope = { partitions: 2, prefix: 'acme' }
const key = `bat_${'p'.repeat(32)}`

/**
 * Errors that the nodes logged. A missing permission is logged even when the operation succeeds.
 */
const errors: string[] = []
const log: Log = {
  ...silentLog,
  error: (fields, text) => void errors.push(`${text} ${JSON.stringify(fields)}`),
}

let started = 0
async function start(
  roles: readonly AccountRole[],
  permissions: Permissions = permissionsOf(roles, scope),
  settings: Record<string, string> = {},
): Promise<RunningNode> {
  const name = `${roles.join('-')}-${started++}`
  const read = readConfig(
    {
      BATON_NATS: nats.server.url,
      BATON_NATS_CREDS: await nats.user(name, permissions),
      BATON_NATS_PREFIX: scope.prefix,
      BATON_PARTITIONS: String(scope.partitions),
      BATON_SHARDS: '2',
      BATON_ROLES: roles.filter((role) => role !== 'provision').join(','),
      BATON_DATA: join(nats.folder, name),
      BATON_PORT: '0',
      BATON_GATEWAY_URL: 'http://127.0.0.1:1',
      // Workers may run without isolation, because this machine may lack bubblewrap and root.
      BATON_UNSAFE_LOCAL: 'on',
      BATON_ROOT_KEY: key,
      BATON_RATE_KEY: '0',
      BATON_RATE_ORG: '0',
      // The thread connects with the same credentials.
      BATON_VIEW_THREADS: 'on',
      BATON_MODELS: '{"providers": [], "embedding": {"model": "service/hashed"}}',
      ...settings,
    },
    [],
  )
  if ('faults' in read) throw new Error(read.faults.join('\n'))
  const { config } = read
  return startNode(config, { servers: config.nats, ...config.nats_access }, log)
}
const refusal = async (starting: Promise<RunningNode>): Promise<{ text: string; ms: number }> => {
  const began = performance.now()
  const text = await starting.then(
    (node) => node.stop().then(() => 'started'),
    (error: Error) => error.message,
  )
  return { text, ms: performance.now() - began }
}
const without = ({ publish, subscribe }: Permissions, subject: string): Permissions => ({
  publish: publish.filter((one) => one !== subject),
  subscribe: subscribe.filter((one) => one !== subject),
})

t.test('a start without the permission to provision fails and names it', async (t) => {
  const { text, ms } = await refusal(start(['shards']))
  t.match(
    text,
    /may not publish to "\$JS\.API\.STREAM\.CREATE\.KV_acme_CONFIG": grant it that permission/,
  )
  t.ok(ms < 5000, `${ms} ms`)
  errors.length = 0
})

t.test('the tour passes on one node per role', async (t) => {
  const first = await start(['shards', 'provision'])
  await first.stop()
  const nodes: RunningNode[] = []
  // The port is chosen here, because the host starts first, and its workers need the URL of the
  // gateway.
  const port = String(await freePort())
  const settings = { BATON_PORT: port, BATON_GATEWAY_URL: `http://127.0.0.1:${port}` }
  for (const role of ['shards', 'views', 'executor', 'hosts', 'gateway'] as const)
    nodes.push(await start([role], permissionsOf([role], scope), settings))
  const url = nodes.at(-1)?.url ?? ''
  let said = ''
  const right = await runTour({
    url: [url],
    key,
    project: 'default',
    folder: t.testdir({ 'a.txt': 'one\ntwo\n', 'b.txt': 'three\n' }),
    parts: 2,
    out: { write: (text) => (said += text) },
  })
  t.ok(right, said)
  t.equal((await fetch(`${url}/readyz`)).status, 200)
  t.equal(await searchByMeaning(url), 'auto', 'views and gateways reach the executor')
  t.strictSame(await logged(url), ['said', 'said'], 'gateways store and read log lines')
  for (const node of nodes.reverse()) await node.stop()
  t.strictSame(errors, [], 'no permission was missing')
})

t.test('hosts, shards and gateways exchange requests about environments', async (t) => {
  const access = async (role: AccountRole): Promise<Access> => ({
    servers: [nats.server.url],
    prefix: scope.prefix,
    credentials: {
      type: 'creds',
      creds: await readFile(await nats.user(`${role}-only`, permissionsOf([role], scope)), 'utf8'),
    },
  })
  const owner = await startOwner(await access('shards'), log)
  const place = new MemoryPlace()
  const host = await startTestHost(await access('hosts'), place, 'host', log)
  const id = owner.id()
  await owner.send(id, 'environment.use')
  await owner.until(id, ({ status }) => status === 'ready')
  await owner.send(id, 'environment.use')
  await owner.until(id, ({ worker }) => worker === 1)
  place.logs.set(id, 'one\ntwo')
  const gateway = await connectNats({
    access: await access('gateway'),
    name: 'gateway',
    role: 'gateway',
    log,
  })
  const read = worldOn(createBus(gateway), 'gateway', systemClock).environmentLogs(place.name, {
    environment_id: id,
    log_name: 'worker',
    tail: 1,
    max_bytes: 10,
  })
  t.strictSame(await read, { content: 'two', truncated: true })
  await host.stop()
  await owner.stop()
  await gateway.close()
  t.strictSame(errors, [], 'no permission was missing')
})

/**
 * Runs a job that writes a log line. Returns the texts of the log, read first in ascending and then
 * in descending order.
 */
async function logged(url: string): Promise<unknown[]> {
  const worker = new Worker({
    url,
    key,
    actions: { say: (_, { log }) => log.info('said') },
  })
  await worker.start()
  const call = async (path: string, body?: object) => {
    const answer = await fetch(`${url}/v1/projects/default/runs${path}`, {
      method: body ? 'POST' : 'GET',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    })
    return (await answer.json()) as { id: string; items: { text: string }[] }
  }
  const step = { id: 'do', kind: 'action', config: { action_name: 'say' } }
  const { id } = await call('', { spec: { steps: [step] } })
  let read = await call(`/${id}/logs`)
  while (read.items.length === 0) read = await call(`/${id}/logs`)
  const newest = await call(`/${id}/logs?order=desc`)
  await worker.stop()
  return [...read.items, ...newest.items].map(({ text }) => text)
}

/** Creates a table of two rows, and returns the identity of the row that a search ranks first. */
async function searchByMeaning(url: string): Promise<unknown> {
  const post = async (path: string, body: object) => {
    const answer = await fetch(`${url}/v1/projects/default/tables${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    return (await answer.json()) as { id: string; items: { data: { name: string } }[] }
  }
  const schema = {
    identity_column: 'name',
    columns: [{ name: 'name', type: 'string', required: true }],
  }
  const { id } = await post('', { name: 'vehicles', schema })
  await post(`/${id}/bulk`, { rows: [{ name: 'auto' }, { name: 'bread' }] })
  const { items } = await post(`/${id}/search`, { query: 'car', mode: 'semantic' })
  return items[0]?.data.name
}

const connectAs = async (role: 'backup' | 'restore') =>
  connectNats({
    access: {
      servers: [nats.server.url],
      prefix: scope.prefix,
      credentials: {
        type: 'creds',
        creds: await readFile(await nats.user(role, permissionsOf([role], scope)), 'utf8'),
      },
    },
    name: role,
    role,
    log,
  })
const quiet = { begin: () => {}, moved: () => {}, end: () => {} }

t.test('backup and restore work with separate accounts', async (t) => {
  const place = join(nats.folder, 'saved')
  const source = await connectAs('backup')
  const manifest = await source.permitted(takeBackup(source, place, quiet))
  await source.close()
  t.match(manifest, { prefix: 'acme', partitions: 2 })
  const target = await connectAs('restore')
  for (const stream of await baseStreams(target)) await deleteStream(target, stream)
  await target.permitted(restoreBackup(target, place, { replicas: 1, again: false }, quiet))
  await target.close()
  t.strictSame(errors, [], 'no permission was missing')
})

t.test('a missing permission is named', async (t) => {
  const first = await start(['shards', 'provision'])
  t.teardown(() => first.stop())
  for (const [role, subject, sentence] of [
    ['gateway', 'acme.shard.*.*', /may not publish to "acme\.shard\.\d\.\d"/],
    ['gateway', 'acme.gateway.*', /may not (publish|subscribe) to "acme\.gateway\./],
    [
      'executor',
      'acme.serve.> executors',
      /may not subscribe to "acme\.serve\.>" in the queue group "executors"/,
    ],
    [
      'views',
      '$JS.API.CONSUMER.CREATE.acme_JOURNAL_1.>',
      /may not publish to "\$JS\.API\.CONSUMER\.CREATE\.acme_JOURNAL_1\./,
    ],
    ['views', 'acme._INBOX.views.>', /may not subscribe to "acme\._INBOX\.views\./],
    ['gateway', '$KV.acme_CLUSTER.*', /may not publish to "\$KV\.acme_CLUSTER\.node/],
  ] as const) {
    const { text, ms } = await refusal(
      start([role], without(permissionsOf([role], scope), subject)),
    )
    t.match(text, sentence, `${role} without ${subject}`)
    t.ok(ms < 5000, `${ms} ms`)
  }
  t.match(errors.join('\n'), /NATS permission missing .*nats_permission_missing.*acme\.serve/)
})

t.test('an account cannot use the subjects of other roles', async (t) => {
  const creds = await nats.user('view-only', permissionsOf(['views'], scope))
  const client = await connectNats({
    access: {
      servers: [nats.server.url],
      prefix: scope.prefix,
      credentials: { type: 'creds', creds: await readFile(creds, 'utf8') },
    },
    name: 'views',
    role: 'views',
    log: silentLog,
  })
  t.teardown(() => client.close())
  const attempt = (subject: string) =>
    client.ask(subject, new Uint8Array(), undefined, 2000).then(
      () => 'answered',
      (error: Error) => error.message,
    )
  for (const subject of [
    'acme.shard.0.0',
    'acme.journal.0.0',
    '$JS.API.STREAM.DELETE.acme_JOURNAL_0',
    '$KV.acme_CONFIG.installation',
    'shard.0.0',
  ])
    t.match(await attempt(subject), `may not publish to "${subject}"`)
})

t.test('wrong or missing credentials and an unreachable server are reported', async (t) => {
  const of = async (settings: Record<string, string>) =>
    refusal(start(['gateway'], permissionsOf(['gateway'], scope), settings))
  const elsewhere = await startOperatorMode()
  const foreign = await elsewhere.user('foreign', permissionsOf(['gateway'], scope))
  t.teardown(() => elsewhere.stop())
  for (const [settings, sentence] of [
    [{ BATON_NATS_CREDS: foreign }, /rejects the credentials of BATON_NATS_CREDS: correct them/],
    [{ BATON_NATS_CREDS: '' }, /requires credentials: set BATON_NATS_CREDS/],
    [
      { BATON_NATS_CREDS: '', BATON_NATS_TOKEN: 'wrong' },
      /rejects the credentials of BATON_NATS_TOKEN/,
    ],
    [
      { BATON_NATS: 'nats://127.0.0.1:9' },
      /No NATS server answers at nats:\/\/127\.0\.0\.1:9 .*correct BATON_NATS/,
    ],
  ] as const) {
    const { text, ms } = await of(settings)
    t.match(text, sentence)
    t.ok(ms < 5000, `${ms} ms`)
  }
})

t.test('the permissions of an account are the union of its roles', async (t) => {
  const all = permissionsOf(['gateway', 'shards', 'views', 'executor', 'hosts'], { partitions: 1 })
  t.ok(all.subscribe.includes('_INBOX.gateway-shards-views-executor-hosts.>'))
  for (const role of accountRoles) {
    const { publish, subscribe } = permissionsOf([role], { partitions: 1 })
    t.notOk([...publish, ...subscribe].includes('>'), role)
  }
  t.notOk(
    permissionsOf(['gateway'], { partitions: 1 }).publish.some((one) => one.startsWith('journal')),
  )
})
