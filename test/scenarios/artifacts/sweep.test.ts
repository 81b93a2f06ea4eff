/**
 * The periodic sweep of the files of artifacts, with a real NATS server: files that no artifact
 * needs are removed, and no others.
 */
import { randomBytes } from 'node:crypto'
import t from 'tap'
import { artifactAt } from '../../../gateway/commands/artifacts/reservation.ts'
import type { World } from '../../../gateway/ports.ts'
import { createBlobs } from '../../../nodes/nats/blobs.ts'
import { createBus } from '../../../nodes/nats/bus.ts'
import { startSweeping } from '../../../nodes/roles/sweep.ts'
import { sweepArtifacts } from '../../../nodes/storage/sweep-artifacts.ts'
import { createWorld } from '../../../nodes/world.ts'
import { blobName } from '../../../protocol/artifacts/commands.ts'
import { isRefusal } from '../../../protocol/errors.ts'
import { textName } from '../../../protocol/sessions/attachments.ts'
import { fakeParts } from '../../support/fake-world.ts'
import { ManualClock } from '../../support/memory.ts'
import { service } from '../../support/service.ts'
import { until } from '../support/given.ts'
import { artifactClient } from './client.ts'
import { artifactOf, connectTo, storedFiles } from './store.ts'

t.setTimeout(120_000)
const HOUR_MS = 3_600_000
const s = await service()
const nats = await connectTo(s.server.access)
t.teardown(() => s.stop())
t.teardown(() => nats.close())
const client = artifactClient(s.url, s.key)
const files = createBlobs(nats)
const organization = s.nodes[0]?.installed.organization ?? ''
const clock = {
  now: () => Date.now(),
  elapsed: () => performance.now(),
  later: (ms: number, run: () => void) => {
    const timer = setTimeout(run, ms)
    return () => clearTimeout(timer)
  },
}
/** The ports of a second node, which performs the sweep. */
const world = createWorld(
  fakeParts({
    node: 'sweeper',
    settings: { deadline: 15_000 },
    shards: 4,
    organization,
    bus: createBus(nats, () => false),
    clock,
    random: { bytes: randomBytes },
  }),
)
/**
 * `world` with a clock that is two hours ahead, so that all present files exceed the minimum age.
 */
const later: World = { ...world, now: () => Date.now() + 2 * HOUR_MS }
const sweep = { files, world: later, limit: 3, minAge: HOUR_MS }
/** Examines all files, page by page. Returns the number of removed files. */
async function sweepAll(): Promise<number> {
  let removed = 0
  for (let after: string | undefined, more = true; more; more = after !== undefined) {
    const page = await sweepArtifacts(sweep, after)
    removed += page.removed
    after = page.next
  }
  return removed
}
const origin = { at: 0, principal: { type: 'system', id: 'system' } } as const
const send = async (project: string, id: string, name: 'reserve' | 'abandon', blob = '') => {
  const input = name === 'reserve' ? { organization, blob, owner: 'user_1' } : {}
  const command_id = randomBytes(8).toString('hex')
  const to = artifactAt(project, id)
  const done = await world.commandRow({
    ...to,
    command_id,
    name: `artifact.${name}`,
    input,
    origin,
  })
  if (isRefusal(done)) throw new Error(done.refused)
}
/** Announces an upload and stores its file, as a gateway does before it publishes the artifact. */
async function uploaded(project: string): Promise<{ readonly id: string; readonly blob: string }> {
  const id = world.id('artifact')
  const blob = blobName(project, id, 'one')
  await send(project, id, 'reserve', blob)
  await files.put(blob, Buffer.from('x'))
  return { id, blob }
}

const put = async (name: string, project?: string) =>
  String((await client.put(name, randomBytes(1000), { ...(project && { project }) })).body['id'])
const fileOf = async (id: string) =>
  (await storedFiles(nats)).find((name) => artifactOf(name) === id) ?? ''

t.test('files that no artifact needs are removed', async (t) => {
  const ready = await fileOf(await put('ready'))
  const project = String(ready.split('/')[1])
  await files.put(textName(ready), Buffer.from('text'))
  const pending = await uploaded(project)
  const kept = [ready, textName(ready), pending.blob].sort()

  const deleted = await put('deleted')
  const old = await fileOf(deleted)
  await s.call('artifact.delete', { artifact_id: deleted })
  await files.put(old, Buffer.from('late'))
  const abandoned = await uploaded(project)
  await send(project, abandoned.id, 'abandon')
  await until(
    () => files.get(abandoned.blob),
    (bytes) => !bytes,
  )
  await files.put(abandoned.blob, Buffer.from('late'))
  await files.put(textName(abandoned.blob), Buffer.from('late'))
  await files.put(blobName(project, world.id('artifact'), 'one'), Buffer.from('unknown'))
  await files.put(ready.replace(/[^/]+$/, 'other'), Buffer.from('of no upload'))
  for (let n = 0; n < 5; n++) await files.put(`v/other-${n}`, Buffer.from('a value'))

  t.equal((await storedFiles(nats)).length, kept.length + 5)
  const young = { ...sweep, world, limit: 100 }
  t.same(await sweepArtifacts(young), { removed: 0 }, 'a young file may belong to an upload')
  t.equal(await sweepAll(), 5)
  t.same((await storedFiles(nats)).sort(), kept)
  t.equal(await sweepAll(), 0)
  t.ok(await files.get('v/other-4'), 'other values stay')
})

t.test('an artifact that was published after its project was deleted is deleted', async (t) => {
  const project = String((await s.ok('project.create', { name: 'gone' }))['id'])
  const before = await put('before', project)
  await s.call('project.delete', { project })
  await until(
    () => fileOf(before),
    (name) => name === '',
  )
  const { id, blob } = await uploaded(project)
  const reserve = { artifact: id, bytes: 1, expires_at: Date.now() + HOUR_MS }
  const quota = async () => {
    const { generated_at: _, ...rest } = await s.ok('artifact.quota')
    return rest
  }
  const unused = await quota()
  const input = { name: 'a', mime_type: 'text/plain', size_bytes: 1, sha256: 'ab' }
  for (const [to, name, content] of [
    [{ project: organization, kind: 'organization', id: organization }, 'quota.reserve', reserve],
    [artifactAt(project, id), 'artifact.complete', input],
  ] as const) {
    const command_id = randomBytes(8).toString('hex')
    const done = await world.commandRow({ ...to, command_id, name, input: content, origin })
    t.notOk(isRefusal(done))
  }
  t.equal(await sweepAll(), 1)
  await until(
    () => files.get(blob),
    (bytes) => !bytes,
  )
  t.same(
    await until(quota, ({ artifact_count }) => artifact_count === unused['artifact_count']),
    unused,
  )
})

t.test('one node sweeps periodically, and not the store of another installation', async (t) => {
  const orphan = blobName('prj_1', world.id('artifact'), 'one')
  await files.put(orphan, Buffer.from('x'))
  const manual = new ManualClock()
  let owned: readonly string[] = ['0.1']
  const pages: string[] = []
  const listed = {
    ...files,
    list: async (prefix: string, after: string | undefined, limit: number) => {
      pages.push(after ?? '')
      return files.list(prefix, after, limit)
    },
  }
  const host = { owned: () => owned }
  const stop = startSweeping({ nats, files: listed, world: later, clock: manual, host })
  t.teardown(stop)
  const round = async () => {
    await manual.advance(6 * HOUR_MS)
    await manual.advance(1)
  }
  await manual.advance(120_000)
  await round()
  t.same(pages, [], 'another node owns the first shard')
  owned = ['0.0']
  await until(round, () => pages.length > 0)
  await until(
    () => files.get(orphan),
    (bytes) => !bytes,
  )
  const theirs = await files.get('installation')
  t.equal(Buffer.from(theirs ?? []).toString(), organization)
  await files.delete('installation')
  await files.put('installation', Buffer.from('org_other'))
  await files.put(orphan, Buffer.from('x'))
  t.same(await sweepArtifacts(sweep), { removed: 0 })
  t.ok(await files.get(orphan))
})
