/**
 * A backup of a system under load, restored elsewhere: every response is identical, and workers,
 * runs and streams continue where they left off.
 */
import { spawn } from 'node:child_process'
import {
  copyFileSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { takeBackup } from '../../../nodes/backup/backup.ts'
import { MANIFEST, type Manifest } from '../../../nodes/backup/manifest.ts'
import { restoreBackup } from '../../../nodes/backup/restore.ts'
import { programArguments } from '../../../nodes/commands/child.ts'
import { baseStreams, deleteStream } from '../../../nodes/nats/journal/copy.ts'
import { createRegistry } from '../../../nodes/nats/journal/registry.ts'
import { connectNats } from '../../../nodes/nats/server/connect.ts'
import { RESTORING } from '../../../nodes/nats/server/provision.ts'
import type { Server } from '../../../nodes/nats/server/server.ts'
import { createDefinitionStore } from '../../../nodes/resolver/store.ts'
import { names } from '../../../protocol/subjects.ts'
import { silentLog } from '../../support/memory.ts'
import { type Frame, service } from '../../support/service.ts'
import { artifactClient } from '../artifacts/client.ts'
import { accessTo, natsServers, settingsFor } from '../support/clusters.ts'
import { instant, listOf, waiting } from '../support/given.ts'
import { everything, fill } from '../support/record.ts'

const folder = mkdtempSync(join(tmpdir(), 'baton-backup-'))
t.teardown(() => rmSync(folder, { recursive: true, force: true }))
t.setTimeout(120_000)
const quiet = { begin: () => {}, moved: () => {}, end: () => {} }

async function baton(
  settings: Readonly<Record<string, string>>,
  ...args: string[]
): Promise<{ code: number | null; out: string; err: string }> {
  const { BATON_NATS: _, BATON_DATA: __, ...env } = process.env
  const child = spawn(process.execPath, [...programArguments(), ...args], {
    env: { ...env, ...settings },
  })
  let [out, err] = ['', '']
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    out += text
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    err += text
  })
  const code = await new Promise<number | null>((done) => child.once('close', done))
  return { code, out, err }
}
const nats = (servers: readonly Server[]) =>
  connectNats({
    access: accessTo(servers),
    name: 'test',
    log: silentLog,
    role: 'test',
    within: 20_000,
  })

const s = await service()
const record = await fill(s)
const { handle } = await s.ok('project.create', { name: 'Load' })
const project = String(handle)
const before = await everything(s, record)
const holder = await s.worker({ worker_instance_id: 'holder', action_names: ['hold'] }, { project })
const held = await s.ok('run.start', {
  project,
  spec: { steps: [{ id: 'do', kind: 'action', config: { action_name: 'hold' } }] },
})
const job = await holder.job()
const session = holder.frames.find(({ type }) => type === 'worker.registered')?.[
  'worker_session_token'
]

const acknowledged: string[] = []
const started = (n: number, on = s) =>
  on.call('run.start', {
    project,
    spec: n % 2 ? waiting() : instant({ n }),
    idempotency_key: `start-${n}`,
  })
let loading = true
let numbered = 0
const load = Promise.all(
  [0, 1, 2].map(async () => {
    while (loading) {
      const n = numbered++
      acknowledged[n] = String((await started(n)).body['id'])
    }
  }),
)
const acked = () => acknowledged.filter((id) => id !== undefined).length
const reach = async (count: number): Promise<void> => {
  while (acked() < count) await new Promise((look) => setTimeout(look, 5))
}
await reach(40)
const certain = [...acknowledged.entries()].filter(([, id]) => id !== undefined)
const definitionsOn = (at: Awaited<ReturnType<typeof nats>>) =>
  createDefinitionStore(createRegistry(at, names.definitions, undefined, (text) => text))
const agent = { project: 'prj_1', agent_id: 'agt_1' }
const definition = { digest: 'd1', definition: { instructions: 'kept' }, at: 1 }
const original = await nats([s.server])
await definitionsOn(original).putValue(agent, definition, 0)
await original.close()
const place = join(folder, 'all.tar')
const told = await baton({}, 'backup', '--data', s.data, '--to', place)
await reach(acked() + 20)
loading = false
await load
const newest = Number(
  listOf(await s.ok('run.events', { id: acknowledged.at(-1), limit: 200 })).at(-1)?.['sequence'],
)
const feedOf = (on: typeof s, since: number, until: number): Promise<Frame[]> =>
  on.follow('run.feed', { project, since }, ({ id }) => Number(id) >= until)
const feed = await feedOf(s, 0, newest)
const live = await nats([s.server])
const refusal = await restoreBackup(live, place, { replicas: 1, again: false }, quiet).catch(
  (error: Error) => error.message,
)
await live.close()
await s.stop()

const servers = await natsServers(folder, 3)
const urls = servers.map(({ url }) => url)
const restored = await baton(
  settingsFor(servers),
  'restore',
  '--nats',
  urls.join(','),
  '--from',
  place,
  '--replicas',
  '3',
)
const r = await service(
  { ...settingsFor(servers), BATON_REPLICAS: '3' },
  { found: { servers, key: s.key } },
)
t.teardown(() => r.stop())

t.test('backup and restore take one command each', async (t) => {
  t.match(told, { code: 0, out: /Backed up to .*all\.tar/ }, told.err)
  t.match(
    restored,
    { code: 0, out: /BATON_PARTITIONS=1 BATON_SHARDS=4 BATON_REPLICAS=3/ },
    restored.err,
  )
  t.match(told.err, /JOURNAL_0 .* messages, 1 to \d+/)
  t.match(
    refusal,
    /already contain an installation of Baton \(JOURNAL_0, KV_CLUSTER.*Nodes are running on it/,
    'an installation in use is never overwritten',
  )
})

t.test('every restored response is identical byte for byte', async (t) => {
  const after = await everything(r, record)
  for (const [name, answer] of Object.entries(before)) t.equal(after[name], answer, name)
})
t.test('restored definitions of the resolver can be used', async (t) => {
  const at = await nats(servers)
  t.teardown(() => at.close())
  t.match(await definitionsOn(at).value(agent), { entry: definition })
})
t.test('restored files have their original content', async (t) => {
  const session_id = String(record.slots['session_id'])
  const [file] = listOf(await r.ok('session.attachments', { session_id }))
  t.equal(
    (
      await r.raw(
        'GET',
        `/v1/projects/default/sessions/${session_id}/attachments/${String(file?.['id'])}/content`,
      )
    ).text,
    'a note',
  )
})
t.test('a restored artifact has its original bytes', async (t) => {
  const { bytes } = await artifactClient(r.url, r.key).content(record.slots['artifact_id'])
  t.equal(bytes.toString(), 'all orders')
})
t.test(
  'runs acknowledged before the backup are restored, and the restored feed is a prefix of the original',
  async (t) => {
    for (const [n, id] of certain)
      t.match(
        await r.ok('run.get', { project, id }),
        { id, status: n % 2 ? 'suspended' : 'completed' },
        `start ${n}`,
      )
    const again = await feedOf(
      r,
      0,
      Number(
        listOf(await r.ok('run.events', { id: certain.at(-1)?.[1], limit: 200 })).at(-1)?.[
          'sequence'
        ],
      ),
    )
    t.ok(again.length > 0)
    t.strictSame(again, feed.slice(0, again.length))
  },
)
t.test("a client's cursor is valid after the restore", async (t) => {
  const [at, end] = [20, 60]
  const rest = await feedOf(r, Number(feed[at]?.id), Number(feed[end]?.id))
  t.strictSame(rest.slice(0, end - at), feed.slice(at + 1, end + 1))
})
t.test('a repeated start returns the restored run', async (t) => {
  for (const [n, id] of certain) {
    const { status, body } = await started(n, r)
    if (n % 2) t.match({ status, body }, { status: 202, body: { id } })
    else
      t.match(
        { status, body },
        { status: 409, body: { error: { details: { run_id: id, status: 'completed' } } } },
        'the run has ended',
      )
  }
})
t.test('restored workers and runs continue', async (t) => {
  const back = await r.worker(
    { worker_instance_id: 'holder', worker_session_token: session, action_names: ['hold'] },
    { project },
  )
  t.match(
    await back.report(job, { result: { kept: true } }),
    { duplicate: false },
    'a lease from before the backup is valid',
  )
  t.match(await r.ok('run.get', { project, id: held['id'] }), { status: 'completed' })
  back.close()
  await r.ok('run.signal', { id: record.early, name: 'first' })
  t.match(await r.ok('run.get', { id: record.early }), {
    status: 'completed',
    result: { b: { event: { payload: { n: 1 } } } },
  })
  const worker = await r.worker({ action_names: ['nobody'] })
  const waited = await worker.job()
  t.equal(waited['run_id'], record.runs[2])
  await worker.report(waited)
  worker.close()
  const next = await r.ok('run.start', { spec: instant() })
  t.ok(
    Number(listOf(await r.ok('run.events', { id: next['id'], limit: 200 }))[0]?.['sequence']) >
      Number(feed.find(({ data }) => data['run_id'] === certain.at(-1)?.[1])?.id),
    'cursors continue to increase',
  )
})

t.test('a cluster is restored into one server, and invalid restores are rejected', async (t) => {
  const [cluster, [single]] = [await nats(servers), await natsServers(join(folder, 'single'), 1)]
  if (!single) return
  t.teardown(() => single.stop())
  const whole = join(folder, 'whole')
  const { streams } = await takeBackup(cluster, whole, quiet)
  await cluster.close()
  const target = await nats([single])
  t.teardown(() => target.close())
  const attempt = (from: string, replicas: number, again = false) =>
    restoreBackup(target, from, { replicas, again }, quiet).then(
      () => 'restored',
      (error: Error) => error.message,
    )

  t.match(await attempt(join(folder, 'nowhere'), 1), /There is no backup at/)
  copyFileSync(place, join(folder, 'bad.tar'))
  // A restore does not read the padding between two files in the archive, so the test overwrites
  // more bytes than the maximum padding.
  writeSync(
    openSync(join(folder, 'bad.tar'), 'r+'),
    'x'.repeat(2000),
    Math.floor(statSync(place).size / 2),
  )
  t.match(await attempt(join(folder, 'bad.tar'), 1), /The backup is damaged/)
  t.strictSame(await baseStreams(target), [], 'nothing was written')
  const manifest = JSON.parse(readFileSync(join(whole, MANIFEST), 'utf8')) as Manifest
  t.equal(manifest.replicas, 3)

  t.equal(await attempt(whole, 1), 'restored')
  t.match(await attempt(whole, 1), /already contain an installation of Baton/)
  const registry = createRegistry(target, names.config)
  await registry.put(RESTORING, 'then', 0)
  t.match(await attempt(whole, 1), /has not finished.*--again/)
  const early = await service({}, { found: { servers: [single], key: s.key } }).then(
    () => 'started',
    (error: Error) => error.message,
  )
  t.match(
    early,
    /A restore into these NATS servers has not finished/,
    'no node starts on an unfinished restore',
  )
  await deleteStream(target, streams[0]?.stream ?? '')
  t.equal(await attempt(whole, 1, true), 'restored', 'an unfinished restore is repeated')
  t.notOk(await registry.get(RESTORING))
  const one = await service({}, { found: { servers: [single], key: s.key } })
  const after = await everything(one, record)
  for (const [name, answer] of Object.entries(await everything(r, record)))
    t.equal(after[name], answer, name)
  await one.stop()
})
