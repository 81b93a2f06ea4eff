/**
 * Files of sessions as artifacts over HTTP: lists, contents, signed URLs, deletion through the
 * session and through the artifact, the storage quota, and read access.
 */
import { randomBytes } from 'node:crypto'
import t, { type Test } from 'tap'
import { createBlobs } from '../../../nodes/nats/blobs.ts'
import { createBus } from '../../../nodes/nats/bus.ts'
import { connectNats } from '../../../nodes/nats/server/connect.ts'
import { api } from '../../../protocol/api.ts'
import { fileName } from '../../../protocol/sessions/attachments.ts'
import { shardOf, subjects } from '../../../protocol/subjects.ts'
import { silentLog } from '../../support/memory.ts'
import { requestOf, service } from '../../support/service.ts'
import { artifactClient } from '../artifacts/client.ts'
import { type Found, listOf, until } from '../support/given.ts'
import { editor, type Person, person } from '../support/people.ts'

t.setTimeout(120_000)
const MIB = 1_048_576
const s = await service({ BATON_ARTIFACT_QUOTA: '16MiB' })
const nats = await connectNats({
  access: s.server.access,
  name: 'test',
  log: silentLog,
  role: 'test',
})
t.teardown(() => s.stop())
t.teardown(() => nats.close())
const client = artifactClient(s.url, s.key)
const [ann, bob, out, admin] = await Promise.all([
  editor(s, 'ann'),
  editor(s, 'bob'),
  editor(s, 'out'),
  person(s, 'admin', 'role_admin'),
])
const agent = await s.ok('agent.create', { name: 'reader', system_prompt: 'Be brief.' })
type Open = Record<string, unknown>

async function sessionOf(session_key: string, more: Open = {}): Promise<string> {
  const input = { agent_id: agent['id'], session_key, ...more }
  return String((await ann.ok('session.create', input))['id'])
}
const png = (size = 1000): Buffer =>
  Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), randomBytes(size - 8)])
const input = (session_id: string, bytes: Buffer): Open => ({
  session_id,
  name: 'plan.png',
  file: bytes.toString('base64'),
})
const attach = async (who: Person, session_id: string, bytes = png()): Promise<Found> =>
  (await who.ok('session.attach', input(session_id, bytes)))['artifact'] as unknown as Found
const quota = async (): Promise<Open> => {
  const { generated_at: _, limit_bytes: __, ...used } = await s.ok('artifact.quota')
  return used
}
/** Checks that the quota returns to its earlier value. The effects may be delayed. */
const restored = async (t: Test, before: Open): Promise<void> =>
  void t.same(await until(quota, (now) => JSON.stringify(now) === JSON.stringify(before)), before)
const listed = async (who: Person): Promise<unknown[]> =>
  listOf(await who.ok('artifact.list', { limit: 200 })).map(({ id }) => id)
const statusOf = async (who: Pick<Person, 'key'>, id: unknown): Promise<number> =>
  (await client.content(id, { key: who.key })).status

const project = String((await s.ok('project.get', { project: 'default' }))['id'])
const factsOf = (bytes: Buffer): Open => ({
  name: 'plan.png',
  mime_type: 'image/png',
  size_bytes: bytes.length,
  sha256: 'ab'.repeat(32),
  as: 'image',
})
/** Sends a command to a session as a gateway does, on behalf of ann. */
async function send(session_id: string, name: string, more: Open): Promise<Open> {
  const command = {
    project,
    kind: 'session',
    id: session_id,
    command_id: randomBytes(16).toString('hex'),
    name,
    input: more,
    origin: { at: Date.now(), principal: { type: 'service_principal', id: ann.id } },
  }
  const shards = s.nodes.flatMap((node) => node.owned()).length
  const to = subjects.shard(0, shardOf('session', session_id, shards) ?? -1)
  const got = await createBus(nats).request(to, { type: 'command', command }, 10_000)
  return (got as { answer: { reply: Open } }).answer.reply
}

t.test('an attachment is an artifact with the same record, and counted', async (t) => {
  const before = await quota()
  const session_id = await sessionOf('same')
  const bytes = png()
  const artifact = await attach(ann, session_id, bytes)
  t.same(await quota(), {
    used_bytes: Number(before['used_bytes']) + bytes.length,
    artifact_count: Number(before['artifact_count']) + 1,
    pending_count: 0,
  })
  const record = { ...artifact, owned_by: ann.id }
  t.same(await bob.ok('artifact.get', { artifact_id: artifact.id }), record)
  t.match(listOf(await bob.ok('artifact.list', { mime: 'image/' })), [record])
  t.match(listOf(await bob.ok('session.attachments', { session_id })), [artifact])
  const read = await client.content(artifact.id, { headers: { range: 'bytes=1-3' } })
  t.equal(read.status, 206)
  t.equal(read.bytes.toString(), 'PNG')
  t.ok((await client.content(artifact.id)).bytes.equals(bytes))
  const { url } = await bob.ok('artifact.signed_url', { artifact_id: artifact.id })
  const path = new URL(String(url)).pathname
  t.ok((await client.get(path, { key: null })).bytes.equals(bytes))

  const artifact_id = artifact.id
  const at = { session_id, artifact_id }
  t.equal((await ann.call('session.detach', at)).status, 204)
  t.same(await quota(), before, 'the bytes have left the quota before the answer')
  await ann.refused('artifact.get', { artifact_id }, 404, 'not_found')
  t.equal(await statusOf(ann, artifact.id), 404)
  t.equal((await client.get(path, { key: null })).status, 404)
  t.notOk((await listed(ann)).includes(artifact.id))
  t.equal((await ann.call('session.detach', at)).status, 204)
  await ann.refused('artifact.delete', { artifact_id }, 404, 'not_found')
  t.same(await quota(), before, 'a repeat refunds nothing')
})

t.test('deleting the artifact deletes the file of the session', async (t) => {
  const before = await quota()
  const session_id = await sessionOf('erased')
  const { id: artifact_id } = await attach(ann, session_id)
  await bob.refused('artifact.delete', { artifact_id }, 403, 'permission_denied')
  t.equal((await ann.call('artifact.delete', { artifact_id })).status, 204)
  t.same(await quota(), before)
  t.same(listOf(await ann.ok('session.attachments', { session_id })), [])
  await ann.refused('session.attachment', { session_id, artifact_id }, 404, 'not_found')
  const content = [{ type: 'image', source: { type: 'artifact', artifact_id } }]
  await ann.refused('session.start_turn', { session_id, content }, 400, 'bad_request')
  t.equal((await ann.call('session.detach', { session_id, artifact_id })).status, 204)
  const other = await attach(ann, session_id)
  t.equal((await admin.call('artifact.delete', { artifact_id: other.id })).status, 204)
  t.same(await quota(), before)
})

t.test('an attachment over the quota is refused and leaves nothing', async (t) => {
  const empty = await quota()
  const session_id = await sessionOf('large')
  const filler = await client.put('filler', Buffer.alloc(15 * MIB))
  const before = await quota()
  const bytes = png(MIB + 200_000)
  const key = { headers: { 'idempotency-key': 'over' }, key: ann.key }
  const over = { project: 'default', ...input(session_id, bytes) }
  const refused = await s.refused('session.attach', over, 409, 'artifact_quota_exceeded', key)
  t.match(refused, { details: { requested_bytes: bytes.length, limit_bytes: 16 * MIB } })
  t.same(await quota(), before, 'nothing stays reserved')
  t.same(listOf(await ann.ok('session.attachments', { session_id })), [])
  await s.ok('artifact.delete', { artifact_id: filler.body['id'] })
  t.equal((await s.call('session.attach', over, key)).status, 201, 'the key is free again')
  await ann.ok('session.delete', { session_id })
  await restored(t, empty)
})

t.test('concurrent uploads under one key are counted once', async (t) => {
  const before = await quota()
  const session_id = await sessionOf('keyed')
  const bytes = png(200_000)
  const key = { headers: { 'idempotency-key': 'once' }, key: ann.key }
  const one = { project: 'default', ...input(session_id, bytes) }
  const all = await Promise.all(Array.from({ length: 5 }, () => s.call('session.attach', one, key)))
  t.same(all.map(({ status }) => status).sort(), [200, 200, 200, 200, 201])
  const ids = new Set(all.map(({ body }) => (body['artifact'] as unknown as Found).id))
  t.equal(ids.size, 1)
  t.same(await quota(), {
    used_bytes: Number(before['used_bytes']) + bytes.length,
    artifact_count: Number(before['artifact_count']) + 1,
    pending_count: 0,
  })
  const other = { project: 'default', ...input(session_id, png()) }
  await s.refused('session.attach', other, 409, 'conflict', key)
  await ann.ok('session.delete', { session_id })
  await restored(t, before)
})

t.test('the artifact of an upload in progress cannot be read or deleted', async (t) => {
  const session_id = await sessionOf('busy', { visibility: 'private' })
  const [entry] = listOf(await s.ok('audit.list', { limit: 1 }))
  const organization = String(entry?.['org_id'])
  const more = { file: factsOf(png()), hash: 'h', organization }
  const { artifact_id } = await send(session_id, 'attachment.reserve', more)
  for (const name of ['artifact.delete', 'artifact.signed_url'] as const) {
    await ann.refused(name, { artifact_id }, 409, 'conflict')
    await bob.refused(name, { artifact_id }, 404, 'not_found')
  }
  await ann.refused('artifact.get', { artifact_id }, 404, 'not_found')
  t.same([await statusOf(ann, artifact_id), await statusOf(bob, artifact_id)], [409, 404])
  t.notOk((await listed(ann)).includes(artifact_id))
  await ann.refused('session.detach', { session_id, artifact_id }, 409, 'conflict')
  t.same(await send(session_id, 'attachment.abandon', { artifact_id }), { abandoned: true })
  await ann.refused('artifact.delete', { artifact_id }, 404, 'not_found')
  await ann.refused('session.detach', { session_id, artifact_id }, 404, 'not_found')
})

t.test('the end of a session deletes its artifacts', async (t) => {
  const before = await quota()
  const session_id = await sessionOf('ended')
  const ids = [(await attach(ann, session_id)).id, (await attach(bob, session_id)).id]
  await ann.ok('session.delete', { session_id })
  await restored(t, before)
  for (const artifact_id of ids)
    await ann.refused('artifact.get', { artifact_id }, 404, 'not_found')
})

t.test('a file of a private session does not exist for other principals', async (t) => {
  const session_id = await sessionOf('closed', { visibility: 'private' })
  const { id: artifact_id } = await attach(ann, session_id)
  const lists = async () =>
    await Promise.all(
      [ann, bob, admin].map(async (who) => (await listed(who)).includes(artifact_id)),
    )
  t.same(await lists(), [true, false, true])
  for (const name of ['artifact.get', 'artifact.signed_url', 'artifact.delete'] as const)
    await bob.refused(name, { artifact_id }, 404, 'not_found')
  t.same([await statusOf(bob, artifact_id), await statusOf(ann, artifact_id)], [404, 200])
  t.equal(await statusOf(admin, artifact_id), 200)
  for (const name of ['session.attach', 'session.detach', 'session.attachments'] as const)
    await bob.refused(
      name,
      name === 'session.attach'
        ? input(session_id, png())
        : { session_id, ...(name === 'session.detach' && { artifact_id }) },
      404,
      'not_found',
    )
  t.equal((await admin.call('artifact.delete', { artifact_id })).status, 204)
})

t.test('a file does not exist in another project, or in another session', async (t) => {
  await s.ok('project.create', { name: 'Other', handle: 'other' })
  const there = await person(s, 'there', 'role_admin', 'other')
  const session_id = await sessionOf('bound')
  const { id: artifact_id } = await attach(ann, session_id)
  for (const name of ['artifact.get', 'artifact.signed_url', 'artifact.delete'] as const) {
    await there.refused(name, { artifact_id }, 404, 'not_found')
    await s.refused(name, { project: 'other', artifact_id }, 404, 'not_found')
  }
  t.same(await listed(there), [])
  t.equal((await client.content(artifact_id, { key: there.key, project: 'other' })).status, 404)
  const other = await sessionOf('unbound')
  const wrong = { session_id: other, artifact_id }
  await ann.refused('session.detach', wrong, 404, 'not_found')
  const content = [{ type: 'image', source: { type: 'artifact', artifact_id } }]
  await ann.refused('session.start_turn', { session_id: other, content }, 400, 'bad_request')
  const loose = await client.put('a.png', png(), { key: out.key })
  const foreign = [{ type: 'image', source: { type: 'artifact', artifact_id: loose.body['id'] } }]
  await out.refused('session.start_turn', { session_id, content: foreign }, 400, 'bad_request')
  t.equal(await statusOf(ann, artifact_id), 200)
})

t.test('the deletion of a project releases the quota of its attachments', async (t) => {
  const before = await quota()
  const project = 'gone'
  await s.ok('project.create', { name: 'Gone', handle: project })
  const { id } = await s.ok('agent.create', { project, name: 'reader', system_prompt: 'x' })
  const { id: session_id } = await s.ok('session.create', { project, agent_id: id })
  await s.ok('session.attach', { project, ...input(String(session_id), png()) })
  t.not((await quota())['used_bytes'], before['used_bytes'])
  await s.ok('project.delete', { project })
  await restored(t, before)
})

t.test('a file that an earlier version attached stays readable and deletable', async (t) => {
  const before = await quota()
  const session_id = await sessionOf('old')
  const bytes = png()
  const file = factsOf(bytes)
  const reserved = await send(session_id, 'attachment.reserve', { file, hash: 'h' })
  t.same(Object.keys(reserved), ['artifact_id'])
  const artifact_id = String(reserved['artifact_id'])
  const blobs = createBlobs(nats)
  await blobs.put(fileName(project, artifact_id), bytes)
  t.match(await send(session_id, 'session.attach', { artifact_id }), {
    artifact: { id: artifact_id },
  })

  const at = { session_id, artifact_id }
  t.match(listOf(await ann.ok('session.attachments', { session_id })), [{ id: artifact_id }])
  const { path } = requestOf(api['session.attachment'], at)
  t.ok((await client.get(path)).bytes.equals(bytes))
  await ann.refused('artifact.get', { artifact_id }, 404, 'not_found')
  t.notOk((await listed(ann)).includes(artifact_id))
  const content = [{ type: 'image', source: { type: 'artifact', artifact_id } }]
  const append = { session_id, messages: [{ role: 'user', content }] }
  t.equal((await ann.call('session.append', append)).status, 200, 'messages can show it')
  t.equal((await ann.call('session.detach', at)).status, 204)
  t.equal(await blobs.get(fileName(project, artifact_id)), undefined, 'its bytes are erased')
  t.equal((await client.get(path)).status, 404)
  t.equal((await ann.call('session.detach', at)).status, 204)
  t.same(await quota(), before, 'it was never counted')
})
